"""Deaths of a program and of the front that debugs it: the terminal is as before, and the exit status tells."""

from __future__ import annotations

import contextlib
import os
import re
import select
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gradscope.inspect.wire.stopped_process import is_stopped
from tests.quick_cases import quick

pty = pytest.importorskip("pty", reason="needs pseudo-terminals")
termios = pytest.importorskip("termios", reason="needs pseudo-terminals")

PROMPT = rb"\(gradscope\) "
LONG = 60
"""Seconds after which a wait has hung."""

SCRIPT = """\
import ctypes, os, resource, signal, subprocess, sys, threading, tty
import gradscope as gs
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
x = gs.ones(3, requires_grad=True)
(x * 2).sum().backward()
"""

KILLING = [
    "SIGHUP", "SIGINT", "SIGQUIT", "SIGILL", "SIGTRAP", "SIGABRT", "SIGBUS", "SIGFPE", "SIGKILL", "SIGUSR1", "SIGSEGV",
    "SIGUSR2", "SIGPIPE", "SIGALRM", "SIGTERM", "SIGXCPU", "SIGXFSZ", "SIGVTALRM", "SIGPROF", "SIGIO", "SIGSYS",
]  # fmt: skip

LINES = {
    "exit 0": ("sys.exit(0)", 0),
    "exit 7": ("sys.exit(7)", 7),
    "exit with a text": ("sys.exit('no data')", 1),
    "an exception": ("raise ValueError('no data')", 1),
    "an exception that has no text": ("class E(Exception):\n    def __str__(self): raise self\nraise E", 1),
    "Ctrl-C": ("raise KeyboardInterrupt", 130),
    "_exit 0": ("os._exit(0)", 0),
    "_exit 7": ("os._exit(7)", 7),
    "_exit in a thread": ("threading.Thread(target=os._exit, args=(7,)).start(); threading.Event().wait(60)", 7),
    "_exit in a backward": ("y = x * 2; y.register_hook(lambda grad: os._exit(7)); y.sum().backward()", 7),
    "abort": ("os.abort()", 128 + signal.SIGABRT),
    "a null pointer": ("ctypes.string_at(0)", 128 + signal.SIGSEGV),
    "a null pointer in a backward": (
        "y = x * 2; y.register_hook(lambda grad: ctypes.string_at(0)); y.sum().backward()",
        128 + signal.SIGSEGV,
    ),
    "a jump to nowhere": ("ctypes.CFUNCTYPE(None)(8)()", 128 + signal.SIGSEGV),
    "recursion": ("def f(): f()\nf()", 1),
    "exec of one that succeeds": ("os.execvp('true', ['true'])", 0),
    "exec of one that fails": ("os.execvp('false', ['false'])", 1),
    "exec of nothing": ("os.execvp('/nowhere', ['nowhere'])", 1),
    "fork, the child ends": ("os.fork() or os._exit(3)\nos.wait()", 0),
    "fork, the child is killed": ("os.fork() or os.abort()\nos.wait()", 0),
    "fork, the parent ends": ("if os.fork(): os._exit(7)\nos._exit(3)", 7),
    "its group is killed": ("os.killpg(0, signal.SIGTERM)", 128 + signal.SIGTERM),
    "its descriptors are closed": ("os.closerange(0, 4096); os._exit(7)", 7),
    "its streams are closed": ("sys.stdout.close(); sys.stderr.close(); sys.exit(7)", 7),
    "its terminal is raw": ("tty.setraw(0) if os.isatty(0) else None; os._exit(7)", 7),
    "its screen is another": ("print('\\x1b[?1049h\\x1b[?25l\\x1b[?1003h', flush=True); os._exit(7)", 7),
    "a new session": ("try: os.setsid()\nexcept OSError: pass\nos._exit(7)", 7),
}

LEADER = """\
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execvp(sys.argv[1], sys.argv[1:])
"""
"""Gives a new session its terminal."""

USUAL = {"SIGSEGV", "an exception"}
"""Deaths of a program that are tried in every run; the others when slow tests are."""

FRONT = ["SIGHUP", "SIGINT", "SIGQUIT", "SIGABRT", "SIGSEGV", "SIGKILL", "SIGTERM", "SIGUSR1"]


