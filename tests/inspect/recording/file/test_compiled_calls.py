"""Calls inside of compiled nodes as text in a recording, and what a stranger may have put there."""

import pytest

from gradscope.inspect import InnerOperator, Location
from gradscope.inspect.recording.file.compiled_calls import inside_text, read_inside


def test_what_is_written_is_read_again():
    line = Location("a.py", 3, "f", "x.sqrt()")
    inside = (
        InnerOperator("sqrt", ("mul", "div"), "head", line, 1.0, float("inf"), 2),
        InnerOperator("add", ("add",)),
    )
    assert read_inside(inside_text(inside)) == inside


@pytest.mark.parametrize("text", ["", "{}", "[[]]", "[[1, 2]]", '[["a", 3, "", null, null, null, 0]]', "null", None])
def test_anything_else_is_refused(text):
    with pytest.raises((ValueError, TypeError)):
        read_inside(text)


def test_what_a_terminal_would_obey_is_shown():
    (one,) = read_inside('[["\\u001b[2J", [], "", null, null, null, 0]]')
    assert "\x1b" not in one.operator
