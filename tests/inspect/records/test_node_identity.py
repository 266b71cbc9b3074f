"""Nodes of different graphs are the same one by where they come from, not by their number."""

from __future__ import annotations

from gradscope.inspect.records.node_identity import node_identities
from gradscope.inspect.records.records import Location


def kind(name, lineno=3, source="y = x.exp()", parameter=""):
    return ("layer", parameter, name, Location("/somewhere/train.py", lineno, "main", source))


def test_a_node_keeps_its_identity_when_others_come_before_it():
    alone = node_identities([kind("ExpBackward0")])
    after = node_identities([kind("SumBackward0"), kind("ExpBackward0", lineno=9)])
    assert after[1] == alone[0]


def test_nodes_of_one_kind_are_counted():
    first, second = node_identities([kind("ExpBackward0"), kind("ExpBackward0")])
    assert (first.occurrence, second.occurrence) == (0, 1)
    assert str(second) == "ExpBackward0 #2 of layer  [train.py, main: y = x.exp()]"


def test_a_node_without_a_line_has_no_place():
    (identity,) = node_identities([("", "0.weight", "AccumulateGrad", None)])
    assert str(identity) == "AccumulateGrad of 0.weight"
