"""set_trace() in a job that nobody can type at: it waits for whoever attaches."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from gradscope.inspect.wire.addresses import parse_address
from gradscope.inspect.wire.client import connect

PROGRAM = """\
import gradscope as gs
import gradscope.inspect as gi

def main():
    hidden = 42
    x = gs.ones(3, requires_grad=True)
    gi.set_trace()
    print("once", hidden, flush=True)
    x.register_hook(lambda grad: gi.set_trace())
    (x * 2).sum().backward()
    print("twice", flush=True)

main()
"""


@pytest.fixture
def started(tmp_path, monkeypatch):
    """Start the program without a terminal; it ends with the test."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.delenv("GRADSCOPE_LISTEN", raising=False)
    (tmp_path / "job.py").write_text(PROGRAM)
    made = []

    def start(prefix=(), **streams):
        command = [*prefix, sys.executable, str(tmp_path / "job.py")]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **streams}
        made.append(subprocess.Popen(command, **pipes))
        return made[-1]

    yield start
    for process in made:
        process.kill()
        process.communicate()


def test_it_says_once_how_to_attach_and_waits(started):
    process = started(stdin=subprocess.DEVNULL)
    told = process.stderr.readline()
    assert told.startswith("gradscope: stopped: set_trace() at ")
    assert told.endswith(f"job.py:7; `gradscope attach {process.pid}` looks at it\n")
    remote = connect(parse_address(str(process.pid)))
    assert (remote.state.value, remote.reason.kind) == ("paused before", "trace")
    assert {"hidden": "42"}.items() <= {one.name: one.text for one in remote.variables()}.items()
    remote.execute("hidden = 7")
    remote.cont()
    assert process.stdout.readline() == "once 7\n"
    assert remote.wait(60).paused
    assert remote.evaluate_text("grad") == "tensor([2., 2., 2.])"
    remote.detach()
    assert process.stdout.readline() == "twice\n"
    assert process.wait(60) == 0
    assert process.stderr.read() == ""


@pytest.mark.slow
def test_one_that_leaves_lets_it_run_to_the_next_and_another_may_come(started):
    process = started(stdin=subprocess.DEVNULL)
    for expected in ("once 42\n", "twice\n"):
        assert f"`gradscope attach {process.pid}`" in process.stderr.readline()
        connect(parse_address(str(process.pid))).detach()
        assert process.stdout.readline() == expected
    assert process.wait(60) == 0


def test_the_prompt_attaches_to_it(started):
    process = started(stdin=subprocess.DEVNULL)
    process.stderr.readline()
    command = [sys.executable, "-m", "gradscope", "attach", "-c", "print hidden; continue; print grad; continue"]
    front = subprocess.run([*command, str(process.pid)], capture_output=True, text=True, timeout=120)
    assert front.stdout.splitlines()[1:3] == ["(gradscope) print hidden", "42"]
    assert "tensor([2., 2., 2.])" in front.stdout
    assert process.communicate(timeout=60)[0] == "once 42\ntwice\n"


@pytest.mark.skipif(os.name != "posix", reason="sh closes the descriptor")
def test_a_closed_stdin_is_none_to_type_at(started):
    process = started(prefix=["sh", "-c", 'exec "$0" "$@" <&-'])
    assert "`gradscope attach " in process.stderr.readline()


@pytest.mark.slow
def test_what_is_piped_in_are_commands_for_the_prompt(started):
    process = started(stdin=subprocess.PIPE)
    out, error = process.communicate("print hidden\ncontinue\ncontinue\n", timeout=120)
    assert "42" in out.splitlines()
    assert (out.splitlines()[-1], error, process.returncode) == ("twice", "", 0)


def test_where_nobody_can_attach_either_it_is_passed_by(started, tmp_path):
    (tmp_path / "gradscope").touch()
    out, error = started(stdin=subprocess.DEVNULL).communicate(timeout=120)
    assert out == "once 42\ntwice\n"
    assert "job.py:7: RuntimeWarning: set_trace() was passed by: nobody can type here, and nobody can attach" in error
