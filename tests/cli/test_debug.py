"""``gradscope debug`` as a user runs it: in a process of its own, on real scripts."""

import os
import pty
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from textwrap import dedent

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"

TRAIN = """\
import sys
import gradscope as gs

gs.manual_seed(0)
model = gs.nn.Sequential(gs.nn.Linear(3, 4), gs.nn.ReLU(), gs.nn.Linear(4, 1))
optimizer = gs.optim.Adam(model.parameters(), lr=0.01)
x = gs.randn(8, 3)
for step in range(3):
    loss = (model(x) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("step", step)
print("args", sys.argv[1:])
"""

DUMP = TRAIN + "for p in model.parameters():\n    print(p.detach().numpy().tobytes().hex())\n"


def debug(tmp_path, source, *arguments, before=(), text=None):
    """Run ``gradscope debug`` on a script in a process of its own, without a terminal."""
    (tmp_path / "script.py").write_text(dedent(source))
    command = [sys.executable, "-m", "gradscope", "debug", *before, "script.py", *arguments]
    return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, input=text or "")


def test_commands(tmp_path):
    done = debug(tmp_path, TRAIN, "--epochs", "1", before=("-c", "step; print norm > 0; continue"))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "stopped before node 0 of 9: MeanBackward0 - first node of backward 1",
        "  script.py:9  loss = (model(x) ** 2).mean()",
        "(gradscope) step",
        "stopped before node 1 of 9: PowBackward0 - next node",
        "  script.py:9  loss = (model(x) ** 2).mean()",
        "(gradscope) print norm > 0",
        "True",
        "(gradscope) continue",
        "step 0",
        "step 1",
        "step 2",
        "args ['--epochs', '1']",
        "script.py finished (exit status 0)",
    ]


def test_commands_that_stop_before_the_end(tmp_path):
    done = debug(tmp_path, TRAIN, before=("-c", "b param:2.bias; c; p node.parameter; q"))
    assert done.returncode == 0
    assert "stopped before node 4 of 9: AccumulateGrad  2.bias - breakpoint 1 (param:2.bias)" in done.stdout
    assert "'2.bias'" in done.stdout
    assert done.stdout.endswith("ended before its end; gradients accumulated so far stay in .grad\n")
    assert "step 0" not in done.stdout


def test_line_mode_over_a_pipe(tmp_path):
    done = debug(tmp_path, TRAIN, before=("--line",), text="nb\nprint\nlist\n\ncontinue\n")
    assert (done.returncode, done.stderr) == (0, "")
    assert "step 0\nstopped before node 0 of 9: MeanBackward0 - first node of backward 2" in done.stdout
    assert "gradients in   [0] float32 ()  norm 1" in done.stdout
    assert done.stdout.endswith("script.py finished (exit status 0)\n")


def test_parameters_are_bit_identical_under_the_debugger(tmp_path):
    (tmp_path / "script.py").write_text(DUMP)
    plain = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, check=True)
    commands = "step 3; print; into; b op:Relu if norm > 1e9; b nan; out; list; where; graph; p grad * 2; nb; c"
    done = debug(tmp_path, DUMP, before=("-c", commands))
    assert done.returncode == 0
    assert [line for line in done.stdout.splitlines() if len(line) > 7 and set(line) <= set("0123456789abcdef")] == [
        line for line in plain.stdout.splitlines() if set(line) <= set("0123456789abcdef")
    ]


@pytest.mark.parametrize("name", ["digits_mlp.py", "scalar_graph.py"])
def test_the_examples(name):
    command = [sys.executable, "-m", "gradscope", "debug", "-c", "step 2; print; list; continue", str(EXAMPLES / name)]
    command += ["--epochs", "1"] if name == "digits_mlp.py" else []
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert "stopped before node 2 of " in done.stdout
    assert done.stdout.endswith("finished (exit status 0)\n")


def test_the_example_with_a_bug_stops_at_it():
    command = [
        sys.executable,
        "-m",
        "gradscope",
        "debug",
        "-c",
        "continue; print; continue",
        str(EXAMPLES / "inplace_bug.py"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    assert "needs `result`, saved at version 0, but it has been written since and is at version 1" in done.stdout
    assert "now at 1: MODIFIED" in done.stdout
    assert done.stderr.startswith("Traceback (most recent call last):")
    assert "gradscope/inspect" not in done.stderr
    assert done.stderr.endswith("raised SavedTensorModifiedError (exit status 1)\n")


# --- what can go wrong ------------------------------------------------------------------------------------------------


def test_a_missing_script(tmp_path):
    command = [sys.executable, "-m", "gradscope", "debug", "-c", "step", "nowhere.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "gradscope debug: there is no script 'nowhere.py'\n"


def test_a_directory(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "gradscope", "debug", "-c", "step", str(tmp_path)], capture_output=True, text=True
    )
    assert done.returncode == 2
    assert done.stderr == f"gradscope debug: {str(tmp_path)!r} is a directory, not a script\n"


def test_no_terminal(tmp_path):
    done = debug(tmp_path, TRAIN)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "gradscope debug: the terminal UI needs a terminal; use `gradscope debug --line SCRIPT` for a prompt, "
        "or -c COMMANDS\n"
    )


@pytest.mark.parametrize(
    ("commands", "said"),
    [
        ("stepp", "-c: there is no command 'stepp'; `help` lists them"),
        ("step; run-to", "-c: usage: run-to NODE"),
        (" ; ", "-c needs at least one command, such as 'step; print; continue'"),
    ],
)
def test_wrong_commands_run_nothing(tmp_path, commands, said):
    done = debug(tmp_path, TRAIN, before=("-c", commands))
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"gradscope debug: {said}\n")


