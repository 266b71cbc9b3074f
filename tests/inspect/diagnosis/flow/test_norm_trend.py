from __future__ import annotations

import math
from dataclasses import replace

import numpy
from hypothesis import example, given
from hypothesis import strategies as st

import gradscope as gs
import gradscope.inspect as gi
from gradscope.inspect.diagnosis.flow.norm_trend import bad_source, norm_trouble
from gradscope.inspect.records.records import EdgeRecord, NodeRecord
from gradscope.inspect.records.tensor_statistics import summarize


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
        assert (found.kind, found.title, found.index) == (kind, f"{word} comes out of Sqrt, which was given none", 1)
        (found,) = norm_trouble(chain(("Sum", bad, ""), leaf(bad, "w")))
        assert (found.title, found.index) == (f"{word} enters this backward", 0)


def test_a_bad_value_is_followed_to_the_node_that_sent_it_past_a_larger_finite_gradient():
    sent = NodeRecord(0, 0, "SqrtBackward0", "Sqrt", 1, "", "", None, (EdgeRecord(2, 0),), norm=0.1)
    infinite = summarize(numpy.array([math.inf, 1.0]))
    sent = replace(sent, grad_inputs=(infinite,))
    large = NodeRecord(1, 1, "MulBackward0", "Mul", 1, "", "", None, (EdgeRecord(2, 0),), norm=1e3)
    total = NodeRecord(2, 2, "SumBackward0", "Sum", 1, "", "", None, (EdgeRecord(3, 0),), norm=math.inf)
    power = NodeRecord(3, 3, "PowBackward0", "Pow", 1, "", "", None, (), norm=math.inf)
    assert bad_source([sent, large, total, power], power) == sent
    assert norm_trouble([sent, large, total, power])[0].index == 0
    assert bad_source([total, power], power) is None  # it came with the loss


def test_the_operator_that_makes_a_gradient_zero_is_told_once_for_all_that_get_it():
    nodes = chain(("Sum", 1.0, ""), ("Relu", 0.0, ""), ("Addmm", 0.0, ""), leaf(0.0, "w"))
    (found,) = norm_trouble(nodes)
    assert (found.kind, found.title, found.index, found.parameters) == (
        "zero", "Sum makes the gradient zero everywhere", 0, ("w",),
    )  # fmt: skip


def test_a_gradient_that_has_become_zero_little_by_little_has_vanished():
    steps = [(("Mul", "Addmm")[place % 2], 10.0 ** -(place + 1), "") for place in range(44)]
    (found,) = norm_trouble(chain(("Sum", 1.0, ""), *steps, ("Addmm", 0.0, ""), leaf(0.0, "embed.weight")))
    assert found.kind == "vanishing"
    assert found.text.startswith("Mul does most of it: it multiplies the norm 22 times, each time by about 0.1.")
    assert found.title == "the gradient is vanishing until it is 0: 1.0e+00 at Sum, 1.0e-44 at #44"
    assert found.parameters == ("embed.weight",)
    assert found.text.endswith("So it is for embed.weight.")
    (killed,) = norm_trouble(chain(("Sum", 1.0, ""), ("Relu", 1e-20, ""), leaf(0.0, "w")))
    assert (killed.kind, killed.title) == ("zero", "Relu makes the gradient zero everywhere")


def test_a_zero_that_no_parameter_gets_is_none_of_it():
    assert norm_trouble(chain(("Sum", 1.0, ""), ("Relu", 0.0, ""))) == []


def test_a_vanishing_gradient_is_put_on_the_operator_that_does_most_of_it():
    nodes = chain(
        leaf(1.0, "last"), ("Addmm", 1.0, ""), ("Sigmoid", 1.0, ""), ("Addmm", 1e-4, ""), ("Sigmoid", 0.9e-4, ""),
        ("Addmm", 0.9e-8, ""), leaf(0.9e-8, "first"),
    )  # fmt: skip
    (found,) = norm_trouble(nodes)
    assert (found.kind, found.parameters) == ("vanishing", ("last", "first"))
    assert found.text.splitlines() == [
        "Sigmoid does most of it: it multiplies the norm 2 times, each time by about 0.0001.",
        "ReLU or GELU in their place, normalisation between them, or connections past them let it through.",
    ]
    (found,) = norm_trouble(chain(leaf(1e-2, "last"), ("Addmm", 1.0, ""), ("Mul", 1e4, ""), leaf(1e6, "first")))
    assert (found.kind, found.parameters) == ("exploding", ("last", "first"))


