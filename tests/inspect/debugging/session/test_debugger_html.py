"""A debugger in a notebook."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

import gradscope.inspect as gi


def texts(session):
    return list(ElementTree.fromstring(session._repr_html_()).itertext())


def test_it_tells_where_it_stands_and_the_node_at_hand(fw):
    session = gi.debug((fw.ones(3, requires_grad=True) * 2).exp().sum())
    session.step()
    told = texts(session)
    assert told[:3] == ["paused before", ": next node", "nodes 0 to 3 of 4"]
    assert "node 1: ExpBackward0" in told
    session.cont()
    assert texts(session)[0] == "finished"


def test_of_a_long_backward_it_shows_the_nodes_around(fw):
    x = fw.ones(1, requires_grad=True)
    for _ in range(100):
        x = x * 1.5
    session = gi.debug(x.sum())
    session.step(50)
    assert "nodes 45 to 59 of 102" in texts(session)
    session.abort()


def test_it_tells_why_a_saved_tensor_is_refused(fw):
    y = fw.ones(3, requires_grad=True).exp()
    y.add_(1)
    session = gi.debug(lambda: y.sum().backward())
    session.cont()
    assert any("saved at version 0" in text for text in texts(session))
    session.abort()


def test_a_backward_in_progress_is_a_row_with_a_bar(fw):
    session = gi.debug((fw.ones(3, requires_grad=True) * 2).exp().sum())
    session.step()
    (task,) = session.tasks
    made = ElementTree.fromstring(task._repr_html_())
    assert [cell.text or "" for cell in made.iter("td")] == ["1", "", "1", "4", "", "ExpBackward0"]
    assert "width: 25%" in task._repr_html_()
    session.abort()


@pytest.mark.parametrize(("index", "total", "bar"), [(3, 4, "75%"), (4, 4, "100%"), (3, -1, None), (-1, 4, None)])
def test_a_nested_backward_of_unknown_length_has_no_bar(index, total, bar):
    task = gi.TaskRecord(number=2, depth=1, index=index, total=total, node="<lambda>")
    made = ElementTree.fromstring(task._repr_html_())
    number, nested, at, of, _, node = ("".join(cell.itertext()) for cell in made.iter("td"))
    assert (number, nested, at, node) == ("2", "1 other", str(index), "<lambda>")
    assert of == (str(total) if total >= 0 else "")
    widths = [each.attrib["style"] for each in made.iter("div") if "%" in each.get("style", "")]
    assert [f"width: {bar};" in style for style in widths] == [True] * (bar is not None)
