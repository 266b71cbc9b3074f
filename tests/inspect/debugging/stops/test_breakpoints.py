"""What a breakpoint names, and what it refuses."""

import numpy as np
import pytest

from gradscope.inspect import BreakpointError, Location, NodeRecord
from gradscope.inspect.debugging.stops.breakpoints import BreakpointTable, parse_spec


def node(**changes):
    facts = {
        "index": 12,
        "key": 7,
        "name": "AddmmBackward0",
        "operator": "Addmm",
        "sequence_nr": 5,
        "module": "layers.0.fc1",
        "parameter": "",
        "location": Location("/home/me/proj/models/block.py", 31, "forward", "x"),
        "edges": (),
    }
    return NodeRecord(**(facts | changes))


LEAF = node(name="AccumulateGrad", operator="AccumulateGrad", module="fc1", parameter="fc1.weight", location=None)


@pytest.mark.parametrize(
    "spec",
    [
        "AddmmBackward0", "Addmm", "addmm", "op:Add*", "op:addmmbackward?", "*", "node:12", "mod:layers.*",
        "mod:layers.0.fc1", "mod:layers.0.fc1.*", "mod:layers.?.fc1.*",
        "line:block.py:31", "line:models/block.py:31", "block.py:31", "./models/block.py:31",
        "bl*.py:31", "mod?ls/block.*:31",
        "line:/home/me/proj/models/block.py:31",
    ],
)  # fmt: skip
def test_matches(spec):
    assert parse_spec(spec)(node())


@pytest.mark.parametrize(
    "spec",
    [
        "Add", "op:Mul*", "node:1", "mod:layers", "mod:ayers.*", "mod:layers.1.*", "param:*",
        "line:block.py:32", "line:ock.py:31", "x*.py:31", "*/other/*.py:31",
        "line:other/block.py:31",
    ],
)  # fmt: skip
def test_does_not_match(spec):
    assert not parse_spec(spec)(node())


def test_parameters():
    assert parse_spec("param:fc1.weight")(LEAF)
    assert parse_spec("param:*.weight")(LEAF)
    assert not parse_spec("param:*.bias")(LEAF)
    assert not parse_spec("line:block.py:31")(LEAF)


@pytest.mark.parametrize("spec", ["line:In[3]:31", "In[3]:31", "line:In*:31"])
def test_the_line_of_a_notebook_cell(spec):
    assert parse_spec(spec)(node(location=Location("In[3]", 31, "<module>", "y = x.exp()")))
    assert not parse_spec(spec)(node(location=Location("block.py", 31, "<module>", "y = x.exp()")))


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("", "needs a place"),
        (" if norm > 1", "needs a place"),
        ("node:x", "needs a node's number"),
        ("node:", "names nothing after node:"),
        ("nod:3", "unknown kind of breakpoint 'nod'"),
        ("line:31", "needs a file and a line"),
        ("line:train.py", "needs a file and a line"),
        ("op:a b", "is not the name of an operator"),
        ("Mul if norm >", "is not a Python expression"),
        ("nan if norm > 1", "takes no condition"),
    ],
)
def test_what_cannot_be_understood_is_refused_with_what_can(spec, said):
    table = BreakpointTable()
    with pytest.raises(BreakpointError, match=said):
        table.add(spec)
    assert table.all() == []


def test_numbers_are_not_given_twice():
    table = BreakpointTable()
    first, second = table.add("Mul"), table.add("Add", temporary=True)
    table.remove(first.id)
    third = table.add("Sum if norm > 1", condition="index == 2")
    assert [p.id for p in table.all()] == [2, 3]
    assert (second.temporary, third.condition) == (True, "(norm > 1) and (index == 2)")
    with pytest.raises(BreakpointError, match=r"there is no breakpoint 1 \(there are: 2, 3\)"):
        table.remove(1)


def test_a_temporary_breakpoint_goes_when_it_hits():
    table = BreakpointTable()
    point = table.add("Mul", temporary=True)
    table.hit(point)
    assert (point.hits, table.all()) == (1, [])


def test_a_disabled_breakpoint_matches_nothing():
    table = BreakpointTable()
    point = table.add("*")
    assert table
    point.enabled = False
    assert not point.matches(node())
    assert not table


def test_conditions():
    table = BreakpointTable()
    assert table.add("*").holds({})
    assert table.add("* if norm > 10").holds({"norm": 11.0})
    assert not table.add("*", condition="norm > 10").holds({"norm": float("nan")})
    assert table.add("*", condition="grad > 1").holds({"grad": np.array([0.0, 2.0])})
    with pytest.raises(NameError):
        table.add("*", condition="gard > 1").holds({"grad": 1})
