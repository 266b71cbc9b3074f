from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

from gradscope_tui.terminal.terminal_output import own_terminal

pty = pytest.importorskip("pty", reason="needs pseudo-terminals")


def test_without_a_terminal_nothing_is_caught(capfd):
    taken = []
    with capfd.disabled():
        saved = os.dup(1)
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        try:
            with own_terminal(taken.append) as driver:
                os.write(1, b"not caught\n")
        finally:
            os.dup2(saved, 1)
            os.close(saved)
            os.close(null)
    assert driver is None
    assert taken == []


def on_a_terminal(code, typed=b""):
    """Run code in an interpreter on a terminal at which something is typed before; return what the terminal has got."""
    ours, theirs = pty.openpty()
    os.write(ours, typed)
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], stdin=theirs, stdout=theirs, stderr=theirs, timeout=60
    )
    os.close(theirs)
    got = b""
    try:
        while chunk := os.read(ours, 65536):
            got += chunk
    except OSError:  # the other side is closed
        pass
    os.close(ours)
    assert done.returncode == 0, got.decode()
    return got.decode()


def test_what_is_written_to_the_descriptors_becomes_lines_and_the_terminal_is_given_back():
    got = on_a_terminal(
        """
        import os, subprocess
        from gradscope_tui.terminal.terminal_output import own_terminal

        taken = []
        with own_terminal(taken.append) as driver:
            os.write(1, b"one\\n")
            subprocess.run(["echo", "from a child"])
            os.write(2, "zwei \\u2713\\n".encode()[:-2])
            os.write(2, "zwei \\u2713\\n".encode()[-2:])
            print("caught as well, for it goes to descriptor 1")
            os.write(2, b"without an end")
        print(ascii(taken), driver is not None)
        os.write(2, b"and after\\n")
        """
    )
    assert got.splitlines() == [
        "['one', 'from a child', 'zwei \\u2713', 'caught as well, for it goes to descriptor 1', 'without an end'] True",
        "and after",
    ]


def test_the_driver_draws_on_the_terminal_and_knows_its_size():
    got = on_a_terminal(
        """
        import asyncio, fcntl, struct, termios
        from textual.app import App
        from gradscope_tui.terminal.terminal_output import own_terminal

        fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 17, 61, 0, 0))

        async def draw(kind):
            driver = kind(App())
            print("not on the screen")
            driver._file.write("on the screen\\n")
            driver._file.flush()
            return driver._get_terminal_size()

        with own_terminal(lambda line: None) as kind:
            size = asyncio.run(draw(kind))
        print(size)
        """
    )
    assert got.splitlines() == ["on the screen", "(61, 17)"]


def test_enter_that_is_typed_before_the_screen_is_there_is_enter():
    got = on_a_terminal(
        """
        from textual.app import App
        from gradscope_tui.terminal.terminal_output import own_terminal

        class Typed(App):
            keys = []

            def on_key(self, event):
                self.keys.append(event.key)
                if event.key == "q":
                    self.exit()

        app = Typed()
        with own_terminal(lambda line: None) as app.driver_class:
            app.run()
        print(*app.keys)
        """,
        b":up\rn\rq",
    )
    assert got.splitlines()[-1].endswith("lcolon u p enter n enter q")
