"""A script that ends the process itself, or leaves streams behind that are no files."""

import os
import subprocess
import sys
from textwrap import dedent

import pytest

import gradscope.inspect as gi
from tests.cli.sources import BUG
from tests.gradscope_command import gradscope
from tests.quick_cases import quick

# Each ends the process, or says so, in one way.
LEAVING = {
    "at once": "print('last', flush=True)\nos._exit(0)\n",
    "in a thread": "print('last', flush=True)\nthreading.Thread(target=os._exit, args=(0,)).start()\n"
    "threading.Event().wait(60)\n",
    "in a hook": "print('last', flush=True)\nx = w * 2\nx.register_hook(lambda grad: os._exit(0))\n"
    "x.sum().backward()\n",
}


def run(folder, source, *command):
    (folder / "script.py").write_text(dedent(source))
    return gradscope(*command, "script.py", cwd=folder, timeout=60)


@pytest.mark.parametrize("command", ["check", "doctor"])
@pytest.mark.parametrize("where", LEAVING)
def test_findings_are_reported_before_os_exit(command, where, tmp_path):
    done = run(tmp_path, BUG + LEAVING[where], command)
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.startswith("last\nGS101 error: ")
    assert ("\nFound 1 error in " if command == "check" else "\n1 finding in ") in done.stdout


def test_the_status_of_os_exit_counts_where_nothing_was_found(tmp_path):
    done = run(tmp_path, "import os; os._exit(9)\n", "check")
    assert (done.returncode, done.stderr) == (2, "gradscope check: script.py ended with exit status 9\n")


@pytest.mark.parametrize("where", LEAVING)
def test_a_recording_is_whole_before_os_exit(where, tmp_path):
    done = run(tmp_path, BUG + LEAVING[where].replace("0", "7"), "record")
    assert (done.returncode, done.stdout) == (7, "last\n")
    assert done.stderr.startswith("gradscope: recorded ")
    with gi.open_recording(tmp_path / "script.gscope") as recording:
        assert recording.runs[0].state == "finished"
        assert len(recording.tasks()) == 1 + (where == "in a hook")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_a_child_leaves_by_os_exit_without_a_word(tmp_path):
    forked = "if not os.fork():\n    os._exit(3)\nprint(os.waitstatus_to_exitcode(os.wait()[1]))\n"
    done = run(tmp_path, BUG + forked, "check")
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.startswith("3\nGS101 error: ")
    assert done.stdout.count("GS101 error") == 1


def test_the_graph_is_drawn_though_the_script_leaves_by_os_exit(tmp_path):
    done = run(tmp_path, BUG.replace("except RuntimeError:\n    pass", "finally:\n    os._exit(0)"), "graph")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("3 nodes, ")
    done = run(tmp_path, "import os; os._exit(0)\n", "graph")
    said = "gradscope graph: script.py ended by os._exit(0), before its first backward\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", said)


@pytest.mark.parametrize("status", quick([0, 9], {9}))
def test_the_debugger_ends_as_a_script_that_leaves_by_os_exit(status, tmp_path):
    done = run(tmp_path, f"print('last', flush=True)\nimport os; os._exit({status})\n", "debug", "-c", "continue")
    assert done.returncode == status, done.stderr
    assert "last\n" in done.stdout
    assert f"script.py has ended (exit status {status})" in done.stdout + done.stderr


@pytest.mark.parametrize(
    "stream",
    ["None", "type('Tee', (), {'write': lambda self, text: real.write(text), 'flush': lambda self: real.flush()})()"],
    ids=["none", "a tee"],
)
@pytest.mark.parametrize("command", [["check"], ["record"], ["doctor"], ["debug", "-c", "continue"]], ids=" ".join)
def test_a_script_may_put_what_is_no_file_in_the_place_of_stdout(command, stream, tmp_path):
    source = """\
    import sys
    import gradscope as gs
    real = sys.stdout
    sys.stdout = STREAM
    gs.ones(3, requires_grad=True).sum().backward()
    print("shown")
    """
    done = run(tmp_path, source.replace("STREAM", stream), *command)
    assert done.returncode == 0, done.stderr
    assert ("shown\n" in done.stdout) == (stream != "None")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", ["check", "record"])
def test_an_executor_that_nobody_shut_down_ends_as_under_python(command, tmp_path):
    source = """\
    from concurrent.futures import ThreadPoolExecutor
    pool = ThreadPoolExecutor(1)
    print(pool.submit(int, "3").result())
    """
    done = run(tmp_path, source, command)
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, "3")


SPAWNING = """\
import multiprocessing
import gradscope as gs

def train():
    pass

if __name__ == "__main__":
    process = multiprocessing.get_context("spawn").Process(target=train)
    process.start()
    process.join()
"""


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (["check"], "Nothing was checked: the script uses neither gradscope nor PyTorch.\nNot looked into: 1 process "),
        (["doctor"], "No backward pass was seen.\nNot looked into: 1 process "),
        (["record"], "(the script never called backward())\ngradscope: not recorded: 1 process "),
        pytest.param(
            ["debug", "--line", "-c", "continue"],
            "nothing to stop at.\nNot looked into: 1 process ",
            marks=pytest.mark.slow,
        ),
    ],
    ids=lambda value: value[0],
)
def test_a_script_that_trains_in_another_process_is_told_so(command, told, tmp_path):
    done = run(tmp_path, SPAWNING, *command)
    assert f"{told}that the script started, which runs `train`: " in done.stdout + done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="no pipe to head there")
def test_a_debugged_script_ends_as_it_does_when_nobody_reads_on(tmp_path):
    (tmp_path / "script.py").write_text(
        "import atexit\n"
        "import pathlib\n"
        "import gradscope as gs\n"
        "atexit.register(pathlib.Path('tidied').touch)\n"
        "x = gs.ones(2, requires_grad=True)\n"
        "for _ in range(3):\n"
        "    (x * x).sum().backward()\n"
    )
    command = [sys.executable, "-m", "gradscope", "debug", "--line", "-c", "print; continue; print", "script.py"]
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(command, cwd=tmp_path, stdout=writer, stderr=subprocess.PIPE, text=True, timeout=60)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")
    assert (tmp_path / "tidied").exists()
