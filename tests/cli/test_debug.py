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

from tests.gradscope_command import gradscope
from tests.quick_cases import quick

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

MOVING = TRAIN.replace("for step", "import os; os.chdir('/')\nfor step")

DUMP = TRAIN + "for p in model.parameters():\n    print(p.detach().numpy().tobytes().hex())\n"


def debug(tmp_path, source, *arguments, before=(), text=None):
    """Run ``gradscope debug`` on a script in a process of its own, without a terminal."""
    (tmp_path / "script.py").write_text(dedent(source))
    return gradscope("debug", *before, "script.py", *arguments, cwd=tmp_path, input=text or "")


def test_places_are_named_from_where_the_script_was_started(tmp_path):
    done = debug(tmp_path, MOVING, before=("-c", "step; flow"))
    assert done.stdout.count("  script.py:10  loss = (model(x) ** 2).mean()") == 2
    assert tmp_path.name not in done.stdout


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


DEEP = """
import gradscope as gs
layers = [layer for _ in range(7) for layer in (gs.nn.Linear(8, 8), gs.nn.Sigmoid())]
model = gs.nn.Sequential(*layers, gs.nn.Linear(8, 1))
model(gs.ones(2, 8)).sum().backward()
"""


@pytest.mark.parametrize(
    ("limit", "found"),
    quick([("1e-4", "7 Sigmoid in a row"), ("1e-6", "nothing wrong is seen")], {("1e-4", "7 Sigmoid in a row")}),
)
def test_limits_of_findings_are_set_on_the_command_line(tmp_path, limit, found):
    done = debug(tmp_path, DEEP, before=("--limit", f"bounded_chain={limit}", "-c", "findings; quit"))
    assert (done.returncode, done.stderr) == (0, "")
    assert found in done.stdout


def test_a_limit_of_the_doctors_is_refused_before_anything_starts(tmp_path):
    done = debug(tmp_path, "print('started')", before=("--limit", "dead=0.5", "-c", "quit"))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "gradscope debug: no finding of the debugger's has the limit dead\n"
        "The doctor's have: gradscope doctor --limit dead=0.5.\n"
    )


@pytest.mark.slow
def test_commands_that_stop_before_the_end(tmp_path):
    done = debug(tmp_path, TRAIN, before=("-c", "b param:2.bias; c; p node.parameter; q"))
    assert done.returncode == 0
    assert "stopped before node 4 of 9: AccumulateGrad  2.bias - breakpoint 1 (param:2.bias)" in done.stdout
    assert "'2.bias'" in done.stdout
    assert "script.py was ended before its end; " in done.stdout.splitlines()[-1]
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


@pytest.mark.parametrize("name", quick(["digits_mlp.py", "scalar_graph.py"], {"scalar_graph.py"}))
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
    assert done.stderr == (f"gradscope debug: {str(tmp_path)!r} is a directory without a __main__.py, not a script\n")


def test_no_terminal(tmp_path):
    done = debug(tmp_path, TRAIN)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "gradscope debug: the terminal UI needs a terminal that moves its cursor; use `gradscope debug --line SCRIPT` "
        "for a prompt, or -c COMMANDS\n"
    )


