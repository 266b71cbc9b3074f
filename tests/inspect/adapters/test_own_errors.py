"""An error of gradscope's own, in any instrument under either framework, is none of the program's."""

import importlib
import sys
import warnings
from contextlib import contextmanager

import numpy
import pytest

import gradscope.inspect as gi
from gradscope.check import Sanitizer
from gradscope.check.findings.finding_codes import CODES
from gradscope.check.suppression.code_selection import CodeSelection
from gradscope.check.suppression.silences import Silences
from gradscope.check.watching.continuing_watcher import ContinuingWatcher
from gradscope.check.watching.early_writes import EarlyWriteWatch
from gradscope.check.watching.saved_values import SavedValues
from gradscope.check.watching.shared_writes import SharedWriteWatch
from gradscope.check.watching.watcher import _RunningBackwards
from gradscope.inspect.adapters import event_guards
from gradscope.inspect.debugging.session.session_observer import SessionObserver
from gradscope.inspect.diagnosis.memory.tensor_leaks import leaks
from gradscope.inspect.diagnosis.watch import Watch
from gradscope.inspect.diagnosis.watch_table import WatchTable
from gradscope.inspect.recording.recorder.gradient_capture import GradientCapture
from gradscope.inspect.records.module_tracking import Tracker
from gradscope.inspect.records.write_account import WriteAccount

from ..sessions import debugging, wait

OWN = "gradscope's own code failed; please report it: ZeroDivisionError: a bug (test_own_errors.py:"


@pytest.fixture(autouse=True)
def as_users_have_it(monkeypatch):
    monkeypatch.setattr(event_guards, "raising", False)


@pytest.fixture(autouse=True)
def leaves_nothing():
    """What stands on PyTorch's stacks of modes before and after a test."""
    yield
    if "torch" in sys.modules:
        core = sys.modules["torch"]._C
        assert (core._len_torch_function_stack(), core._len_torch_dispatch_stack()) == (0, 0)


@pytest.fixture(params=["gradscope", pytest.param("torch", marks=pytest.mark.torch)])
def framework(request):
    """Each framework in turn."""
    return pytest.importorskip(request.param)


@pytest.fixture
def break_from(monkeypatch):
    """Return a function that has another fail from its nth call on."""

    def break_it(owner, name, count=1):
        real, calls = getattr(owner, name), []

        def broken(*args, **options):
            calls.append(None)
            if len(calls) >= count:
                raise ZeroDivisionError("a bug\nwith two lines")
            return real(*args, **options)

        monkeypatch.setattr(owner, name, broken)
        return calls

    return break_it


def train(framework):
    """Train for four steps; return the bits of the parameters."""
    framework.manual_seed(0)
    model = framework.nn.Sequential(framework.nn.Linear(2, 3), framework.nn.Tanh(), framework.nn.Linear(3, 1))
    optimizer = framework.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(4):
        optimizer.zero_grad()
        result = model(framework.ones(4, 2)) * 2
        result.add_(1)
        result.sum().backward()
        optimizer.step()
    return [parameter.detach().numpy().tobytes() for parameter in model.parameters()]


@contextmanager
def recorded(tmp_path):
    """Record the block; yield a function that returns by which error that has stopped."""
    with gi.record(tmp_path / "run.gscope") as recorder:
        yield lambda: recorder.failure
    with gi.open_recording(tmp_path / "run.gscope") as recording:
        (event,) = recording.events()
        assert event.kind == "stopped"
        assert OWN in event.text


@contextmanager
def checked(tmp_path):
    with Sanitizer() as sanitizer:
        yield lambda: " ".join(sanitizer.faults)
    assert sanitizer.unseen == sanitizer.faults


# --- check ---


@pytest.mark.parametrize(
    ("owner", "name", "count", "what"),
    [
        (SavedValues, "note", 5, "in-place writes"),
        (SavedValues, "changed", 5, "in-place writes"),
        (WriteAccount, "note", 3, "in-place writes"),
        (_RunningBackwards, "begin", 2, "in-place writes"),
        (SharedWriteWatch, "_modules", 3, "writes into what others read too"),
    ],
    ids=lambda each: getattr(each, "__name__", str(each)),
)
def test_check_says_what_it_looks_into_no_further(framework, break_from, capsys, owner, name, count, what):
    plain = train(framework)
    break_from(owner, name, count)
    with Sanitizer() as sanitizer:
        assert train(framework) == plain
    (fault,) = sanitizer.faults
    assert fault.startswith(what)
    assert OWN in fault
    assert sanitizer.unseen == sanitizer.faults
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 2
    assert said[0].startswith(f"gradscope: no longer looked into: {what}")
    assert OWN in said[0]
    assert said[1] == "The program goes on."


@pytest.mark.parametrize("owner", [SavedValues, SharedWriteWatch])
def test_what_cannot_begin_to_watch_is_none_of_the_programs(framework, break_from, owner):
    plain = train(framework)
    break_from(owner, "__init__")
    with Sanitizer() as sanitizer:
        assert train(framework) == plain
    assert sanitizer.faults
    assert all(OWN in fault for fault in sanitizer.faults)


def test_a_rule_of_check_that_fails_is_lost_alone(framework, break_from):
    break_from(type(CODES["GS101"]), "judge")
    with Sanitizer() as sanitizer:
        result = framework.ones(3, requires_grad=True).exp()
        result.add_(1)
        with pytest.raises(RuntimeError):
            result.sum().backward()
        leaf = framework.ones(3, requires_grad=True)
        with pytest.raises(RuntimeError):
            leaf.add_(1)
    assert [finding.code for finding in sanitizer.findings] == ["GS103"]
    assert sanitizer.faults[0].startswith("GS101, where gradscope's own code failed")


