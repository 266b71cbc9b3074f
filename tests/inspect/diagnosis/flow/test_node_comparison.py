"""Two nodes side by side."""

from __future__ import annotations

from dataclasses import replace

import gradscope as gs
from gradscope.inspect.diagnosis.flow.node_comparison import fact_pairs, node_comparison_text

from ...sessions import debugging, wait


def two_products():
    weight = gs.full((3,), 2.0, requires_grad=True)
    ((weight * 3.0) * 10.0).sum().backward()


def at_node(session, index):
    session.start()
    wait(session)
    for _ in range(index):
        session.step()
        wait(session)


def facts(pairs):
    return {(pair.tensor, pair.name): (pair.left, pair.right) for pair in pairs}


def test_gradients_and_saved_tensors_stand_in_pairs_with_what_is_not_known_left_open():
    with debugging(two_products) as session:
        at_node(session, 2)
        ran, waits = session.inspect(1), session.inspect(2)
        assert (ran.operator, waits.operator) == ("Mul", "Mul")
        pairs = fact_pairs(ran, waits)
        known = facts(pairs)
        assert known["grad in", "shape"] == ("(3)", "(3)")
        left, right = known["grad in", "norm"]
        assert round(right / left) == 10
        assert facts(fact_pairs(ran, session.inspect(3)))["grad in", "norm"] == (left, None)
        assert next((pair.tensor, pair.name) for pair in pairs if pair.differs) == ("grad in", "norm")
        text = node_comparison_text(ran, waits)
        (marked,) = [line for line in text.splitlines() if line.startswith(">")]
        assert marked.split()[1:4] == ["grad", "in", "norm"]


def test_a_node_does_not_differ_from_itself():
    with debugging(two_products) as session:
        at_node(session, 1)
        node = session.inspect(0)
        pairs = fact_pairs(node, node)
        assert pairs
        assert not any(pair.differs for pair in pairs)


def test_of_a_node_that_ran_free_its_norm_is_known():
    with debugging(two_products) as session:
        at_node(session, 0)
        node = replace(session.inspect(2), grad_outputs=None, norm=4.0)
        assert facts(fact_pairs(node, node))["grad in", "norm"] == (4.0, 4.0)
