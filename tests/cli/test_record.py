"""``gradscope record`` as a user runs it: in a process of its own."""

import os
import signal
import subprocess
import sys
import time
from textwrap import dedent

import pytest

import gradscope.inspect as gi
from tests.gradscope_command import gradscope

TRAIN = """\
import sys
import gradscope as gs

w = gs.ones(3, requires_grad=True)
optimizer = gs.optim.SGD([w], lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    (w * w).sum().backward()
    optimizer.step()
print("trained", sys.argv, w.tolist())
"""


def record(folder, source, *arguments, before=(), **options):
    (folder / "script.py").write_text(dedent(source))
    if not options.keys() - {"input"}:
        return gradscope("record", *before, "script.py", *arguments, cwd=folder, **options)
    command = [sys.executable, "-m", "gradscope", "record", *before, "script.py", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, **options)


def test_the_file_may_stand_last(tmp_path):
    done = record(tmp_path, "import sys\nprint(sys.argv[1:])\n", "-o", "log.txt", "-o", "run.gscope")
    assert (done.returncode, done.stdout) == (0, "['-o', 'log.txt']\n")
    assert (tmp_path / "run.gscope").exists()


def test_a_script(tmp_path):
    done = record(tmp_path, TRAIN, "--lr", "1", before=["-o", "run.gscope"])
    plain = subprocess.run(
        [sys.executable, "script.py", "--lr", "1"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert (done.returncode, done.stdout) == (0, plain.stdout)
    assert done.stderr == "gradscope: recorded 9 nodes in run.gscope\n"
    with gi.open_recording(tmp_path / "run.gscope") as recording:
        (run,) = recording.runs
        assert (run.title, run.state) == ("script.py", "finished")
        assert [task.iteration for task in recording.tasks()] == [1, 2, 3]


def test_the_default_file_and_what_is_kept(tmp_path):
    done = record(tmp_path, TRAIN, before=["--keep", "op:Mul", "--last", "1"])
    assert done.stderr == "gradscope: recorded 9 nodes in script.gscope\n"
    with gi.open_recording(tmp_path / "script.gscope") as recording:
        assert [recording.value(task, 1) is not None for task in (1, 2, 3)] == [False, False, True]
        assert recording.value(3, 0) is None


def test_the_script_runs_as_python_runs_it(tmp_path):
    source = """\
    import atexit, signal, sys, threading, os
    assert __name__ == "__main__" and threading.current_thread() is threading.main_thread()
    assert sys.path[0] == os.getcwd() and sys.modules["__main__"].__dict__ is globals()
    signal.signal(signal.SIGTERM, lambda number, frame: print("handled"))
    os.kill(os.getpid(), signal.SIGTERM)
    print(input(), sys.stdin.readline().strip(), sys.argv)
    atexit.register(print, "bye")
    sys.exit(7)
    """
    done = record(tmp_path, source, "a", input="one\ntwo\n")
    assert (done.returncode, done.stdout) == (7, "handled\none two ['script.py', 'a']\nbye\n")
    assert "never called backward()" in done.stderr


def test_a_script_that_raises(tmp_path):
    done = record(tmp_path, TRAIN + "raise ValueError('no more')\n")
    assert done.returncode == 1
    assert done.stderr.splitlines()[:3] == [
        "Traceback (most recent call last):",
        f'  File "{tmp_path / "script.py"}", line 11, in <module>',
        "    raise ValueError('no more')",
    ]
    assert done.stderr.endswith("ValueError: no more\ngradscope: recorded 9 nodes in script.gscope\n")


@pytest.mark.slow
def test_a_module_and_another_thread(tmp_path):
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("")
    (tmp_path / "package" / "train.py").write_text(
        "import threading, gradscope as gs\n"
        "def work():\n    (gs.ones(2, requires_grad=True) * 2).sum().backward()\n"
        "threading.Timer(0.1, work).start()\n"
    )
    command = [sys.executable, "-m", "gradscope", "record", "-m", "package.train"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "gradscope: recorded 3 nodes in train.gscope\n")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_a_script_that_forks(tmp_path):
    source = TRAIN + dedent("""\
        import os
        child = os.fork()
        (w * 2).sum().backward()
        if child:
            assert os.waitpid(child, 0)[1] == 0
    """)
    done = record(tmp_path, source)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("recorded 12 nodes in script.gscope") == 1
    assert done.stderr.count("gradscope: recorded") == 1
    with gi.open_recording(tmp_path / "script.gscope") as recording:
        assert [task.count for task in recording.tasks()] == [3, 3, 3, 3]


def test_a_full_disk(tmp_path):
    resource = pytest.importorskip("resource", reason="limits the size of files")
    source = TRAIN.replace("range(3)", "range(300)").replace("trained", "trained all the same")

    def little_room():
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))

    done = record(tmp_path, source, before=["--keep", "all"], preexec_fn=little_room)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("trained all the same")
    assert done.stderr.count("recording has stopped") == 1
    assert "lost" in done.stderr
    with gi.open_recording(tmp_path / "script.gscope") as recording:
        for task in recording.tasks():
            assert len(list(task.nodes)) == task.count


def committed(path):
    """Return how many backwards another process has committed to a file by now."""
    if not path.exists():
        return 0
    with gi.open_recording(path) as recording:
        return len(recording.tasks())


def test_a_script_that_is_killed(tmp_path):
    (tmp_path / "script.py").write_text(TRAIN.replace("range(3)", "range(10**9)"))
    command = [sys.executable, "-m", "gradscope", "record", "script.py"]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.DEVNULL)
    path = tmp_path / "script.gscope"
    end = time.monotonic() + 60
    while committed(path) <= 3 and time.monotonic() < end:
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    with gi.open_recording(path) as recording:
        assert len(recording.tasks()) > 3
        assert recording.runs[0].state == "running"
        assert recording.tasks()[0].nodes[2].parameter == ""


@pytest.mark.parametrize(
    ("before", "message"),
    [
        (["-o", "missing/run.gscope"], "cannot be written"),
        (["-o", "script.py"], "not a gradscope recording"),
        (["--keep", "everything"], "keep= is 'none', 'summaries', 'all'"),
        (["--budget", "lots"], "not a size in bytes"),
        (["--keep", "all", "--last", "0"], "at least 1"),
        (["--last", "2"], "--last is of values, and --keep summaries keeps none"),
    ],
)
def test_what_cannot_be_done_is_refused_before_the_script_runs(tmp_path, before, message):
    done = record(tmp_path, "print('ran')\n", before=before)
    assert done.returncode == 2
    assert done.stdout == ""
    assert message in done.stderr
    assert done.stderr.startswith("gradscope record: ")


def test_no_script(tmp_path):
    command = [sys.executable, "-m", "gradscope", "record", "nowhere.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (2, "gradscope record: there is no script 'nowhere.py'\n")


def test_ranks_write_apart_and_one_that_cannot_write_does_not_end_the_job(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "rank-1.gscope").write_text("somebody's own")
    for rank, told in enumerate(("recorded 9 nodes in run/rank-0.gscope", "rank 1 runs unrecorded: run/rank-1.gscope")):
        place = {"RANK": str(rank), "WORLD_SIZE": "2"}
        done = record(tmp_path, TRAIN, before=["-o", "run/"], env={**os.environ, **place})
        assert (done.returncode, done.stdout[:7]) == (0, "trained"), done.stderr
        assert told in done.stderr
    assert (tmp_path / "run" / "rank-1.gscope").read_text() == "somebody's own"
