"""A script on the main thread of its process."""

import io
import subprocess
import sys
from textwrap import dedent

import pytest

from gradscope.inspect.debuggee.main_thread import MainThreadProgram
from gradscope.inspect.debuggee.script_targets import find_target


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there are no signals there")
def test_the_command_ends_when_it_is_terminated_in_a_pause(tmp_path):
    """SIGTERM with a handler of the script's own: what the handler does, is done, though the script is paused."""
    (tmp_path / "script.py").write_text(
        dedent(
            """
            import signal, sys
            import gradscope as gs
            signal.signal(signal.SIGTERM, lambda *_: (print("saved", flush=True), sys.exit(7)))
            x = gs.ones(2, requires_grad=True)
            (x * 2).sum().backward()
            """
        )
    )
    command = [sys.executable, "-m", "gradscope", "debug", "--line", "script.py"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=tmp_path, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout.readline().startswith("stopped before node 0")
        process.terminate()
        said, _ = process.communicate("print\n", timeout=60)
    assert (process.returncode, "saved" in said) == (7, True), said


def test_what_is_written_has_left_its_buffer_when_it_ends(tmp_path, monkeypatch):
    (tmp_path / "script.py").write_text("print('the last word', end='')\n")
    written = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(io.BufferedWriter(written), "utf-8"))
    MainThreadProgram(find_target(str(tmp_path / "script.py")), []).run(print)
    assert written.getvalue() == b"the last word"
