from __future__ import annotations

import numpy
import pytest

import gradscope as gs
from gradscope.inspect import Debugger, HistoryPolicy, TensorSubject
from gradscope.inspect.debugging.session.tensor_queries import save_array


def train():
    w = gs.tensor([[1.0, -2.0], [3.0, 0.0]], requires_grad=True)
    for scale in (1.0, 2.0):
        loss = (w * w * scale).sum()
        loss.backward()


@pytest.fixture
def session():
    debugger = Debugger.for_call(train, history=HistoryPolicy(always=True))
    debugger.start()
    debugger.wait(20)
    yield debugger
    debugger.abort()
    debugger.wait(20)


def go(session, verb, *arguments):
    getattr(session, verb)(*arguments)
    assert session.wait(20).paused


def test_the_tensors_of_another_node_and_of_another_backward_are_looked_into(session):
    go(session, "step", 2)
    first = session.nodes[2].operator
    assert first == "Mul"
    saved = TensorSubject("at_node(2).saved['self']")
    assert session.tensor_page(saved, (1, (0, 2))).values == (3.0, 0.0)
    assert session.tensor_page(TensorSubject("at_node(1).produced[0]"), ((0, 2), 1)).values == (1.0, 1.0)
    assert session.tensor_page(TensorSubject("at_node(2).grad"), (0, (0, 9))).values == (1.0, 1.0)
    go(session, "next_backward")
    go(session, "step", 2)
    both = TensorSubject("at_node(2).grads[0]", "at_node(2, backward=1).grads[0]")
    assert session.tensor_page(both, (0, (0, 2))).values == (1.0, 1.0)
    relative = TensorSubject(both.expression, both.against, "relative error")
    assert session.tensor_summary(relative).max == 0.5


def test_what_is_not_known_is_said_with_what_to_do(session):
    with pytest.raises(RuntimeError, match="the gradients of node 3 are not known"):
        session.tensor_page(TensorSubject("at_node(3).grads[0]"), ())
    with pytest.raises(ValueError, match="there is no node 99 in backward 1"):
        session.tensor_page(TensorSubject("at_node(99).grads[0]"), ())
    with pytest.raises(ValueError, match="nothing is recorded of backward 7"):
        session.tensor_page(TensorSubject("at_node(0, backward=7).grads[0]"), ())
    with pytest.raises(AttributeError, match="a node has grad, grads, produced, saved and norm"):
        session.evaluate("at_node(0).weight")
    with pytest.raises(TypeError, match="`'a'` is a str, and no tensor"):
        session.tensor_summary(TensorSubject("'a'"))


def test_elements_are_found_and_the_tensor_is_saved_once(session, tmp_path):
    subject = TensorSubject("w")
    assert session.find_element(subject, "largest") == 2
    assert session.find_element(subject, "smallest") == 0
    assert session.find_element(subject, "not finite") is None
    path = session.save_tensor(subject, str(tmp_path / "w"))
    assert path == str(tmp_path / "w.npy")
    numpy.testing.assert_array_equal(numpy.load(path), [[1.0, -2.0], [3.0, 0.0]])
    with pytest.raises(FileExistsError, match="is there already, and is kept as it is"):
        session.save_tensor(subject, path)
    with pytest.raises(OSError, match="cannot write"):
        session.save_tensor(subject, str(tmp_path / "no" / "w.npy"))


def test_looking_copies_nothing_of_the_tensor(session):
    place = session._at_stop(lambda place: numpy.shares_memory(place.array("w"), place.value("w")._array))
    assert place


def test_what_could_not_be_saved_leaves_no_file(tmp_path):
    with pytest.raises(ValueError, match="allow_pickle"):
        save_array(numpy.array([object()]), str(tmp_path / "w"))
    assert list(tmp_path.iterdir()) == []
