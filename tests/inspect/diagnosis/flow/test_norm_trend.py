from __future__ import annotations

import math

from hypothesis import example, given
from hypothesis import strategies as st

import gradscope as gs
import gradscope.inspect as gi
from gradscope.inspect.diagnosis.flow.norm_trend import norm_trouble
from gradscope.inspect.records.records import EdgeRecord, NodeRecord


def chain(*nodes):
    """Return nodes that each pass their gradient on to the next, from (operator, norm, parameter)."""
    made = []
    for index, (operator, norm, parameter) in enumerate(nodes):
        target = () if index + 1 == len(nodes) else (EdgeRecord(index + 1, 0),)
        node = NodeRecord(index, index, f"{operator}Backward0", operator, 1, "", parameter, None, target, norm=norm)
        made.append(node)
    return made


def leaf(norm, name):
    return "AccumulateGrad", norm, name


def test_the_node_that_makes_a_nan_or_an_infinity_is_told_and_nothing_else():
    for bad, word, kind in ((math.nan, "a NaN", "nan"), (math.inf, "an infinity", "inf")):
        (found,) = norm_trouble(chain(("Sum", 1.0, ""), ("Sqrt", 2.0, ""), ("Mul", bad, ""), leaf(math.nan, "w")))
        assert (found.kind, found.title, found.index) == (kind, f"Sqrt makes {word} of a finite gradient", 1)
        (found,) = norm_trouble(chain(("Sum", bad, ""), leaf(bad, "w")))
        assert (found.title, found.index) == (f"{word} enters this backward", 0)


def test_the_operator_that_makes_a_gradient_zero_is_told_once_for_all_that_get_it():
    nodes = chain(("Sum", 1.0, ""), ("Relu", 0.0, ""), ("Addmm", 0.0, ""), leaf(0.0, "w"))
    (found,) = norm_trouble(nodes)
    assert (found.kind, found.title, found.index, found.parameters) == (
        "zero", "Sum makes the gradient zero everywhere", 0, ("w",),
    )  # fmt: skip


def test_a_zero_that_no_parameter_gets_is_none_of_it():
    assert norm_trouble(chain(("Sum", 1.0, ""), ("Relu", 0.0, ""))) == []


def test_a_vanishing_gradient_is_put_on_the_operator_that_does_most_of_it():
    nodes = chain(
        leaf(1.0, "last"), ("Addmm", 1.0, ""), ("Sigmoid", 1.0, ""), ("Addmm", 1e-4, ""), ("Sigmoid", 0.9e-4, ""),
        leaf(0.9e-8, "first"),
    )  # fmt: skip
    (found,) = norm_trouble(nodes)
    assert (found.kind, found.parameters) == ("vanishing", ("last", "first"))
    assert found.text == "Sigmoid does most of it: it multiplies the norm 2 times, each time by about 0.0001."
    (found,) = norm_trouble(chain(leaf(1e-2, "last"), ("Addmm", 1.0, ""), ("Mul", 1e4, ""), leaf(1e6, "first")))
    assert (found.kind, found.parameters) == ("exploding", ("last", "first"))


def test_the_bias_before_a_batch_norm_does_not_vanish():
    model = gs.nn.Sequential(gs.nn.Linear(6, 8), gs.nn.BatchNorm1d(8), gs.nn.ReLU(), gs.nn.Linear(8, 2))
    session = gi.debug(model(gs.randn(32, 6)).pow(2).mean(), params=model)
    session.wait()
    session.cont()
    session.wait()
    bias = next(node for node in session.nodes if node.parameter == "0.bias")
    assert bias.norm < 1e-7
    assert norm_trouble(session.nodes) == []


@given(st.lists(st.floats(1e-3, 10.0), min_size=1, max_size=20))
def test_ordinary_norms_are_no_trouble(norms):
    assert norm_trouble(chain(*(leaf(norm, f"w{i}") for i, norm in enumerate(norms)))) == []


@example([2.0**52, 2.0**-1030])
@example([2.0**-1070, 1e308])
@given(st.lists(st.none() | st.just(math.nan) | st.floats(min_value=0), max_size=12))
def test_whatever_the_norms_it_points_at_a_node(norms):
    for found in norm_trouble(chain(*(leaf(norm, f"w{i}") for i, norm in enumerate(norms)))):
        assert 0 <= found.index < len(norms)
        assert found.title
