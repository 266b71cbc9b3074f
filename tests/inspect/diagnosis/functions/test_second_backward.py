"""Where the first backward was, and where the second graph builds on it."""

import json

import pytest

import gradscope.inspect as gi
from tests.inspect.diagnosis.lines import line


def test_a_shared_part(fw):
    w = fw.ones(3, requires_grad=True)
    with gi.ledger():
        hidden = w.exp()  # HERE: shared
        hidden.sum().backward()  # HERE: first backward
        loss = (hidden * hidden).sum()  # HERE: builds on it
        with pytest.raises(RuntimeError, match="second time"):
            loss.backward()
    found = gi.second_backward(loss)
    assert [(n.name, n.location.lineno) for n in found.shared] == [("ExpBackward0", line(__file__, "shared"))]
    assert found.first.lineno == line(__file__, "first backward")
    assert found.joint.lineno == line(__file__, "builds on it")
    text = str(found)
    assert "1 of 4 nodes are freed; the first backward was at " in text
    assert "(hidden.sum().backward()" in text
    assert "detach() what is carried over" in text


def test_a_hidden_state(fw):
    w, hidden = fw.ones(3, requires_grad=True), fw.zeros(3)
    with gi.ledger():
        for _ in range(2):
            hidden = (hidden * w).tanh()  # HERE: hidden
            loss = hidden.sum()
            if not gi.second_backward(loss):
                loss.backward()  # HERE: in the loop
    found = gi.second_backward(loss)
    assert found.first.lineno == line(__file__, "in the loop")
    assert found.joint.lineno == line(__file__, "hidden")


def test_the_same_graph_twice(fw):
    w = fw.ones(3, requires_grad=True)
    with gi.ledger():
        loss = w.exp().sum()
        loss.backward()  # HERE: the first
    found = gi.second_backward(loss)
    assert (found.joint, found.first.lineno) == (None, line(__file__, "the first"))
    assert "retain_graph=True" in str(found)


def test_without_a_ledger(fw):
    w = fw.ones(3, requires_grad=True)
    loss = w.exp().sum()
    loss.backward()
    found = gi.second_backward(loss)
    assert (len(found.shared), found.first) == (1, None)
    assert "gradscope.inspect.ledger()" in str(found)


def test_a_whole_graph(fw):
    w = fw.ones(3, requires_grad=True)
    with gi.ledger():
        loss = w.exp().sum()
        loss.backward(retain_graph=True)
    found = gi.second_backward(loss)
    assert not found
    assert "backward() can run" in str(found)
    assert (found.table().row_count, json.loads(found.to_json())["shared"]) == (0, [])
    with pytest.raises(RuntimeError, match="no graph"):
        gi.second_backward(fw.ones(3).sum())


def test_modules_are_known_by_their_parameters(fw):
    model = fw.nn.Sequential(fw.nn.Linear(3, 2), fw.nn.Linear(2, 1))
    loss = (model(fw.ones(2, 3)) ** 2).sum()
    loss.backward()
    assert {"0", "1"} <= {node.module for node in gi.second_backward(loss).shared}
