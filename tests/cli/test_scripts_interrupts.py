"""Ctrl-C while a script runs under a command: it ends, with what was found until then and python's exit status."""

import json
import signal
import subprocess
import sys
import time
from textwrap import indent

import pytest

import gradscope.inspect as gi
from tests.cli.sources import BUG
from tests.quick_cases import quick

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="SIGINT is not sent to a process there")

START = f"""\
{BUG}(w * w).sum().backward()

def begun(*unused):
    pathlib.Path("begun").touch()

"""

TRAIN = "begun()\nwhile True:\n    (w * w).sum().backward()\n"
# Short sleeps: Python itself misses a signal that comes between its last look for one and the system's call to sleep.
BACKWARD = (
    "x = w * 2\nx.register_hook(lambda grad: [begun(), *(time.sleep(0.1) for _ in range(600))])\nx.sum().backward()\n"
)
CAUGHT = f"try:\n{indent(TRAIN, '    ')}except KeyboardInterrupt:\n    print('caught')\n    sys.exit(0)\n"
THREAD = "threading.Thread(target=lambda: [begun(), time.sleep(20)], daemon=False).start()\n"


def interrupted(folder, command, source):
    """Press Ctrl-C once the script has begun what it never ends; return exit status, output and errors."""
    (folder / "script.py").write_text(START + source)
    command = [sys.executable, "-m", "gradscope", *command, "script.py"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=folder, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        while not (folder / "begun").exists():
            assert process.poll() is None, process.stderr.read()
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    return process.returncode, out, err


@pytest.mark.parametrize("source", [TRAIN, BACKWARD, THREAD], ids=["training", "in a hook", "waiting for a thread"])
@pytest.mark.parametrize("command", quick(["check", "doctor"], {"check"}))
def test_what_was_found_until_then_is_reported(command, source, tmp_path):
    status, out, err = interrupted(tmp_path, [command], source)
    assert status == 130
    assert out.startswith("GS101 error: ")
    assert ("1 error in " if command == "check" else "1 finding in ") in out
    assert "The script was interrupted; this is what was seen until then.\n" in out
    assert err.endswith("\nKeyboardInterrupt\n") or err == "KeyboardInterrupt\n"
    assert "Exception ignored" not in err
    assert "gradscope/check" not in err
    assert "gradscope/inspect" not in err


def test_the_report_for_machines_has_the_exit_status(tmp_path):
    status, out, _ = interrupted(tmp_path, ["check", "--format", "json"], BACKWARD)
    report = json.loads(out)
    assert (status, report["exit_status"], report["ended_by"]["type"]) == (130, 130, "KeyboardInterrupt")
    assert [finding["code"] for finding in report["findings"]] == ["GS101"]


@pytest.mark.parametrize(
    "source", quick([TRAIN, BACKWARD, THREAD], {BACKWARD}), ids=["training", "in a hook", "waiting for a thread"]
)
def test_what_was_recorded_until_then_is_there(source, tmp_path):
    status, _, err = interrupted(tmp_path, ["record", "-o", "run.gscope"], source)
    assert status == 130
    assert "KeyboardInterrupt\ngradscope: recorded " in err
    with gi.open_recording(tmp_path / "run.gscope") as recording:
        assert recording.runs[0].state == "finished"
        assert len(recording.tasks()) >= 2


@pytest.mark.parametrize(("command", "expected"), quick([("check", 1), ("record", 0)], {("record", 0)}))
def test_a_script_that_catches_it_has_its_own_exit_status(command, expected, tmp_path):
    status, out, err = interrupted(tmp_path, [command], CAUGHT)
    assert (status, out.startswith("caught\n")) == (expected, True)
    assert "KeyboardInterrupt" not in err


@pytest.mark.parametrize("source", [BACKWARD, THREAD], ids=["in a hook", "waiting for a thread"])
def test_no_graph_is_awaited_any_longer(source, tmp_path):
    tidied = "import atexit\natexit.register(pathlib.Path('tidied').touch)\n" * (source is BACKWARD)
    status, out, err = interrupted(tmp_path, ["graph", "--backward", "9"], tidied + source)
    assert (status, out, err) == (130, "", "gradscope: interrupted\n")
    assert (tmp_path / "tidied").exists() == bool(tidied)
