"""The prompt on a pseudo-terminal, on which a person types for the debugger and for the program."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time

import pytest

pytest.importorskip("termios")

SCRIPT = """\
import gradscope as gs
x = gs.ones(2, requires_grad=True)
(x * 2).sum().backward()
name = input("name? ")
print("hello", name)
(x * 2).sum().backward()
"""


class Terminal:
    """A command on a terminal of its own."""

    def __init__(self, command, folder):
        self._master, slave = os.openpty()
        self.process = subprocess.Popen(command, cwd=folder, stdin=slave, stdout=slave, stderr=slave, process_group=0)
        os.close(slave)
        self.seen = ""

    def expect(self, text, timeout=40):
        deadline = time.monotonic() + timeout
        while text not in self.seen:
            assert time.monotonic() < deadline, self.seen
            if select.select([self._master], [], [], 0.1)[0]:
                try:
                    data = os.read(self._master, 65536)
                except OSError:
                    data = b""
                assert data, self.seen
                self.seen += data.decode().replace("\r", "")
        self.seen = self.seen.partition(text)[2]

    def type(self, text):
        os.write(self._master, text.encode())

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self._master)


@pytest.fixture
def terminal(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    terminal = Terminal([sys.executable, "-m", "gradscope", "debug", "--line", "script.py"], tmp_path)
    yield terminal
    terminal.close()


@pytest.mark.slow
def test_what_is_typed_while_it_runs_is_the_programs(terminal):
    terminal.expect("(gradscope) ")
    terminal.type("continue\n")
    terminal.expect("name? ")
    terminal.type("Ada\n")
    terminal.expect("hello Ada\n")
    terminal.expect("(gradscope) ")
    terminal.type("quit\n")
    terminal.expect("script.py finished (exit status 0)")
    assert terminal.process.wait(20) == 0


@pytest.mark.slow
def test_interrupts_pause_it_and_end_it(terminal):
    terminal.expect("(gradscope) ")
    terminal.type("continue\n")
    terminal.expect("name? ")
    terminal.process.send_signal(2)
    terminal.expect("pausing at the next node; press Ctrl-C again to leave")
    terminal.process.send_signal(2)
    assert terminal.process.wait(20) == 130