class Terminal:
    """A front on a pseudo-terminal: the terminal UI, or with `options` the prompt; in `shell`, as a job of a shell."""

    def __init__(self, folder: Path, last_line: str, options: list[str], *, shell: bool = False) -> None:
        path = folder / "script.py"
        path.write_text(SCRIPT + last_line + "\n")
        self.ours, self.theirs = pty.openpty()
        termios.tcsetwinsize(self.theirs, (24, 100))
        self.before = termios.tcgetattr(self.theirs)
        self.text, self.looked = b"", 0
        self.command = [sys.executable, "-m", "gradscope", "debug", *options, str(path)]
        environment = {
            "TERM": "xterm-256color",
            "PYTHONFAULTHANDLER": "1",
            "XDG_STATE_HOME": str(folder),
            "NO_COLOR": "1",
            "PS1": "@@ ",
            "ENV": "",
        }
        leader = [sys.executable, "-c", LEADER, "sh", "-i"]
        self.process = subprocess.Popen(
            leader if shell else self.command,
            stdin=self.theirs,
            stdout=self.theirs,
            stderr=self.theirs,
            env={**os.environ, **environment, "PS1": "@@ ", "ENV": ""},
            start_new_session=shell,
        )

    def read(self) -> bool:
        """Take what there is to read; return whether there was something, within a short while."""
        if not select.select([self.ours], [], [], 0.1)[0]:
            return False
        with contextlib.suppress(OSError):
            self.text += os.read(self.ours, 65536)
        return True

    def until(self, pattern: bytes, *, or_end: bool = False) -> bool:
        """Read until something is written that was not looked for before; return whether that came before the end."""
        deadline = time.monotonic() + LONG
        while (found := re.search(pattern, self.text[self.looked :])) is None:
            if time.monotonic() >= deadline:
                pytest.fail(self.stacks())
            if self.process.poll() is not None:
                assert or_end, self.text[-3000:]
                return False
            self.read()
        self.looked += found.end()
        return True

    def stacks(self) -> str:
        """Abort the command, and return what it has written last, with where each of its threads was."""
        self.process.send_signal(signal.SIGABRT)
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline and (self.read() or self.process.poll() is None):
            continue
        return self.text[-10_000:].decode(errors="replace")

    def until_modes(self, holds: Callable[[list], bool]) -> None:
        """Read until the modes of the terminal are such."""
        deadline = time.monotonic() + LONG
        while not holds(termios.tcgetattr(self.theirs)):
            assert time.monotonic() < deadline, self.text[-3000:]
            self.read()

    def until_stopped(self) -> None:
        """Read until a signal has stopped the program."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        deadline = time.monotonic() + LONG
        while not any(map(is_stopped, map(int, children.read_text().split()))):
            assert time.monotonic() < deadline, self.text[-3000:]
            self.read()

    def press(self, keys: str) -> None:
        """Type keys."""
        os.write(self.ours, keys.encode())

    def status(self, *, screen: bool = True) -> int:
        """Return the exit status, as a shell has it, once the process and whoever tidies up after it have ended.

        Without a `screen` the modes of the terminal's are the program's own business.
        """
        deadline = time.monotonic() + LONG
        while self.process.poll() is None:
            assert time.monotonic() < deadline, self.text[-3000:]
            self.read()
        while termios.tcgetattr(self.theirs) != self.before or (screen and self.modes()):
            if not self.read() and time.monotonic() > deadline:
                break
        found = self.process.returncode
        return found if found >= 0 else 128 - found

    def modes(self) -> list[bytes]:
        """Return the modes of the screen that are not as before."""
        last = dict(re.findall(rb"\x1b\[\?(\d+)([hl])", self.text))
        return [mode for mode, state in last.items() if (state == b"h") != (mode in (b"25", b"7"))]

    def close(self) -> None:
        """End what has not ended."""
        self.process.kill()
        self.process.wait()
        for descriptor in (self.theirs, self.ours):
            with contextlib.suppress(OSError):
                os.close(descriptor)


@contextlib.contextmanager
def debugged(folder, last_line="pass", *options, paused=b"PAUSED"):
    terminal = Terminal(folder, last_line, list(options))
    try:
        terminal.until(paused)
        yield terminal
    finally:
        terminal.close()


def killed_by(name):
    """Return the line with which a program dies of a signal."""
    default = "" if name == "SIGKILL" else f"signal.signal(signal.{name}, signal.SIG_DFL); "
    return f"{default}os.kill(os.getpid(), signal.{name})"


def outcome(folder, last_line):
    """Let a program die under the terminal UI, and leave it; return the exit status."""
    with debugged(folder, last_line) as terminal:
        terminal.press("c")
        terminal.until(b"FAILED|FINISHED")
        terminal.press("q")
        status = terminal.status()
        assert terminal.modes() == []
        assert termios.tcgetattr(terminal.theirs) == terminal.before
        return status


def outcome_at_prompt(folder, last_line):
    """Let a program die under ``--line``, and leave that; return the exit status."""
    with debugged(folder, last_line, "--line", paused=PROMPT) as terminal:
        terminal.press("continue\n")
        if terminal.until(PROMPT, or_end=True):  # nothing is left to look at of a process that has gone
            terminal.press("quit\n")
        status = terminal.status(screen=False)
        assert termios.tcgetattr(terminal.theirs) == terminal.before
        return status


@pytest.mark.slow
@pytest.mark.parametrize("name", quick(KILLING, USUAL))
def test_a_program_that_is_killed(tmp_path, name):
    assert outcome(tmp_path, killed_by(name)) == 128 + getattr(signal, name)


@pytest.mark.parametrize("name", quick(LINES, USUAL))
def test_a_program_that_ends(tmp_path, name):
    line, status = LINES[name]
    assert outcome(tmp_path, line) == status


@pytest.mark.slow
def test_a_traceback_is_there_once_when_the_screen_is_gone(tmp_path):
    with debugged(tmp_path, "raise ValueError('no data')") as terminal:
        terminal.press("c")
        terminal.until(b"FAILED")
        terminal.press("q")
        assert terminal.status() == 1
        left = terminal.text.rpartition(b"\x1b[?1049l")[2]
        assert left.count(b"ValueError: no data") == 1
        assert left.rstrip().endswith(b"script.py raised ValueError (exit status 1)")


@pytest.mark.slow
@pytest.mark.parametrize("name", quick(KILLING, USUAL))
def test_a_program_that_is_killed_at_the_prompt(tmp_path, name):
    assert outcome_at_prompt(tmp_path, killed_by(name)) == 128 + getattr(signal, name)


@pytest.mark.parametrize("name", quick(LINES, USUAL))
def test_a_program_that_ends_at_the_prompt(tmp_path, name):
    line, status = LINES[name]
    assert outcome_at_prompt(tmp_path, line) == status


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", quick(["SIGHUP", "SIGINT", "SIGQUIT", "SIGABRT", "SIGKILL", "SIGTERM"], {"SIGKILL", "SIGTERM"})
)
def test_a_prompt_that_is_killed_while_its_program_runs(tmp_path, name):
    with debugged(tmp_path, "print('runs')\nwhile True: pass", "--line", paused=PROMPT) as terminal:
        terminal.press("continue\n")
        terminal.until(rb"\nruns")
        terminal.until_modes(lambda found: found != terminal.before)  # what is typed goes to the program, key by key
        terminal.process.send_signal(getattr(signal, name))
        if name == "SIGINT":  # the first asks for a stop
            terminal.until(b"press Ctrl-C again to leave")
            terminal.process.send_signal(signal.SIGINT)
        assert terminal.status() == 128 + getattr(signal, name)
        assert termios.tcgetattr(terminal.theirs) == terminal.before


def test_a_prompt_that_is_killed_while_it_reads_a_line(tmp_path):
    with debugged(tmp_path, "pass", "--line", paused=PROMPT) as terminal:
        terminal.until_modes(lambda found: found != terminal.before)
        terminal.process.kill()
        assert terminal.status() == 128 + signal.SIGKILL
        assert termios.tcgetattr(terminal.theirs) == terminal.before


@pytest.mark.slow
def test_a_rank_that_is_killed(tmp_path):
    line = "if os.environ['RANK'] == '1': os.kill(os.getpid(), signal.SIGKILL)"
    with debugged(tmp_path, line, "--nproc-per-node", "2") as terminal:
        terminal.press("c")
        terminal.until(b"SIGKILL")
        terminal.press("q")
        if terminal.until(rb"Quit\?", or_end=True):  # the other rank has not ended yet
            terminal.press("y")
        assert terminal.status() == 128 + signal.SIGKILL
        assert terminal.modes() == []
        assert termios.tcgetattr(terminal.theirs) == terminal.before


FRONTS = {
    "screen": ([], b"PAUSED", "", b"PAUSED", "qy"),
    "prompt": (["--line"], PROMPT, "", b"debug", "quit\n"),
    "prompt of a program that runs": (["--line"], PROMPT, "continue\n", b"debug", "\x03"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FRONTS)
def test_a_front_that_is_suspended(tmp_path, name):
    options, paused, keys, back, leave = FRONTS[name]
    terminal = Terminal(tmp_path, "print('runs')\nwhile True: pass", options, shell=True)
    try:
        terminal.until(rb"@@ $")
        terminal.press(shlex.join(terminal.command) + "\n")
        terminal.until(paused)
        if keys:
            terminal.press(keys)
            terminal.until(rb"\nruns")
        terminal.until_modes(lambda found: found != terminal.before)
        ours = termios.tcgetattr(terminal.theirs)
        terminal.press("\x1a")
        terminal.until(rb"@@ $")
        assert (termios.tcgetattr(terminal.theirs), terminal.modes()) == (terminal.before, [])
        terminal.press("fg\n")
        terminal.until(back)
        terminal.until_modes(lambda found: found == ours)
        terminal.press(leave)
        terminal.until(b"pausing at|ended before its end")
        terminal.press(leave)
        terminal.until(rb"@@ $")
        assert (termios.tcgetattr(terminal.theirs), terminal.modes()) == (terminal.before, [])
    finally:
        terminal.close()


STOPS = {
    "once": ("os.kill(os.getpid(), signal.SIGSTOP)", 0),
    "again and again": ("while True: os.kill(os.getpid(), signal.SIGSTOP)", 128 + signal.SIGKILL),
}


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="the system does not tell what is stopped")
@pytest.mark.parametrize("name", STOPS)
def test_a_program_that_a_signal_has_stopped_is_left(tmp_path, name):
    line, status = STOPS[name]
    with debugged(tmp_path, line) as terminal:
        terminal.press("c")
        terminal.until_stopped()
        terminal.press("q")
        terminal.until(b"Quitting ends it there")
        terminal.press("y")
        assert (terminal.status(), terminal.modes()) == (status, [])
        assert termios.tcgetattr(terminal.theirs) == terminal.before


@pytest.mark.slow
def test_a_program_that_has_become_another_one_is_asked_about(tmp_path):
    with debugged(tmp_path, "os.execvp('sleep', ['sleep', '600'])") as terminal:
        terminal.press("c")
        terminal.until(b"FAILED")
        terminal.press("q")
        terminal.until(b"Quitting ends it")
        terminal.press("y")
        assert (terminal.status(), terminal.modes()) == (128 + signal.SIGTERM, [])
        assert b"has become another program, sleep 600, and was killed by SIGTERM" in terminal.text


@pytest.mark.parametrize("name", quick(FRONT, {"SIGKILL"}))
def test_a_front_that_is_killed(tmp_path, name):
    with debugged(tmp_path) as terminal:
        terminal.process.send_signal(getattr(signal, name))
        assert terminal.status() == 128 + getattr(signal, name)
        assert terminal.modes() == []
        assert termios.tcgetattr(terminal.theirs) == terminal.before


@pytest.mark.slow
def test_a_terminal_that_goes_without_a_word(tmp_path):
    # Nobody sends SIGHUP to what does not lead the session of its terminal.
    with debugged(tmp_path) as terminal:
        for descriptor in (terminal.theirs, terminal.ours):
            os.close(descriptor)
        terminal.theirs = terminal.ours = -1
        assert terminal.process.wait(timeout=LONG) == 128 + signal.SIGHUP


@pytest.mark.slow
def test_a_program_that_kills_its_front(tmp_path):
    with debugged(tmp_path, "os.kill(os.getppid(), signal.SIGKILL)") as terminal:
        terminal.press("c")
        assert terminal.status() == 128 + signal.SIGKILL
        assert terminal.modes() == []
        assert termios.tcgetattr(terminal.theirs) == terminal.before
