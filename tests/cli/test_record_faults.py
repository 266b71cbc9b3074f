"""What ``gradscope record`` says, and keeps, where its own code has failed."""

import pytest

from gradscope.cli import main
from gradscope.inspect.adapters import event_guards
from gradscope.inspect.recording.recorder.recorded_events import EventRecorder
from tests.gradscope_command import gradscope

BREAK = """\
import sys
from gradscope.inspect.recording.recorder.recorded_events import EventRecorder
loss, calls = EventRecorder._loss, []
def broken(self, adapter):
    calls.append(None)
    if len(calls) > 2:
        raise ZeroDivisionError("a bug")
    return loss(self, adapter)
EventRecorder._loss = broken
"""

TRAIN = """\
import sys
import {framework} as lib
w = lib.ones(3, requires_grad=True)
optimizer = lib.optim.SGD([w], lr=0.1)
for _ in range(5):
    optimizer.zero_grad()
    (w * w).sum().backward()
    optimizer.step()
print("trained", w.tolist())
sys.exit(5)
"""


@pytest.mark.parametrize("framework", ["gradscope", pytest.param("torch", marks=pytest.mark.torch)])
def test_the_script_ends_as_it_would_and_the_recording_says_where_it_stopped(tmp_path, framework):
    pytest.importorskip(framework)
    script, source = tmp_path / "script.py", TRAIN.format(framework=framework)
    script.write_text(source)
    plain = gradscope("record", "-o", "plain.gscope", "script.py", cwd=tmp_path)
    script.write_text(BREAK + source)
    done = gradscope("record", "-o", "run.gscope", "script.py", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (plain.returncode, plain.stdout)
    assert done.returncode == 5
    own = "gradscope's own code failed; please report it: ZeroDivisionError: a bug (script.py:7)"
    assert done.stderr.splitlines() == [
        f"gradscope: run.gscope: recording has stopped: {own}",
        "The program goes on; what it does from here is not recorded.",
        f"gradscope: recorded 6 nodes in run.gscope; what came after is not recorded: {own}",
    ]
    shown = gradscope("view", "run.gscope", "--text", cwd=tmp_path)
    assert shown.returncode == 0
    assert "2 iterations, 2 backwards, 6 nodes" in shown.stdout
    assert f"  recording has stopped in iteration 3, backward 3, at node 0: {own}" in shown.stdout
    events = gradscope("view", "run.gscope", "--events", cwd=tmp_path)
    assert events.stdout.rstrip().endswith(
        f"stopped  recording has stopped in iteration 3, backward 3, at node 0: {own}"
    )


def test_a_recorder_that_cannot_start_leaves_the_script_unrecorded(tmp_path, monkeypatch, capsys):
    def broken(self, *arguments, **options):
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(event_guards, "raising", False)
    monkeypatch.setattr(EventRecorder, "__init__", broken)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "script.py").write_text("print('ran')\nraise SystemExit(5)\n")
    assert main(["record", "-o", "run.gscope", "script.py"]) == 5
    told = capsys.readouterr()
    assert told.out == "ran\n"
    own = "gradscope's own code failed; please report it: ZeroDivisionError: a bug (test_record_faults.py:"
    assert told.err.startswith(f"gradscope record: the script runs unrecorded: {own}")
