from __future__ import annotations

import pytest

from gradscope.inspect.dap.stop_points import StopPoints, data_id, log_expression


def told(points):
    return [(point["id"], point["verified"]) for point in points]


def test_what_stays_the_same_keeps_its_number_and_its_hits(program):
    points = StopPoints()
    first = points.replace(program, "a.py", [("op:Tanh", {"hitCondition": "3"}), ("op:Pow", {})])
    assert told(first) == [(1, True), (2, True)]
    kept = program.breakpoints[1].id
    second = points.replace(program, "a.py", [("op:Sum", {}), ("op:Pow", {})])
    assert told(second) == [(3, True), (2, True)]
    assert [point.spec for point in program.breakpoints] == ["op:Pow", "op:Sum"]
    assert (points.number(kept), points.number(99), points.number(None)) == (2, None, None)
    assert program.breakpoints[0].id == kept
    points.replace(program, "b.py", [("op:Pow", {})])
    assert points.replace(program, "a.py", []) == []
    assert [point.spec for point in program.breakpoints] == ["op:Pow"]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"hitCondition": "often"}, "a hit count is a number from 1, got 'often'"),
        ({"hitCondition": "0"}, "a hit count is a number from 1, got '0'"),
        ({"condition": "(("}, "is not a Python expression"),
        ({"logMessage": "{norm"}, "a brace is not closed"),
    ],
)
def test_what_cannot_be_set_is_said_and_leaves_nothing(program, options, text):
    (point,) = StopPoints().replace(program, "a.py", [("op:Pow", options)])
    assert (point["verified"], text in point["message"]) == (False, True)
    assert program.breakpoints == []


def test_trouble_is_caught_as_chosen(program):
    points = StopPoints()
    points.catch(program, ["nan", "violation"])
    assert program.catching == {"violation": True, "exception": False, "nan": True, "inf": False}
    with pytest.raises(ValueError, match="an exception filter is one of nan, inf, violation, exception, got all"):
        points.catch(program, ["all"])
    assert program.catching["nan"]


def test_nothing_stops_a_program_that_is_not_debugged(program):
    points = StopPoints()
    points.ignored = True
    (point,) = points.replace(program, "a.py", [("op:Pow", {})])
    points.catch(program, ["nan"])
    assert (point["verified"], program.breakpoints, any(program.catching.values())) == (False, [], False)


def test_a_saved_tensor_is_one_of_the_backward_that_is_shown(program):
    points = StopPoints()
    tanh = next(node.index for node in program.nodes if node.operator == "Tanh")
    known = data_id(program, tanh, "result")
    now, other = points.replace(program, "data", [(known, {}), (f"2{known[1:]}", {})])
    assert (now["verified"], other["verified"]) == (True, False)
    assert program.breakpoints[0].spec == f"saved:{tanh}.result"


@pytest.mark.parametrize(
    ("message", "value"),
    [
        ("", ""),
        ("norm", "norm"),
        ("{1 + 1}", "2"),
        ("a {dict(b=[3])['b'][0]} {'c'}d", "a 3 cd"),
        ("{ {1: 2}[1] }}", "2}"),
        ("it's \\n {0}", "it's \\n 0"),
    ],
)
def test_a_log_message_is_text_with_expressions_in_braces(message, value):
    assert eval(log_expression(message)) == value