def test_a_command_that_fails_makes_the_status_1(tmp_path):
    done = debug(tmp_path, TRAIN, before=("-c", "print nowhere; continue"))
    assert done.returncode == 1
    assert "*** NameError: name 'nowhere' is not defined" in done.stdout


def test_a_script_that_never_calls_backward(tmp_path):
    done = debug(tmp_path, "print('hello')", before=("-c", "step"))
    assert (done.returncode, done.stdout) == (1, "hello\n")
    assert done.stderr == (
        "script.py finished without calling backward(), so there was nothing to stop at.\n"
        "Call .backward() or gradscope.autograd.grad() in it, or pass it the arguments that make it train.\n"
    )


def test_a_script_that_raises_shows_its_own_traceback(tmp_path):
    source = "def f():\n    raise ValueError('no data')\n\nf()\n"
    (tmp_path / "script.py").write_text(source)
    plain = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True)
    done = debug(tmp_path, source, before=("--line",))
    assert done.returncode == 1
    assert done.stderr == plain.stderr + "script.py raised ValueError (exit status 1)\n"


@pytest.mark.parametrize(
    ("source", "status"), [("import sys; sys.exit(3)", 3), ("raise SystemExit", 1), ("import sys; sys.exit('bad')", 1)]
)
def test_the_scripts_own_exit_status(tmp_path, source, status):
    assert debug(tmp_path, source, before=("-c", "continue")).returncode == status


def test_leaving_at_a_failure_is_status_1(tmp_path):
    source = TRAIN.replace("loss.backward()", "loss.backward(gs.ones(7))")
    bug = "import gradscope as gs\ny = gs.ones(2, requires_grad=True).exp()\ny += 1\ny.sum().backward()\n"
    assert debug(tmp_path, bug, before=("-c", "continue; quit")).returncode == 1
    assert debug(tmp_path, source, before=("-c", "continue; quit")).returncode == 1


def test_a_script_that_sleeps_for_ever_does_not_keep_the_debugger(tmp_path):
    source = TRAIN + "import time\ntime.sleep(600)\n"
    (tmp_path / "script.py").write_text(source)
    command = [sys.executable, "-m", "gradscope", "debug", "--line", "script.py"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=tmp_path, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        process.stdin.write("continue\n")
        process.stdin.flush()
        for line in process.stdout:
            if line.startswith("args"):
                break
        process.send_signal(signal.SIGINT)
        assert "pausing at the next node" in process.stdout.readline() + process.stdout.readline()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)
    assert process.returncode == 0


# --- at a terminal ----------------------------------------------------------------------------------------------------


class Terminal:
    """A process at a pseudo-terminal."""

    def __init__(self, command, cwd):
        self.pid, self.fd = pty.fork()
        if not self.pid:
            os.chdir(cwd)
            os.environ["TERM"] = "dumb"
            os.execv(command[0], command)
        self.text = ""

    def until(self, wanted, count=1):
        """Read until `wanted` has appeared `count` times."""
        deadline = time.monotonic() + 30
        while self.text.count(wanted) < count:
            left = deadline - time.monotonic()
            assert left > 0, self.text
            if not select.select([self.fd], [], [], left)[0]:
                continue
            try:
                self.text += os.read(self.fd, 4096).decode()
            except OSError:
                break
        assert self.text.count(wanted) >= count, self.text

    def type(self, text):
        os.write(self.fd, text.encode())

    def status(self):
        try:
            while data := os.read(self.fd, 4096):
                self.text += data.decode()
        except OSError:
            pass
        status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        os.close(self.fd)
        return status


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_prompt_at_a_terminal(tmp_path):
    (tmp_path / "script.py").write_text(TRAIN)
    terminal = Terminal([sys.executable, "-m", "gradscope", "debug", "--line", "script.py"], tmp_path)
    terminal.until("(gradscope) ")
    terminal.type("step\n")
    terminal.until("node 1 of 9")
    terminal.until("(gradscope) ", 2)
    terminal.type("\n")
    terminal.until("node 2 of 9")
    terminal.until("(gradscope) ", 3)
    terminal.type("\x03")
    terminal.until("(quit leaves)")
    terminal.until("(gradscope) ", 4)
    terminal.type("c\n")
    assert terminal.status() == 0
    assert "step 2" in terminal.text
    assert "script.py finished (exit status 0)" in terminal.text
