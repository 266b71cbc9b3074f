"""A ledger remembers so many operators, in a form that costs the garbage collector nothing."""

import gc

import pytest

import gradscope as gs
import gradscope.inspect as gi
from gradscope.inspect.diagnosis.no_gradient.dataflow_entries import LedgerEntry
from gradscope.inspect.diagnosis.no_gradient.operator_log import OperatorLog
from gradscope.inspect.records.records import Location


def line(number):
    return Location("train.py", number, "step", "y = x * 2")


def chain(log, length, start=()):
    numbers, sources = [], tuple(start)
    for number in range(length):
        numbers.append(log.record("mul", sources, line(number), "layer"))
        sources = (numbers[-1],)
    return numbers


def test_an_entry_says_what_was_recorded():
    log, leaf = OperatorLog(10), LedgerEntry()
    first = log.record("exp", (leaf,), line(1), "layer")
    second = log.entry(log.record("mul", (first, first, leaf), line(2), ""))
    assert (second.name, second.location, second.module, second.recorded) == ("mul", line(2), "", True)
    assert second.inputs == (log.entry(first), leaf)
    assert second.inputs[0].number < second.number
    assert second.ancestors() == {second, log.entry(first), leaf}


def test_an_entry_is_the_same_for_as_long_as_somebody_has_it():
    log = OperatorLog(10)
    (number,) = chain(log, 1)
    entry = log.entry(number)
    assert log.entry(number) is entry
    assert log.entry(entry) is entry


def test_the_oldest_are_forgotten_and_let_go_of_what_was_before():
    log, leaf = OperatorLog(2), LedgerEntry()
    numbers = chain(log, 2, [leaf])
    asked_for = log.entry(numbers[1])
    kept = LedgerEntry("detach", (leaf,))
    log.keep(kept)
    log.keep(LedgerEntry("detach", (kept,)))
    assert len(log) == 2
    assert (asked_for.forgotten, asked_for.inputs) == (True, ())
    assert [log.is_forgotten(handle) for handle in (*numbers, kept)] == [True, True, False]
    assert log.entry(numbers[0]).forgotten
    log.keep(LedgerEntry())
    assert (kept.forgotten, kept.inputs) == (True, ())


def test_descendants_are_found_through_records_and_entries_alike():
    log, leaf, other = OperatorLog(10), LedgerEntry(), LedgerEntry()
    first, second = chain(log, 2, [leaf])
    chain(log, 1, [other])
    detached = LedgerEntry("detach", (log.entry(second),))
    log.keep(detached)
    (last,) = chain(log, 1, [detached])
    assert log.descendants([leaf]) == [log.entry(first), log.entry(second), detached, log.entry(last)]
    assert log.descendants([log.entry(second)]) == [detached, log.entry(last)]


def test_lines_of_forgotten_operators_are_let_go(monkeypatch):
    monkeypatch.setattr("gradscope.inspect.diagnosis.no_gradient.operator_log._LOCATIONS", 4)
    log = OperatorLog(3)
    numbers = chain(log, 50)
    assert len(log._locations) <= 8
    assert log.entry(numbers[-1]).location == line(49)


def test_the_collector_does_not_walk_along_what_is_remembered():
    log = OperatorLog(1000)
    chain(log, 500)
    gc.collect()
    assert not any(map(gc.is_tracked, log._kept.values()))


@pytest.mark.parametrize("detached", [False, True])
def test_a_ledger_keeps_nothing_of_the_results_of_recorded_operators(detached):
    w = gs.ones(3, requires_grad=True)
    with gi.ledger() as ledger:
        h, kept = w * 2, []
        for _ in range(20):
            h = h.exp()
            kept.append(h.detach() if detached else h)
        loss = h.sum()
    recorder = ledger.recorder
    assert len(recorder._by_id) == 1 + detached * 20
    names = [entry.name for entry in sorted(recorder.entry_of(loss).ancestors(), key=lambda entry: entry.number)]
    assert names == ["", "mul", *["exp"] * 20, "sum"]
