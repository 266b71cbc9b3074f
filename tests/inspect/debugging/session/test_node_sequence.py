"""A backward's nodes as a sequence, and what breakpoints ask of them."""

import io

import pytest

from gradscope.inspect.debugging.prompt.prompt import LineMode
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


@pytest.mark.parametrize("start", [0, 2, 9])
def test_plain_sequences_of_records_are_taken_too(start):
    with debugging(lambda: train(mlp(), 1)) as session:
        session.start()
        wait(session)
        nodes = list(session.nodes)
    assert list(candidates_of(nodes, start)) == nodes[start:]