def test_a_watch_that_is_asked_for_is_guarded_too(framework, break_from):
    plain = train(framework)
    break_from(EarlyWriteWatch, "_remember", 3)
    silences = Silences(CodeSelection(select=["GS", "GS112"]))
    with Sanitizer(silences) as sanitizer:
        assert train(framework) == plain
    assert "writes into results" in sanitizer.faults[0]


def test_what_was_put_into_memory_is_taken_out_again(framework, break_from):
    break_from(ContinuingWatcher, "_separate")
    x = framework.ones(3, requires_grad=True)
    with Sanitizer(keep_going=True) as sanitizer:
        result = x.exp()
        result.add_(1)
        after = result.detach().clone()
        result.sum().backward()
    assert "in-place writes" in sanitizer.faults[0]
    assert result.detach().numpy().tobytes() == after.numpy().tobytes()


# --- the adapters, under each instrument ---

POINTS = [
    ("forward_pass", "_made_alone", 4),
    ("forward_pass", "may_write", 9),
    ("forward_pass", "user_site", 4),
    ("observed_backward", "reached", 2),
    ("observed_backward", "hang", 2),
    ("engine_wrapper", "blindness", 2),
    ("writes.inplace_writes", "written_slots", 3),
]


@pytest.mark.torch
@pytest.mark.parametrize(("module", "name", "count"), POINTS, ids=lambda each: str(each))
@pytest.mark.parametrize("instrument", [recorded, checked], ids=["record", "check"])
def test_an_error_of_the_adapters_ends_the_instrument_alone(
    tmp_path, torch, break_from, instrument, module, name, count
):
    plain = train(torch)
    calls = break_from(importlib.import_module(f"gradscope.inspect.adapters.torch.{module}"), name, count)
    if instrument is recorded and name in ("may_write", "written_slots"):
        pytest.skip("a recording asks for no writes")
    with instrument(tmp_path) as fault:
        assert train(torch) == plain
        assert OWN in fault()
    assert len(calls) >= count


@pytest.mark.torch
@pytest.mark.parametrize("name", ["blindness_of", "lies_in"])
def test_custom_functions_and_arrays_are_the_programs_whatever_fails(torch, break_from, name):
    from gradscope.inspect.adapters.torch import forward_pass

    class CompiledFunction(torch.autograd.Function):
        """Called as what torch.compile makes."""

        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    break_from(forward_pass, name)
    with Sanitizer() as sanitizer:
        array = numpy.ones(3, numpy.float32)
        x = torch.as_tensor(array).requires_grad_()
        CompiledFunction.apply(x).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0, 2.0]
    assert OWN in sanitizer.faults[0]


def test_a_record_of_gradients_that_fails_is_the_recordings_affair(tmp_path, framework, break_from):
    plain = train(framework)
    break_from(GradientCapture, "take", 9)
    with recorded(tmp_path) as fault:
        assert train(framework) == plain
        assert OWN in fault()


# --- the others ---


def test_the_debugger_tells_it_in_the_log_and_goes_on(framework, break_from):
    plain, left = train(framework), []
    break_from(Tracker, "_whole")
    with debugging(lambda: left.append(train(framework))) as session:
        session.step()
        wait(session)
        session.cont()
        assert (wait(session), session.error) == ("finished", None)
        assert [line for line in session.log if OWN in line]
    assert left == [plain]


def test_an_error_of_the_adapters_is_told_in_the_log(torch, break_from):
    from gradscope.inspect.adapters.torch import observed_backward

    plain, left = train(torch), []
    break_from(observed_backward, "reached", 2)
    with debugging(lambda: left.append(train(torch))) as session:
        session.cont()
        assert (wait(session), session.error) == ("finished", None)
        assert [line for line in session.log if OWN in line]
    assert left == [plain]


@contextmanager
def warned():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        told = []
        yield told
    told += [str(warning.message) for warning in caught]


@pytest.mark.parametrize(
    ("instrument", "owner", "name"),
    [(gi.track, Tracker, "_whole"), (gi.leaks, leaks, "_look"), (gi.Doctor, WatchTable, "_settle")],
    ids=["track", "leaks", "doctor"],
)
def test_what_has_no_report_of_its_own_warns(framework, break_from, instrument, owner, name):
    plain = train(framework)
    break_from(owner, name)
    with warned() as told, instrument() as seen:
        assert train(framework) == plain
    if instrument is gi.Doctor:
        assert "ZeroDivisionError: a bug" in str(seen.diagnosis)
    else:
        assert [text for text in told if "gradscope's own code failed" in text and "ZeroDivisionError: a bug" in text]


def test_a_graph_that_cannot_be_taken_ends_the_program_and_names_the_error(framework, break_from):
    from gradscope.inspect.debuggee.program import CallProgram
    from gradscope.inspect.graphs.graph_capture import GraphCapture

    break_from(GraphCapture, "_take")
    program = CallProgram(lambda: train(framework))
    capture = GraphCapture(program)
    capture.run()
    assert (capture.graph, program.error) == (None, None)
    assert capture.fault.startswith("ZeroDivisionError: a bug (")


def test_what_decides_who_hears_of_nodes_is_guarded_too():
    class Picky(Watch):
        def looks_into(self, task):
            raise ZeroDivisionError("a bug")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        picky = Picky()
        assert not picky.looks_into(None)
    assert picky.fault


def test_the_session_is_an_observer_like_the_others():
    assert SessionObserver.task_started.guards
