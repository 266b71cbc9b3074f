"""An error of gradscope's own is no error of the program that is examined."""

import warnings

import pytest

import gradscope as gs
import gradscope.inspect as gi
from gradscope.inspect.adapters import event_guards
from gradscope.inspect.diagnosis import doctor as doctor_module
from gradscope.inspect.diagnosis.no_gradient.dataflow import DataflowObserver
from gradscope.inspect.diagnosis.program_facts import BLIND_REGIONS, EXAMINATION, FAILURE, GROWTH, NAN, UPDATES
from gradscope.inspect.diagnosis.rules.gradients.d303_parameters_without_gradient import ParametersWithoutGradient
from gradscope.inspect.diagnosis.rules.layers.d341_excessive_dropout import DropoutWatch
from gradscope.inspect.diagnosis.rules.optimizers.d339_optimizer_constants import ConstantsWatch
from gradscope.inspect.diagnosis.watch import Watch, guarded
from gradscope.inspect.records.module_tracking import Tracker
from gradscope.inspect.records.optimizer_steps import OptimizerHooks


@pytest.fixture(autouse=True)
def as_users_have_it(monkeypatch):
    monkeypatch.setattr(event_guards, "raising", False)


@pytest.fixture(autouse=True)
def told():
    """The warnings of a test: whoever looks without a report hears of the error too."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield caught


def broken(self, *args):
    raise ValueError("a bug\nwith two lines")


def train():
    model = gs.nn.Sequential(gs.nn.Linear(2, 4), gs.nn.Dropout(0.95), gs.nn.Linear(4, 1))
    optimizer = gs.optim.SGD(model.parameters(), lr=0.1)
    frozen = gs.nn.Linear(2, 1)
    for _ in range(3):
        optimizer.zero_grad()
        (model(gs.ones(3, 2)).sum() + frozen(gs.ones(3, 2)).detach().sum()).backward()
        optimizer.step()
    return model


@pytest.mark.parametrize(
    ("kind", "method"), [(DropoutWatch, "module_returned"), (ConstantsWatch, "_steps")], ids=lambda each: str(each)
)
def test_the_program_goes_on_and_the_diagnosis_says_what_has_failed(monkeypatch, kind, method):
    monkeypatch.setattr(kind, method, guarded(broken))
    with gi.Doctor() as doctor:
        assert train()[0].weight.grad is not None
    (unseen,) = doctor.diagnosis.unseen
    assert "gradscope's own code failed; please report it: ValueError: a bug (test_watch.py:" in unseen
    assert f"Not looked into: {unseen}." in str(doctor.diagnosis)
    assert doctor.diagnosis.backwards == 3


def test_a_rule_whose_judgement_fails_is_lost_alone(monkeypatch):
    monkeypatch.setattr(ParametersWithoutGradient, "judge", broken)
    with gi.Doctor() as doctor:
        train()
    diagnosis = doctor.diagnosis
    (unjudged,) = diagnosis.unjudged
    assert unjudged.startswith("D303, where gradscope's own code failed; please report it: ValueError: a bug (")
    assert f"Not looked into: {unjudged}." in str(diagnosis)
    assert diagnosis.to_dict()["unseen"] == [unjudged]
    assert "D341" in [symptom.code for symptom in diagnosis.symptoms]


@pytest.mark.parametrize(
    "fact", [EXAMINATION, UPDATES, NAN, GROWTH, BLIND_REGIONS, FAILURE], ids=lambda fact: fact.name
)
def test_what_cannot_be_told_of_a_watch_leaves_the_rest_of_the_report(monkeypatch, fact):
    doctor = gi.Doctor()
    monkeypatch.setitem(vars(fact), "known", broken)
    with doctor:
        train()
    (unseen,) = doctor.diagnosis.unseen
    assert unseen.startswith(f"{fact.name}, where gradscope's own code failed; please report it: ValueError: a bug (")
    assert "D341" in [symptom.code for symptom in doctor.diagnosis.symptoms]


def test_an_error_while_the_end_of_the_program_is_explained_leaves_the_report(monkeypatch):
    monkeypatch.setattr(doctor_module, "failed_backward", broken)
    with gi.Doctor() as doctor:
        train()
    assert doctor.explain(RuntimeError("the program's")) is False
    assert doctor.diagnosis.unseen[0].startswith("failure, where gradscope's own code failed")
    assert doctor.diagnosis.symptoms


def test_a_watch_that_fails_to_close_leaves_the_report(monkeypatch):
    monkeypatch.setattr(ConstantsWatch, "close", broken)
    with gi.Doctor() as doctor:
        train()
    assert "a bug" in doctor.diagnosis.unseen[0]
    assert doctor.diagnosis.symptoms


def test_what_a_watch_inherits_is_kept_from_the_program_too(monkeypatch):
    monkeypatch.setattr(DataflowObserver, "module_entered", guarded(broken))
    with gi.Doctor() as doctor:
        train()
    assert "dataflow, where gradscope's own code failed" in doctor.diagnosis.unseen[0]
    assert DataflowObserver.module_left.guards is Tracker.module_left.guards


def test_an_error_that_is_meant_passes():
    with pytest.raises(FloatingPointError), gi.watch_nan(stop=True):
        gs.zeros(1).log() * 0


def test_others_look_on(monkeypatch):
    monkeypatch.setattr(DropoutWatch, "module_returned", guarded(broken))
    with gi.Doctor() as doctor:
        model = gs.nn.Linear(2, 1)
        gs.nn.Dropout(0.5)(model(gs.ones(1, 2)).detach() + gs.ones(1, requires_grad=True)).sum().backward()
        gs.optim.SGD(model.parameters(), lr=0.1).step()
    assert doctor.diagnosis.unseen
    assert [entry.name for entry in doctor.diagnosis.missing.parameters] == ["weight", "bias"]


def test_a_watch_that_has_failed_hears_no_more(told):
    heard = []

    class Failing(Watch):
        def module_entered(self, module):
            heard.append(module)
            raise KeyError(module)

        def module_left(self, module):
            heard.append(module)

    failing = Failing()
    failing.module_entered("one")
    failing.module_entered("two")
    failing.module_left("one")
    assert heard == ["one"]
    assert failing.fault.startswith("KeyError: 'one' (test_watch.py:")
    (warning,) = told
    assert f"Failing looks no further; please report it: {failing.fault}" in str(warning.message)
    assert warning.filename == __file__


def test_the_program_goes_on_where_it_makes_warnings_errors():
    class Failing(Watch):
        def module_entered(self, module):
            raise KeyError(module)

    failing = Failing()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        failing.module_entered("one")
    assert failing.fault


def test_an_interrupt_is_the_persons_and_passes():
    class Interrupted(Watch):
        def module_entered(self, module):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Interrupted().module_entered(None)


def test_a_hook_of_an_optimizer_is_kept_from_the_program_too():
    class Stepping(Watch):
        def __init__(self):
            self._hooks = OptimizerHooks(before=self._steps)
            self._hooks.look()

        @guarded
        def _steps(self, optimizer):
            raise ValueError("a bug")

    stepping = Stepping()
    try:
        gs.optim.SGD([gs.ones(1, requires_grad=True)], lr=0.1).step()
    finally:
        stepping._hooks.close()
    assert "a bug" in stepping.fault
