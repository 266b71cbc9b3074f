"""A backward's nodes as a sequence, and what breakpoints ask of them."""

import gc
import io
import weakref
from dataclasses import replace

import pytest

from gradscope.inspect.debugging.prompt.line_mode import LineMode
from gradscope.inspect.debugging.session import debugged_backward
from gradscope.inspect.debugging.session.node_sequence import candidates_of

from ...sessions import debugging, mlp, train, wait


def facts(node):
    return node.index, node.name, node.operator, node.module, node.parameter, node.location


def test_breakpoints_are_told_the_same_of_a_backward_that_runs_and_of_one_that_has_ended():
    with debugging(lambda: train(mlp(), 2)) as session:
        session.start()
        wait(session)
        live = session.nodes
        assert list(map(facts, live.candidates())) == list(map(facts, live))
        session.next_backward()
        wait(session)
        assert list(map(facts, live.candidates(3))) == list(map(facts, live))[3:]


def test_a_breakpoint_is_told_how_many_nodes_it_names_without_a_record_of_each():
    with debugging(lambda: train(mlp(), 1)) as session:
        session.start()
        wait(session)
        made, said = session._session.view._bare, io.StringIO()
        made.clear()
        LineMode(session, stdin=io.StringIO(), stdout=said).obey("break param:*.bias")
        assert said.getvalue() == "breakpoint 1: param:*.bias, 2 of the nodes ahead in this backward\n"
        assert made == {}


@pytest.mark.parametrize("name", ["gradscope", pytest.param("torch", marks=pytest.mark.torch)])
def test_the_records_of_a_backward_that_has_ended_are_those_from_before(name):
    lib = pytest.importorskip(name)
    model = lib.nn.Sequential(lib.nn.Linear(3, 4), lib.nn.ReLU(), lib.nn.Linear(4, 2))

    def program():
        first, second = model(lib.ones(5, 3)).unbind(1)
        (first * second.detach() + first.exp()).sum().backward()

    with debugging(program) as session:
        session.start()
        wait(session)
        before = list(session.nodes)
        session.cont()
        assert wait(session) == "finished"
        assert {node.state for node in session.nodes} == {"done"}
        seen = {"state": "", "saved": (), "grad_outputs": None, "grad_inputs": None, "norm": None, "duration": None}
        assert [replace(node, **seen) for node in session.nodes] == [replace(node, **seen) for node in before]


@pytest.mark.parametrize("name", ["gradscope", pytest.param("torch", marks=pytest.mark.torch)])
def test_what_stays_of_a_backward_keeps_no_leaf_and_no_node(name):
    lib = pytest.importorskip(name)
    left = []

    class Note:
        """Lives as long as the node does."""

    def program():
        x = lib.ones(3, requires_grad=True)
        y = x.exp()
        y.grad_fn.metadata["note"] = note = Note()
        left.extend(map(weakref.ref, (x, note)))
        del note
        y.sum().backward()

    with debugging(program) as session:
        session.start()
        wait(session)
        session.cont()
        assert wait(session) == "finished"
        gc.collect()
        assert [reference() for reference in left] == [None, None]
        assert [node.operator for node in session.nodes] == ["Sum", "Exp", "AccumulateGrad"]


def test_of_a_large_backward_only_some_records_are_kept(monkeypatch):
    monkeypatch.setattr(debugged_backward, "MOST_RECORDS", 4)
    with debugging(lambda: train(mlp(), 1)) as session:
        session.start()
        wait(session)
        records = list(session.nodes)
        assert len(records) == 9
        assert list(session.nodes) == records
        assert len(session._session.view._bare) <= 4


@pytest.mark.parametrize("start", [0, 2, 9])
def test_plain_sequences_of_records_are_taken_too(start):
    with debugging(lambda: train(mlp(), 1)) as session:
        session.start()
        wait(session)
        nodes = list(session.nodes)
    assert list(candidates_of(nodes, start)) == nodes[start:]
