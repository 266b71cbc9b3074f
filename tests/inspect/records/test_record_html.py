"""Nodes and tensors in a notebook: what a person looks for is there."""

from __future__ import annotations

import math
from xml.etree import ElementTree

import gradscope.inspect as gi
from gradscope.inspect.records.record_html import norm_bar


def cells(html):
    """Return the text of the cells of a table, row by row, without the headings."""
    rows = ElementTree.fromstring(html).iter("tr")
    return [["".join(cell.itertext()) for cell in row.iter("td")] for row in rows][1:]


def texts(html):
    return "".join(ElementTree.fromstring(html).itertext())


def test_a_tensor_is_told_in_a_row(fw):
    ((name, shape, dtype, norm, least, largest, *_, zeros, bad, _),) = cells(
        gi.summarize(fw.tensor([3.0, -4.0, 0.0, math.nan]), "grad")._repr_html_()
    )
    assert (name, shape, dtype, norm) == ("grad", "(4)", "float32", "nan")
    assert (least, largest, zeros, bad) == ("-4", "3", "1", "1 NaN")


def test_a_node_tells_its_gradients_and_what_it_saved(fw):
    with gi.track():
        y = fw.ones(3, requires_grad=True).exp()
        y.add_(1)  # exp saved its result
        loss = y.sum()
    session = gi.debug(loss)
    session.step(2)
    html = session.node._repr_html_()
    assert texts(html).startswith("node 2: ExpBackward0 · current")
    assert "test_record_html.py:" in texts(html)
    assert "exp()" in texts(html)
    rows = {row[0]: row for row in cells(html)}
    assert rows["gradient in [0]"][1:4] == ["(3)", "float32", "1.732"]
    assert rows["saved result"][-1] == "saved at version 0, now at 1: modified"
    session.abort()


def test_nodes_are_told_in_their_order_with_what_is_known_of_each(fw):
    session = gi.debug((fw.ones(3, requires_grad=True) * 2).exp().sum())
    session.step(2)
    rows = cells(session.nodes._repr_html_())
    assert [row[:3] for row in rows] == [
        ["✓", "0", "SumBackward0"],
        ["✓", "1", "ExpBackward0"],
        ["▶", "2", "MulBackward0"],
        ["", "3", "AccumulateGrad"],
    ]
    assert [bool(row[4]) for row in rows] == [True, True, True, False]
    assert texts(session.nodes._repr_html_()).startswith("4 nodes")
    session.abort()


def test_a_node_without_a_gradient_says_so(fw):
    one, two = fw.ones(2, requires_grad=True).split(1)
    session = gi.debug(one.sum())
    session.step()
    undefined = [row for row in cells(session.node._repr_html_()) if row[1] == "undefined"]
    assert [row[0] for row in undefined] == ["gradient in [1]"]
    session.abort()
    assert two.requires_grad


def test_a_bar_is_as_long_as_the_norm_is_large():
    norms = [1e-6, 1e-3, 1.0, 0.0, None, math.inf]
    widths = [ElementTree.fromstring(norm_bar(n, norms)).attrib["style"].rpartition(" ")[2] for n in norms[:3]]
    assert widths == sorted(widths, key=lambda text: int(text.removesuffix("px")))
    assert len(set(widths)) == 3
    assert norm_bar(None, norms) == norm_bar(0.0, norms) == ""
    assert "not finite" in norm_bar(math.inf, norms)
    assert norm_bar(2.0, [2.0])
    assert norm_bar(1.0, []) == ""
