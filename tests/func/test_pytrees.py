"""Trees of dicts, lists and tuples: walked, mapped and rebuilt in one order."""

from collections import OrderedDict, namedtuple

import pytest

from gradscope.func import pytrees

Pair = namedtuple("Pair", "first second")
TREES = [3, [1, 2], (1, [2, 3]), {"b": 1, "a": (2, 3)}, OrderedDict(z=1, y=[2]), Pair(1, {"k": 2}), [], {}]


@pytest.mark.parametrize("tree", TREES, ids=str)
def test_a_tree_is_filled_with_its_own_leaves(tree):
    filled = pytrees.filled(tree, iter(list(pytrees.leaves(tree))))
    assert filled == tree
    assert type(filled) is type(tree)


@pytest.mark.parametrize("tree", TREES, ids=str)
def test_a_mapped_tree_has_the_form_and_the_mapped_leaves(tree):
    mapped = pytrees.mapped(lambda leaf: leaf + 10, tree)
    assert pytrees.same_form(mapped, tree)
    assert list(pytrees.leaves(mapped)) == [leaf + 10 for leaf in pytrees.leaves(tree)]


def test_another_length_or_another_key_is_another_form():
    assert not pytrees.same_form([1, 2], [1])
    assert not pytrees.same_form({"a": 1}, {"b": 1})
    assert not pytrees.same_form([1], 1)


def test_a_leaf_is_what_holds_nothing_else():
    assert pytrees.is_leaf(3)
    assert not any(pytrees.is_leaf(tree) for tree in ([], {}, (), Pair(1, 2)))
