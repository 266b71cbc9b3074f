"""A fact has one watch, which hears the program from beginning to end."""

import contextlib
import math

import pytest

import gradscope as gs
import gradscope.inspect as gi
from gradscope.inspect.adapters import NativeAdapter, Observer, adapter_for
from gradscope.inspect.diagnosis.program_facts import EXAMINATION, UPDATES, Fact, WatchedProgram
from gradscope.inspect.diagnosis.rule_registry import load_rules


class Backwards(Observer):
    """Counts backward passes."""

    def __init__(self):
        self.count = 0
        self.closed = False

    def task_started(self, task):
        self.count += 1

    def close(self):
        self.closed = True


COUNT = Fact("count", lambda program: Backwards(), lambda watch: watch.count, backward=True)


def test_a_watch_hears_what_happens_while_the_program_is_open():
    program = WatchedProgram(NativeAdapter(), [COUNT])
    w = gs.ones(2, requires_grad=True)
    w.sum().backward()
    program.open()
    w.sum().backward()
    program.close()
    w.sum().backward()
    assert program.known() == {"count": 1}
    assert program.watch_of(COUNT).closed


@pytest.mark.torch
def test_no_watch_of_the_doctors_makes_the_steps_of_optimizers_slow():
    facts = dict.fromkeys(fact for rule in load_rules("gradscope.inspect.diagnosis.rules") for fact in rule.needs)
    program = WatchedProgram(adapter_for(), facts)
    listening = [fact for fact in facts if fact.operators]
    assert listening
    assert not any(program.watch_of(fact).operators_of_steps for fact in listening)
    assert not program.ledger.recorder.operators_of_steps


@pytest.mark.torch
@pytest.mark.parametrize("program", ["learns", "never_cleared", "cleared_too_early", "bad"])
@pytest.mark.parametrize(("name", "options"), [("SGD", {"momentum": 0.9}), ("AdamW", {}), ("Adam", {"foreach": True})])
def test_what_is_found_does_not_depend_on_who_hears_the_steps(torch, program, name, options):
    def found(*others):
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
        optimizer = getattr(torch.optim, name)(model.parameters(), lr=0.01, **options)
        with gi.Doctor() as doctor, contextlib.ExitStack() as stack:
            for other in others:
                stack.enter_context(adapter_for().observe(other, forward=False, backward=False, operators=True))
            for step in range(4):
                x, y = torch.randn(6, 3), torch.arange(6) % 2
                if program == "bad" and step == 2:
                    x[0] = math.inf
                torch.nn.functional.cross_entropy(model(x), y).backward()
                if program == "cleared_too_early":
                    optimizer.zero_grad()
                optimizer.step()
                if program != "never_cleared":
                    optimizer.zero_grad()
        return str(doctor.diagnosis)

    assert found() == found(Observer())


def test_a_fact_has_one_watch():
    program = WatchedProgram(NativeAdapter(), [UPDATES])
    assert program.watch_of(UPDATES) is program.watch_of(UPDATES)
    assert list(program.known()) == [EXAMINATION.name, UPDATES.name]  # which needs the names of the other


def test_a_name_is_that_of_one_fact():
    program = WatchedProgram(NativeAdapter(), [COUNT])
    with pytest.raises(ValueError, match="two facts are called 'count'"):
        program.watch_of(Fact("count", lambda program: None, lambda watch: None))
