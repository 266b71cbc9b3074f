"""What help() shows of an operator: its neighbours stand in a file, each line of which is shown somewhere."""

from __future__ import annotations

import inspect
from operator import attrgetter

import gradscope as gs
from gradscope.runtime.ops.execution.codegen import docstrings

LINES = docstrings._NEIGHBOURS.read_text(encoding="utf-8").splitlines()


def test_a_line_is_shown_by_its_function() -> None:
    for line in LINES:
        name, _, neighbours = line.partition(": ")
        assert f"See Also\n--------\n{neighbours}\n" in (inspect.getdoc(attrgetter(name)(gs)) or ""), name


def test_lines_are_in_order_and_each_function_has_one() -> None:
    names = [line.partition(": ")[0] for line in LINES]
    assert names == sorted(set(names))


def test_neighbours_stand_before_the_examples_as_far_in_as_these() -> None:
    documented = "Return it.\n\n    Examples\n    --------\n    >>> 1\n    "
    assert docstrings.with_neighbours("exp", documented) == documented.replace(
        "    Examples\n", "    See Also\n    --------\n    expm1, exp2, log\n\n    Examples\n"
    )


def test_what_says_itself_what_else_to_look_at_is_left() -> None:
    documented = "Return it.\n\nSee Also\n--------\nlog\n\nExamples\n--------\n"
    assert docstrings.with_neighbours("exp", documented) == documented
    assert docstrings.with_neighbours("nothing", "Return it.") == "Return it."