@pytest.mark.parametrize(
    ("commands", "said"),
    [
        ("xyzzy", "-c: there is no command 'xyzzy'; `help` lists them"),
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


@pytest.mark.parametrize(
    "source",
    [
        "def f():\n    raise ValueError('no data')\n\nf()\n",
        pytest.param(
            "import torch\n\nw = torch.ones(3, requires_grad=True)\n"
            "torch.nn.functional.cross_entropy(w, torch.tensor([0, 1]))\n",
            marks=pytest.mark.torch,
            id="in a function of PyTorch that its dispatchers call",
        ),
    ],
)
def test_a_script_that_raises_shows_its_own_traceback(tmp_path, source):
    (tmp_path / "script.py").write_text(source)
    plain = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True)
    done = debug(tmp_path, source, before=("--line",))
    assert done.returncode == 1
    assert done.stderr == plain.stderr + "script.py raised ValueError (exit status 1)\n"


@pytest.mark.parametrize(
    ("source", "status"),
    quick(
        [("import sys; sys.exit(3)", 3), ("raise SystemExit", 1), ("import sys; sys.exit('bad')", 1)],
        {("import sys; sys.exit(3)", 3)},
    ),
)
def test_the_scripts_own_exit_status(tmp_path, source, status):
    assert debug(tmp_path, source, before=("-c", "continue")).returncode == status


def test_leaving_at_a_failure_is_status_1(tmp_path):
    source = TRAIN.replace("loss.backward()", "loss.backward(gs.ones(7))")
    bug = "import gradscope as gs\ny = gs.ones(2, requires_grad=True).exp()\ny += 1\ny.sum().backward()\n"
    assert debug(tmp_path, bug, before=("-c", "continue; quit")).returncode == 1
    assert debug(tmp_path, source, before=("-c", "continue; quit")).returncode == 1


@pytest.mark.slow
def test_a_script_that_sleeps_for_ever_does_not_keep_the_debugger(tmp_path):
    source = TRAIN + "import sys, time\nsys.stdout.flush()\ntime.sleep(600)\n"
    (tmp_path / "script.py").write_text(source)
    command = [sys.executable, "-m", "gradscope", "debug", "--line", "script.py"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=tmp_path, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        process.stdin.write("continue\n")
        process.stdin.flush()
        for line in process.stdout:
            if line.startswith("args"):
                break
        interrupt(process)
        process.communicate(timeout=30)
    assert process.returncode == 130


def interrupt(process):
    """Press Ctrl-C, and again when the answer has come."""
    process.send_signal(signal.SIGINT)
    assert "pausing at the next node" in process.stdout.readline() + process.stdout.readline()
    process.send_signal(signal.SIGINT)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("for _ in range(10**12):\n    pass", "script.py was ended before its end"),
        (
            "for _ in range(10**12):\n    try:\n        time.sleep(1)\n    except:\n        print('caught')\n"
            "        break\nfor _ in range(10**12):\n    len('')",
            "caught\nhandled\nscript.py was ended before its end",
        ),
        (
            "threading.Thread(target=threading.Event().wait).start()\nlock = threading.Lock()\nlock.acquire()\n"
            "lock.acquire()",
            "script.py was left before its end: it does not come back from {}/script.py:10",
        ),
    ],
    ids=["a loop", "a loop that catches it", "a lock"],
)
def test_a_script_that_never_ends_is_ended_by_a_second_interrupt(tmp_path, source, said):
    start = "import atexit, threading, time\nimport gradscope as gs\n"
    start += "x = gs.ones(2, requires_grad=True)\nx.sum().backward()\n"
    start += "atexit.register(print, 'handled')\nprint('running', flush=True)\n"
    (tmp_path / "script.py").write_text(start + source)
    command = [sys.executable, "-m", "gradscope", "debug", "--line", "script.py"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=tmp_path, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        process.stdin.write("continue\n")
        process.stdin.flush()
        while process.stdout.readline() != "running\n":
            pass
        interrupt(process)
        out, err = process.communicate(timeout=60)
    assert said.format(os.path.realpath(tmp_path)) in out + err
    assert process.returncode == 130


# --- the command line -------------------------------------------------------------------------------------------------


def test_commands_of_several_options_and_files_in_their_order(tmp_path):
    (tmp_path / "first.txt").write_text("# a comment\n\nstep; step\n  print node.name  \n  # another\n")
    done = debug(tmp_path, TRAIN, before=("-c", "step", "--commands", "first.txt", "-c", "quit"))
    assert done.returncode == 0
    assert [line for line in done.stdout.splitlines() if line.startswith("(gradscope)")] == [
        "(gradscope) step",
        "(gradscope) step",
        "(gradscope) step",
        "(gradscope) print node.name",
        "(gradscope) quit",
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "argument --commands: cannot read 'commands.txt': No such file or directory\n"),
        (b"step\n\xff\n", "argument --commands: cannot read 'commands.txt': it is not UTF-8 text\n"),
        (b"step\nxyzzy\n", "commands.txt: there is no command 'xyzzy'; `help` lists them\n"),
        (b"# nothing\n", "commands.txt needs at least one command, such as 'step; print; continue'\n"),
    ],
)
def test_a_file_of_commands_that_cannot_be_carried_out(tmp_path, text, said):
    if text is not None:
        (tmp_path / "commands.txt").write_bytes(text)
    done = debug(tmp_path, TRAIN, before=("--commands", "commands.txt"))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.endswith(f"gradscope debug: {said}") or done.stderr.endswith(f"error: {said}")


