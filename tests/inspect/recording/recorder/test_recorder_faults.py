"""An error of the recorder's own ends the recording alone: the program goes on, and what was recorded is there."""

import pytest

import gradscope as gs
import gradscope.inspect as gi
from gradscope.inspect.adapters import NativeAdapter, event_guards
from gradscope.inspect.adapters.native_adapter import NativeObservation
from gradscope.inspect.recording.file.batch_writer import BatchWriter
from gradscope.inspect.recording.file.recording_file import RecordingFile
from gradscope.inspect.recording.recorder.gradient_capture import GradientCapture
from gradscope.inspect.recording.recorder.hang_watch import HangWatch
from gradscope.inspect.recording.recorder.iteration_marks import IterationCounter
from gradscope.inspect.recording.recorder.plan_cache import PlanCache
from gradscope.inspect.recording.recorder.recorded_events import EventRecorder
from gradscope.inspect.recording.reports.text_view import overview_text
from gradscope.inspect.records.module_tracking import Tracker
from gradscope.inspect.records.optimizer_steps import OptimizerHooks

OWN = "gradscope's own code failed; please report it: ValueError: a bug (test_recorder_faults.py:"


@pytest.fixture(autouse=True)
def as_users_have_it(monkeypatch):
    monkeypatch.setattr(event_guards, "raising", False)


def fails_from(count, real):
    """Return a function that does what another does until it is called for the nth time."""
    calls = []

    def broken(*args, **options):
        calls.append(None)
        if len(calls) >= count:
            raise ValueError("a bug\nwith two lines")
        return real(*args, **options)

    return broken


def train(recorder=None):
    """Train for six steps; return the bits of the parameters."""
    gs.manual_seed(0)
    model = gs.nn.Sequential(gs.nn.Linear(2, 3), gs.nn.Tanh(), gs.nn.Linear(3, 1))
    optimizer = gs.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(6):
        optimizer.zero_grad()
        model(gs.ones(4, 2)).sum().backward()
        optimizer.step()
        if recorder is not None:
            recorder.flush()
    return [parameter.detach().numpy().tobytes() for parameter in model.parameters()]


def backwards_in(path):
    """Return how many backwards a recording holds, and what it says of its end."""
    with gi.open_recording(path) as recording:
        tasks = recording.tasks()
        assert all(node.name for task in tasks for node in task.nodes)
        told = [event.text for event in recording.events() if event.kind == "stopped"]
        assert recording.runs[0].state == "finished"
        assert not told or told[0] in overview_text(recording)
        return len(tasks), told


@pytest.mark.parametrize(
    ("owner", "name", "count", "backwards"),
    [
        (EventRecorder, "_loss", 4, 3),
        (PlanCache, "find", 4, 3),
        (GradientCapture, "take", 31, 4),
        (GradientCapture, "unpack", 4, 4),
        (IterationCounter, "stepped", 4, 4),
        (Tracker, "_whole", 1, 0),
        (BatchWriter, "commit", 5, 3),
        (RecordingFile, "finish", 1, 6),
        (OptimizerHooks, "_listen_to", 1, 0),
    ],
    ids=lambda each: getattr(each, "__name__", str(each)),
)
def test_the_program_goes_on_and_the_file_says_where_it_has_stopped(
    tmp_path, monkeypatch, capsys, owner, name, count, backwards
):
    plain = train()
    monkeypatch.setattr(owner, name, fails_from(count, getattr(owner, name)))
    with gi.record(tmp_path / "run.gscope") as recorder:
        assert train(recorder) == plain
    said = capsys.readouterr().err
    assert said.count("recording has stopped") == 1
    assert OWN in said
    assert said.endswith("The program goes on; what it does from here is not recorded.\n")
    assert recorder.fault.startswith("ValueError: a bug (test_recorder_faults.py:")
    assert recorder.failure == f"gradscope's own code failed; please report it: {recorder.fault}"
    found, (told,) = backwards_in(tmp_path / "run.gscope")
    assert told.startswith("recording has stopped")
    assert OWN in told
    assert found == backwards


def test_an_error_at_the_end_leaves_the_recording_whole(tmp_path, monkeypatch):
    close = NativeObservation.close

    def closes_and_fails(self):
        close(self)
        raise ValueError("a bug")

    monkeypatch.setattr(NativeObservation, "close", closes_and_fails)
    with gi.record(tmp_path / "run.gscope") as recorder:
        train()
    assert OWN in recorder.failure
    assert backwards_in(tmp_path / "run.gscope")[0] == 6


def test_the_nodes_before_the_error_are_all_there(tmp_path, monkeypatch):
    train()
    monkeypatch.setattr(GradientCapture, "take", fails_from(15, GradientCapture.take))
    with gi.record(tmp_path / "run.gscope") as recorder:
        train()
    with gi.open_recording(tmp_path / "run.gscope") as recording:
        (text,) = (event.text for event in recording.events())
        assert sum(task.count for task in recording.tasks()) == recorder.nodes == 14
        last = recording.tasks()[-1]
        assert f"in iteration {last.iteration}, backward {last.id}, at node {last.count}: gradscope's own" in text
        assert last.state == "running"


def test_what_the_program_asks_of_a_recorder_that_has_failed_is_no_error(tmp_path, monkeypatch):
    monkeypatch.setattr(EventRecorder, "_loss", fails_from(1, EventRecorder._loss))
    with gi.record(tmp_path / "run.gscope") as recorder:
        train()
        recorder.mark("a note")
        recorder.flush()
        assert [recorder.iteration(), recorder.iteration("last")] == [2, 3]
    assert backwards_in(tmp_path / "run.gscope")[0] == 0


def test_a_look_at_where_the_program_stands_does_not_end_the_writer(tmp_path, monkeypatch):
    monkeypatch.setattr(HangWatch, "quiet", fails_from(1, HangWatch.quiet))
    with gi.record(tmp_path / "run.gscope") as recorder:
        recorder._events.become_rank()
        recorder._writer.quiet(0)
        train()
    assert OWN in recorder.failure
    assert backwards_in(tmp_path / "run.gscope")[0] == 0


def test_an_adapter_that_fails_is_no_error_of_the_programs(tmp_path, capsys):
    class Broken(NativeAdapter):
        def plan(self, task):
            raise ValueError("a bug")

    with gi.record(tmp_path / "run.gscope", adapter=Broken()) as recorder:
        train()
    assert "ValueError: a bug" in recorder.failure
    assert capsys.readouterr().err.count("recording has stopped") == 1


def test_an_interrupt_is_the_persons_and_passes(tmp_path, monkeypatch):
    def interrupted(self, adapter):
        raise KeyboardInterrupt

    monkeypatch.setattr(EventRecorder, "_loss", interrupted)
    with pytest.raises(KeyboardInterrupt), gi.record(tmp_path / "run.gscope"):
        train()
