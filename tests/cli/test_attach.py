from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """\
import time
import gradscope as gs
x = gs.ones(3, requires_grad=True)
print("ready", flush=True)
while True:
    (x * 2).exp().sum().backward()
    time.sleep(0.01)
"""


def attach(*arguments, text=""):
    command = [sys.executable, "-m", "gradscope", "attach", *arguments]
    return subprocess.run(command, capture_output=True, text=True, input=text, timeout=60)


@pytest.fixture
def runtime_directory(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return tmp_path


@pytest.fixture
def program(runtime_directory, monkeypatch):
    (runtime_directory / "train.py").write_text(PROGRAM)
    monkeypatch.setenv("GRADSCOPE_LISTEN", "1")
    command = [sys.executable, "train.py"]
    with subprocess.Popen(command, cwd=runtime_directory, stdout=-1, stderr=-1, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        monkeypatch.delenv("GRADSCOPE_LISTEN")
        yield process
        process.kill()


def test_commands_are_carried_out_and_the_program_runs_on(program):
    for where in ([], [str(program.pid)]):
        done = attach("-c", "step; print grad; quit", *where)
        assert (done.returncode, done.stderr) == (0, "")
        said = done.stdout.splitlines()
        assert said[0] == f"attached to train.py, process {program.pid}; it stops at its next node"
        assert "paused on request" in said[1]
        assert said[-1] == f"train.py (process {program.pid}) runs on"
    assert program.poll() is None


def test_the_prompt_reads_what_is_typed(program):
    done = attach("--line", text="where\nnonsense\nquit\n")
    assert done.returncode == 0
    assert "backward" in done.stdout
    assert "*** " in done.stdout
    assert attach("-c", "nonsense").returncode == 2
    assert attach("-c", "print nothing").returncode == 1


def test_the_program_ends_meanwhile(program):
    done = attach("-c", "eval __import__('os')._exit(3); step")
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1] == "train.py has ended, or let its front go"


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ([], "no program of yours listens"),
        pytest.param(["1"], "no program listens at ", marks=pytest.mark.slow),
        pytest.param(
            ["tcp://nowhere"], "an address over TCP is tcp://HOST:PORT, got 'tcp://nowhere'", marks=pytest.mark.slow
        ),
    ],
)
def test_what_cannot_be_reached_is_said(runtime_directory, where, said):
    done = attach("--line", *where)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"gradscope attach: {said}")


@pytest.mark.slow
def test_the_screen_needs_a_terminal(runtime_directory):
    assert "use --line for a prompt" in attach().stderr
