"""Two backwards side by side."""

from __future__ import annotations

import math
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from gradscope.inspect.diagnosis.flow.backward_comparison import comparison_text, first_difference, node_pairs
from gradscope.inspect.records.records import Location, NodeRecord, TensorSpec

NORMS = st.lists(st.none() | st.floats(0, 1e30) | st.just(math.nan) | st.just(math.inf), max_size=12)


def backward(norms, operator="Mul"):
    return [
        NodeRecord(place, place, f"{operator}Backward0", operator, 0, "net", "", None, (), norm=norm)
        for place, norm in enumerate(norms)
    ]


@given(NORMS)
def test_a_backward_is_the_same_as_itself(norms):
    pairs = node_pairs(backward(norms), backward(norms))
    assert [(pair.left.index, pair.right.index) for pair in pairs] == [(i, i) for i in range(len(norms))]
    assert first_difference(pairs) == -1
    known = sum(norm is not None for norm in norms)
    assert f"no difference in the {known} of {len(norms)} nodes" in comparison_text(pairs, "a", "b")


@given(NORMS, st.data())
def test_every_node_of_both_stands_in_one_pair_in_order(norms, data):
    left = backward(norms)
    right = [node for node in left if data.draw(st.booleans())]
    pairs = node_pairs(left, right)
    assert [pair.left for pair in pairs if pair.left is not None] == left
    assert [pair.right for pair in pairs if pair.right is not None] == right


def test_a_missing_node_another_norm_and_another_shape_are_differences():
    left = backward([1.0, 2.0, 3.0])
    assert first_difference(node_pairs(left, backward([1.0, 2.0, 3.1]))) == 2
    assert first_difference(node_pairs(left, backward([1.0, math.nan, 3.0]))) == 1
    assert first_difference(node_pairs(left, [*left[:1], replace(left[1], name="SinBackward0"), left[2]])) == 1
    shaped = replace(left[0], outputs=(TensorSpec((2,), "float32", "cpu"),))
    assert first_difference(node_pairs(left, [shaped, *left[1:]])) == 0
    assert first_difference(node_pairs(left, backward([1.0 + 1e-9, 2.0, None]))) == -1


def test_a_ratio_is_told_where_it_says_something():
    pairs = node_pairs(backward([2.0, 0.0, None, 1.0]), backward([1.0, 1.0, 1.0, math.inf]))
    assert [pair.ratio for pair in pairs] == [0.5, None, None, None]


def test_nodes_whose_lines_differ_are_the_same_between_two_that_are():
    def version(file, norm):
        lines = ["loss = x.mean()", "y = 2 * x", "y = x + 1"]
        nodes = zip(backward([1.0, norm, norm]), lines)
        return [replace(node, location=Location(file, 3, "train", line)) for node, line in nodes]

    moved = version("old.py", 2.0), version("new.py", 4.0)
    pairs = node_pairs(*moved)
    assert [(pair.left.index, pair.right.index) for pair in pairs] == [(0, 0), (1, 1), (2, 2)]
    assert [pair.ratio for pair in pairs] == [1.0, 2.0, 2.0]
    added = [moved[1][0], replace(moved[1][1], name="SinBackward0", operator="Sin"), *moved[1][1:]]
    assert [pair.left and pair.left.index for pair in node_pairs(moved[0], added)] == [0, None, 1, 2]


def test_a_difference_too_small_for_three_digits_is_seen_in_the_ratio():
    (line,) = [line for line in comparison_text(node_pairs(backward([2.0]), backward([2.0005])), "a", "b").splitlines()
               if line.startswith(">")]  # fmt: skip
    assert line.split()[-1] == "1.0003"