@pytest.mark.parametrize(
    "before",
    [
        ("-c", "continue", "-m"),
        pytest.param(("-c", "continue"), marks=pytest.mark.slow),
        pytest.param(("-c", "continue", "--"), marks=pytest.mark.slow),
    ],
    ids=["-m", "a name", "--"],
)
def test_what_follows_the_script_is_the_scripts(tmp_path, before):
    (tmp_path / "train.py").write_text(TRAIN)
    name = "train.py" if before[-1] == "--" else "train"
    command = [sys.executable, "-m", "gradscope", "debug", *before, name, "--line", "-c", "--", "-m"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith(f"args ['--line', '-c', '--', '-m']\n{name} finished (exit status 0)\n")


def test_a_missing_module(tmp_path):
    command = [sys.executable, "-m", "gradscope", "debug", "-c", "step", "-m", "nowhere.at_all"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (
        2,
        "",
        "gradscope debug: there is no module 'nowhere.at_all'\n",
    )


# --- input, output, children ------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_where_commands_come_through_stdin_the_script_has_none(tmp_path):
    source = "input('name? ')\n"
    done = debug(tmp_path, source, before=("--line",), text="continue\n")
    assert (done.returncode, done.stdout) == (1, "name? ")
    assert "EOFError: EOF when reading a line" in done.stderr


@pytest.mark.slow
def test_a_line_that_the_script_has_begun_is_not_written_on(tmp_path):
    source = TRAIN.replace("    loss.backward()", "    print('loss', end=' ')\n    loss.backward()")
    done = debug(tmp_path, source + "print('the end', end='')", before=("-c", "step; continue"))
    assert done.stdout.startswith("loss \nstopped before node 0 of 9")
    assert done.stdout.endswith(
        "step 0\nloss step 1\nloss step 2\nargs []\nthe end\nscript.py finished (exit status 0)\n"
    )


@pytest.mark.slow
def test_the_debuggers_words_do_not_follow_stdout_into_the_scripts_file(tmp_path):
    source = "import os\nfile = open('log.txt', 'w')\nos.dup2(file.fileno(), 1)\nprint('logged')\n" + TRAIN
    done = debug(tmp_path, source, before=("-c", "step; continue"))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("stopped before node 0 of 9")
    assert done.stdout.endswith("script.py finished (exit status 0)\n")
    assert (tmp_path / "log.txt").read_text() == "logged\nstep 0\nstep 1\nstep 2\nargs []\n"


def test_children_and_threads_run_free(tmp_path):
    source = """\
        import multiprocessing, os, threading
        import gradscope as gs

        def backward(name):
            x = gs.ones(2, requires_grad=True)
            (x * 2).sum().backward()
            print(name, x.grad.tolist(), flush=True)

        if __name__ == "__main__":
            x = gs.ones(2, requires_grad=True)
            y = (x * 2).sum()
            pid = os.fork()
            if not pid:
                backward("forked")
                os._exit(3)
            print("exit", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
            for method in ("fork", "spawn"):
                child = multiprocessing.get_context(method).Process(target=backward, args=(method,))
                child.start()
                child.join()
                print("exit", child.exitcode)
            y.backward()
            threading.Thread(target=backward, args=("thread",)).start()
        """
    done = debug(tmp_path, source, before=("-c", "continue; continue"))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[:7] == [
        "forked [2.0, 2.0]",
        "exit 3",
        "fork [2.0, 2.0]",
        "exit 0",
        "spawn [2.0, 2.0]",
        "exit 0",
        "stopped before node 0 of 3: SumBackward0 - first node of backward 1",
    ]
    assert "thread [2.0, 2.0]" in done.stdout


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

    def interrupt_at_prompt(self, answer):
        """Press Ctrl-C until it is answered: readline misses one that comes between its prompt and its wait."""
        for _ in range(10):
            self.type("\x03")
            if select.select([self.fd], [], [], 2)[0]:
                break
        self.until(answer)

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
def test_the_terminal_is_the_scripts_while_it_runs(tmp_path):
    source = (
        "import sys\nprint(sys.stdin.isatty(), sys.stdout.isatty())\nname = input('name? ')\nprint('hello', name)\n"
    )
    (tmp_path / "script.py").write_text(source + TRAIN + "input('again? ')\n")
    terminal = Terminal([sys.executable, "-m", "gradscope", "debug", "--line", "script.py"], tmp_path)
    terminal.until("name? ")
    terminal.type("Ada\n")
    terminal.until("hello Ada")
    terminal.until("(gradscope) ")
    terminal.type("continue\n")
    terminal.until("again? ")
    terminal.type("\x03")
    terminal.until("pausing at the next node")
    terminal.type("\x03")
    assert terminal.status() == 130
    assert terminal.text.startswith("True True")
    assert "it does not come back from" in terminal.text


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
    terminal.interrupt_at_prompt("(quit leaves)")
    terminal.until("(gradscope) ", 4)
    terminal.type("c\n")
    terminal.until("the program has ended (exit status 0)")
    terminal.until("(gradscope) ", 5)
    terminal.type("back\n")
    terminal.until("looking at node 2 of 9")
    terminal.type("q\n")
    assert terminal.status() == 0
    assert "step 2" in terminal.text
    assert "script.py finished (exit status 0)" in terminal.text
