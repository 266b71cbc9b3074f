"""What ``python -m gradscope.runtime.ops show`` prints of an operator."""

from __future__ import annotations

import ast
import builtins
import linecache
import os
import subprocess
import sys

import pytest

import gradscope as gs
from gradscope.runtime.ops.declaration.registry import OPERATORS
from gradscope.runtime.ops.generated_source import LEGEND, UnknownOperatorError, entry_of, legend, listing


def command(*arguments):
    """Run the command; return its exit status, what it printed, and its errors."""
    done = subprocess.run(
        [sys.executable, "-m", "gradscope.runtime.ops", *arguments], capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout, done.stderr


# --- the command ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_reader_that_has_left_is_no_error():
    reader, writer = os.pipe()
    os.close(reader)
    shown = [sys.executable, "-m", "gradscope.runtime.ops", "show", "mul"]
    done = subprocess.run(shown, stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")


def test_the_command_shows_function_node_and_legend():
    status, shown, errors = command("show", "sqrt", "neg_")
    assert (status, errors) == (0, "")
    functions = [node.name for node in ast.parse(shown).body]
    assert functions == ["sqrt", "apply", "neg_", "apply"]
    for line in (
        "# sqrt(Tensor self)",
        "# declared in gradscope/runtime/ops/pointwise/unary.py",
        "# SqrtBackward0",
        "# neg_, the in-place form of: neg(Tensor self)",
        "        else: r = ufunc(x_self)",
        f"# x_NAME          {LEGEND['x_NAME']}",
        f"# .s_NAME         {LEGEND['.s_NAME']}",
    ):
        assert line in shown.splitlines()


@pytest.mark.slow
def test_unknown_names_are_told_with_near_ones_and_nothing_is_shown():
    status, shown, errors = command("show", "mul", "mull", "\x1b[31m")
    assert (status, shown) == (2, "")
    assert errors.splitlines()[:2] == ["there is no operator 'mull'", "Near names: mul, mul_, multiply."]
    assert "\x1b" not in errors


def test_a_name_is_asked_for():
    status, shown, errors = command("show")
    assert (status, shown) == (2, "")
    assert "the following arguments are required: NAME" in errors


# --- the source -------------------------------------------------------------------------------------------------------


def test_what_is_shown_is_what_runs():
    # No other test declares a hypot() of its own, whose source would stand at the same name.
    x = gs.ones(2, requires_grad=True)
    y = gs.hypot(x, gs.full((2,), 2.0))
    y = y.clone().hypot_(x)
    y.sum().backward(retain_graph=True)
    for shown, function in (
        (listing("hypot"), OPERATORS["hypot"].function),
        (listing("hypot_"), OPERATORS["hypot"].inplace_function),
        (listing("hypot"), OPERATORS["hypot"].node_class.apply),
    ):
        ran = "".join(linecache.getlines(function.__code__.co_filename))
        assert ran.startswith("def ")
        assert ran in shown


def test_a_name_may_be_an_alias_an_overload_or_that_of_several():
    assert listing("subtract") == listing("sub")
    assert listing("subtract_") == listing("sub_")
    assert listing("sum") == listing("sum.all") + "\n" + listing("sum.dim")


def test_a_node_of_the_in_place_form_is_shown_under_its_own_name():
    names = {op.name: op.inplace_node for op in OPERATORS.values() if op.inplace_node}
    assert names
    for name, node in names.items():
        assert f"# {node}\n" in listing(f"{name}_")


def test_what_is_composed_of_operators_is_told_with_its_place():
    with pytest.raises(UnknownOperatorError, match=r"^tensordot is composed of operators: .* gradscope/\S+\.py:\d+$"):
        listing("tensordot")
    with pytest.raises(UnknownOperatorError, match=r"^there is no operator 'softmax_'"):
        listing("softmax_")


# --- the legend -------------------------------------------------------------------------------------------------------


def declared(name):
    """Return the names that the source of an operator, or of those of the same base name, has from a declaration."""
    base = name.partition(".")[0]
    return {p.name for op in OPERATORS.values() if op.name.partition(".")[0] == base for p in op.parameters}


def names_in(source):
    """Return the variables and the private attributes in Python source."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute) and node.attr.startswith(("_", "s_", "v_")):
            yield f".{node.attr}"


@pytest.mark.slow
def test_the_legend_explains_every_name_in_every_operator():
    known = {*dir(builtins), "._make_view", "._records", "._version", "results"} - LEGEND.keys()
    unexplained, met = set(), set()
    for name, op in OPERATORS.items():
        sources = [listing(name), *([listing(f"{name}_")] if op.inplace else [])]
        for word in {word for source in sources for word in names_in(source)} - declared(name) - known:
            entry = entry_of(word)
            met.add(entry)
            if entry not in LEGEND:
                unexplained.add((name, word))
    assert unexplained == set()
    public = {entry for entry in LEGEND if entry.startswith(".") and not entry.startswith(("._", ".s_", ".v_"))}
    assert LEGEND.keys() - met == public


def test_the_legend_is_of_what_is_in_the_source():
    assert legend("r = ufunc(x_self)") == (
        "# ufunc   the declared forward, where it is a NumPy ufunc\n"
        "# x_NAME  the bare array of operand NAME\n"
        "# r       what forward has computed; r0, r1, ... where it is several arrays"
    )
