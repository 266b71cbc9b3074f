"""What the gradients of a backward show is a finding with its severity, its line and where to stop."""

from __future__ import annotations

import math

import pytest

from gradscope.inspect.diagnosis.finding_limits import Limits
from gradscope.inspect.diagnosis.flow.trend_findings import trend_findings
from gradscope.inspect.records.records import EdgeRecord, InnerOperator, Location, NodeRecord

LINE = Location("/a/train.py", 7, "step", "loss = model(x).sqrt().sum()")
INSIDE = Location("/a/net.py", 3, "forward", "return x.log()")


def backward(*norms, inside=()):
    """Return nodes that each pass their gradient on to the next, made at lines of their own, the last a parameter's."""
    nodes = []
    for index, norm in enumerate(norms):
        last = index + 1 == len(norms)
        edges = () if last else (EdgeRecord(index + 1, 0),)
        name, parameter = ("AccumulateGrad", "w") if last else ("SqrtBackward0", "")
        operator = name.removesuffix("Backward0")
        line = Location(LINE.filename, LINE.lineno + index, LINE.function, LINE.source)
        nodes.append(NodeRecord(index, index, name, operator, 1, "", parameter, line, edges, norm=norm, inside=inside))
    return nodes


def test_gradients_that_are_as_they_should_be_are_no_finding():
    assert trend_findings(backward(1.0, 2.0, 1.5), Limits()) == []


@pytest.mark.parametrize(("bad", "kind"), [(math.nan, "nan"), (math.inf, "inf")])
def test_a_bad_gradient_is_an_error_at_the_line_of_the_node_that_made_it(bad, kind):
    (found,) = trend_findings(backward(1.0, 2.0, bad), Limits())
    assert (found.kind, found.severity, found.index) == (kind, "error", 1)
    assert found.location.lineno == LINE.lineno + 1


def test_a_gradient_that_becomes_zero_is_a_warning_with_its_parameters():
    (found,) = trend_findings(backward(1.0, 0.0, 0.0), Limits())
    assert (found.kind, found.severity, found.parameters) == ("zero", "warning", ("w",))


def test_what_happens_inside_of_a_compiled_node_is_told_with_its_own_line():
    bad = InnerOperator("Log", ("div",), location=INSIDE, bad=1, why="the derivative of log is infinite at 0")
    (found,) = trend_findings(backward(1.0, 2.0, math.inf, inside=(bad,)), Limits())
    assert found.title == "Log, inside of SqrtBackward0, makes an infinity of a finite gradient"
    assert (found.text, found.location) == (bad.why, INSIDE)


def test_a_backward_with_more_nodes_than_are_searched_is_left_alone():
    nodes = backward(1.0, 2.0, math.nan)
    assert trend_findings(nodes, Limits(), len(nodes) - 1) == []
    assert trend_findings(nodes, Limits(), len(nodes)) != []