def test_a_weight_whose_operator_had_a_tiny_input_is_not_put_on_the_way_to_it():
    nodes = chain(
        leaf(1.0, "last"), ("Addmm", 1.0, ""), ("Mul", 0.5, ""), ("Addmm", 0.5, ""), ("T", 1e-13, ""),
        leaf(1e-13, "weight"),
    )  # fmt: skip
    (found,) = norm_trouble(nodes)
    assert (found.kind, found.index) == ("vanishing", 3)
    assert found.text == "5.0e-01 comes to Addmm, whose other input is next to nothing: look at the forward."


def test_what_an_operator_does_to_a_weight_of_its_own_is_no_part_of_what_it_does_on_the_way():
    nodes = chain(
        leaf(1.0, "last"), ("Addmm", 1.0, ""), ("Gelu", 1e-3, ""), ("Addmm", 1e-3, ""), ("Gelu", 1e-6, ""),
        ("Addmm", 1e-6, ""), leaf(1e-10, "first"),
    )  # fmt: skip
    (found,) = norm_trouble(nodes)
    assert found.text == "Addmm does most of it: it multiplies the norm 2 times, each time by about 0.001."


def test_the_modules_of_the_operator_are_named_and_those_of_repeated_blocks_once():
    nodes = chain(
        leaf(1.0, "last"), ("Addmm", 1.0, ""), ("Addmm", 1e-3, ""), ("Addmm", 1e-6, ""), ("Mul", 1e-9, ""),
        leaf(1e-9, "first"),
    )  # fmt: skip
    paths = ("", "blocks.1.fc2", "blocks.1.fc1", "blocks.0.fc2", "", "")
    (found,) = norm_trouble([replace(node, module=path) for node, path in zip(nodes, paths)])
    assert found.text.startswith("Addmm in `blocks.*.fc2`, `blocks.1.fc1` does most of it")
    (found,) = norm_trouble([replace(node, module=path[7:8]) for node, path in zip(nodes, paths)])
    assert found.text.startswith("Addmm in `0`, `1` does most of it")


def over_time(norms):
    """Return a backward through steps that use one weight, with the gradient that comes to each step."""
    steps = len(norms)
    nodes = []
    for step, norm in enumerate(norms):
        following = (EdgeRecord(step + 1, 0),) if step + 1 < steps else ()
        edges = (*following, EdgeRecord(steps, 0))
        nodes.append(NodeRecord(step, step, "MmBackward0", "Mm", 1, "", "", None, edges, norm=norm))
    total = math.hypot(*norms)
    return [*nodes, NodeRecord(steps, steps, "AccumulateGrad", "", 1, "", "cell.weight", None, (), norm=total)]


def test_a_gradient_that_vanishes_over_time_is_told_though_the_weight_gets_enough():
    (found,) = norm_trouble(over_time([10.0**-k for k in range(12)]))
    assert (found.kind, found.index, found.parameters) == ("vanishing", 0, ("cell.weight",))
    assert found.title == "the gradient is vanishing over 12 uses of cell.weight: from 1.0e+00 to 1.0e-11"
    assert found.text.startswith("From each use to the one before it the norm is multiplied by about 0.1:")


def test_a_gradient_that_explodes_over_time_is_told_though_all_weights_get_much():
    (found,) = norm_trouble(over_time([0.1 * 4.0**k for k in range(12)]))
    assert (found.kind, found.index, found.parameters) == ("exploding", 0, ("cell.weight",))
    assert found.title == "the gradient is exploding over 12 uses of cell.weight: from 1.0e-01 to 4.2e+05"
    assert found.text.startswith("From each use to the one before it the norm is multiplied by about 4:")
    assert found.stop == "op:Mm if norm > 1000"
    assert norm_trouble(over_time([1e4 * k for k in range(1, 13)])) == []


def test_steps_whose_gradients_stay_as_large_do_not_vanish():
    assert norm_trouble(over_time([1.0, 0.5, 0.2, 0.4])) == []
    assert norm_trouble(over_time([1.0, 1e-12])) == []  # twice is a layer that two branches share


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
