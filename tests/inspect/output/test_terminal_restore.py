from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest

pty = pytest.importorskip("pty", reason="needs pseudo-terminals")
termios = pytest.importorskip("termios", reason="needs pseudo-terminals")

SPOIL = """
    import ctypes, os, signal, time, tty
    from gradscope.inspect.output.terminal_restore import terminal_restored
    from gradscope_tui.terminal.terminal_output import LAST_WORDS

    with terminal_restored(1, LAST_WORDS):
        tty.setraw(0)
        os.write(1, b"\\x1b[?1049h\\x1b[?25l\\x1b[?1003h")
        {end}
    os.write(1, b"left in order")
"""


def ended(end):
    """Have a program spoil its terminal and end; return how, what the terminal got, and whether it reads lines."""
    ours, theirs = pty.openpty()
    code = textwrap.dedent(SPOIL).replace("{end}", end)
    done = subprocess.run([sys.executable, "-c", code], stdin=theirs, stdout=theirs, stderr=theirs, timeout=60)
    got, until = b"", time.monotonic() + 20
    os.set_blocking(ours, False)
    while time.monotonic() < until and b"crashed in a library" not in got and b"left in order" not in got:
        try:
            got += os.read(ours, 65536)
        except BlockingIOError:
            time.sleep(0.02)
    while time.monotonic() < until and not termios.tcgetattr(theirs)[3] & termios.ECHO and done.returncode:
        time.sleep(0.02)
    flags = termios.tcgetattr(theirs)[3]
    os.close(theirs)
    os.close(ours)
    return done.returncode, got, bool(flags & termios.ECHO and flags & termios.ICANON)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("end", "status"),
    [
        ("os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL),
        ("ctypes.string_at(0)", -signal.SIGSEGV),
        ("os._exit(3)", 3),
    ],
)
def test_a_program_that_dies_without_a_word_leaves_the_terminal_in_order(end, status):
    died, got, in_order = ended(end)
    assert died == status
    assert got.index(b"\x1b[?1049h") < got.index(b"\x1b[?1049l")
    assert b"\x1b[?25h" in got
    assert b"\x1b[?1003l" in got
    assert in_order


def test_a_forked_child_that_lives_on_does_not_keep_the_terminal():
    died, got, in_order = ended(
        "os.fork() or os.execvp('sleep', ['sleep', '30']); os.kill(os.getpid(), signal.SIGKILL)"
    )
    assert died == -signal.SIGKILL
    assert b"\x1b[?1049l" in got
    assert in_order


def test_a_program_that_leaves_in_order_is_let_alone():
    died, got, _ = ended("pass")
    assert died == 0
    time.sleep(0.3)
    assert b"1049l" not in got
    assert b"without a word" not in got


def test_the_program_has_no_child_that_it_did_not_start():
    _, got, _ = ended(
        "os.write(1, repr(os.path.exists(f'/proc/{os.getpid()}/task/{os.getpid()}/children') and "
        "open(f'/proc/{os.getpid()}/task/{os.getpid()}/children').read()).encode())"
    )
    assert b"\x1b[?1003h''" in got or b"\x1b[?1003hFalse" in got
