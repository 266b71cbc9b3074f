"""PyTorch and gradscope agree on random programs, and on those that once showed them to differ."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import gradscope as gs
from tests.differential.machine import Machine, Program, Ref, Step
from tests.differential.programs import first_divergence, main, minimise, random_program

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.torch


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """Programs of up to 25 steps."""
    return random_program(lambda options: draw(st.sampled_from(options)), draw(st.integers(3, 25)))


@settings(
    max_examples=300,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)
@given(programs())
def test_random_programs_agree(program: Program) -> None:
    divergence = first_divergence(program)
    assert divergence is None, f"{minimise(divergence)}\n\n{divergence.program}"


def test_random_programs_agree_on_another_device(other_device: str) -> None:
    for seed in range(200):
        generator = random.Random(seed)
        program = random_program(generator.choice, generator.randint(5, 25))
        with gs.device(other_device):
            divergence = first_divergence(program)
        assert divergence is None, f"{minimise(divergence)}\n\n{divergence.program}"


def program(*steps: tuple[Any, ...]) -> Program:
    """Return a program written as ``(name, kind, arguments ...)``; a step's name among the arguments refers to it."""
    names = {step[0] for step in steps}
    known = {*names, *(f"{name}.{i}" for name in names for i in range(3))}

    def argument(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(map(argument, value))
        return Ref(value) if isinstance(value, str) and value in known else value

    return tuple(Step(kind, name, tuple(map(argument, args))) for name, kind, *args in steps)


LEAF = ("x", "make", (2, 3), "float64", True, 1)
PLAIN = ("c", "make", (2, 3), "float64", False, 2)
BASE = ("b", "number", "mul", "x", 2.0)
WATCH = ("w", "watch")


def backward(name: str, tensor: str, *, how: str = "sum", retain: Any = None, create: bool = False, inputs: Any = None):
    """Return the step of a backward()."""
    return (name, "backward", tensor, how, retain, create, inputs)


FOUND = {
    "backward into a non-leaf retains its gradient and runs its node": program(
        LEAF, BASE, ("y", "unary", "exp", "b"), ("h", "node_hook", "b", "pre", None), backward("1", "y", inputs=("b",))
    ),
    "backward into a tensor that does not require grad": program(LEAF, PLAIN, backward("1", "x", inputs=("c",))),
    "node hooks see gradients reduced to the shape of the input": program(
        LEAF, ("y", "make", (3,), "float64", True, 3), ("z", "binary", "mul", "x", "y", True),
        ("h", "node_hook", "z", "post", 2.0), backward("1", "z"),
    ),
    "node hooks see None where no gradient is wanted": program(
        LEAF, ("z", "binary", "mul", "x", "x", True), ("h", "node_hook", "z", "post", 2.0),
        backward("1", "z", inputs=("z",)),
    ),
    "gradients under create_graph are not shared by their receivers": program(
        LEAF, ("y", "make", (2, 3), "float64", True, 3), ("z", "binary", "add", "x", "y", True),
        backward("1", "z", create=True), ("g", "grad_of", "x"), ("2", "write_number", "mul_", "g", 2.0),
    ),
    "no gradient arrives where requires_grad_(False) was called since": program(
        LEAF, BASE, ("1", "requires_grad_", "x", False), backward("2", "b", retain=True),
        ("3", "requires_grad_", "x", True), backward("4", "b"),
    ),
    "a leaf that no longer requires grad is no root": program(
        LEAF, BASE, ("1", "requires_grad_", "x", False), backward("2", "x", how="gradient")
    ),
    "new data keep the AccumulateGrad": program(
        LEAF, BASE, ("1", "set_data", "x", "x"), ("y", "binary", "mul", "b", "x", True), WATCH, backward("2", "y")
    ),
    "a view made under no_grad takes part and leads nowhere": program(
        LEAF, ("1", "enter", "no_grad"), ("v", "view", "view", "x", 0, 0), ("2", "leave"), ("y", "unary", "relu", "v"),
        ("z", "binary", "mul", "y", "x", True), WATCH, backward("3", "z"),
        ("g", "grad", "z", "sum", ("v",), None, False, True),
    ),
    "the gradient attribute of a stale view that may not be": program(
        LEAF, ("v", "view", "unbind", "x", 0, 0), ("1", "enter", "no_grad"), ("2", "write", "exp_", "x"),
        ("3", "leave"), ("4", "look", "v.0"), ("5", "method", "retain_grad", "v.0"),
    ),
    "a write to a view taken before its base required grad": program(
        LEAF, PLAIN, ("v", "view", "view", "c", 0, 0), ("1", "write_tensor", "add_", "c", "x", True, 0),
        ("2", "write_number", "mul_", "v", 2.0), ("3", "look", "v"), ("4", "write_number", "mul_", "v", 2.0),
    ),
    "a write to a view that is itself a leaf": program(
        PLAIN, ("v", "view", "view", "c", 0, 0), ("1", "requires_grad_", "v", True), ("2", "write", "exp_", "v")
    ),
    "retain_grad moves along when an edge is made anew": program(
        LEAF, BASE, ("v", "view", "select", "b", 1, 0), ("1", "method", "retain_grad", "v"),
        ("2", "write_number", "mul_", "b", 3), backward("3", "v", how="gradient"),
    ),
    "a view of a base that was cut off": program(
        LEAF, BASE, ("v", "view", "select", "b", 1, 0), ("1", "method", "detach_", "b"), ("2", "write", "neg_", "b"),
        WATCH, ("y", "unary", "exp", "v"),
    ),
    "CopySlices runs once even where nothing was saved": program(
        LEAF, BASE, PLAIN, ("1", "write_tensor", "setitem", "b", "c", True, 1), backward("2", "b"), backward("3", "b")
    ),
    "a hooked tensor that is captured on the way to another": program(
        LEAF, BASE, ("y", "unary", "exp", "b"), ("h", "hook", "b", 2.0),
        ("g", "grad", "y", "sum", ("b", "x"), None, False, False),
    ),
    "rectifiers have a second derivative, zero": program(
        LEAF, ("y", "unary", "relu", "x"), ("g", "grad", "y", "sum", ("x",), None, True, False),
        ("h", "grad", "g.0", "sum", ("x",), None, False, False),
    ),
    "reshape of what is no longer contiguous": program(
        LEAF, ("t", "view", "transpose", "x", 0, 1), ("r", "view", "reshape", "t", 0, 0), WATCH,
        ("s", "view", "select", "x", 1, 0), ("q", "view", "reshape", "s", 0, 0),
    ),
    "a source that overlaps what is written": program(
        ("c", "make", (4,), "float64", False, 2), ("a", "view", "narrow", "c", 1, 0),
        ("b", "view", "narrow", "c", 0, 1), ("1", "write_tensor", "add_", "a", "b", True, 0),
        ("2", "write_tensor", "copy_", "a", "b", True, 0), ("3", "write_tensor", "add_", "a", "a", True, 0),
    ),
    "copies of expanded tensors lie in rows": program(
        ("c", "make", (1, 3), "float64", False, 2), ("e", "view", "expand", "c", 0, 1),
        ("z", "unary", "zeros_like", "e"), ("k", "unary", "clone", "e"), ("j", "join", "cat", "e", "e"),
    ),
    "0-d gradients are arrays": program(
        ("x", "make", (), "float32", True, 1), ("y", "binary", "add", "x", "x", True), backward("1", "y")
    ),
    "matrices of two dtypes": program(
        ("a", "make", (3,), "float64", True, 1), ("b", "make", (3,), "float32", True, 1),
        ("c", "join", "matmul", "a", "b"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("found", FOUND.values(), ids=FOUND)
def test_once_different(found: Program) -> None:
    divergence = first_divergence(found)
    assert divergence is None, str(divergence)


def test_long_run_reports_divergences(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A machine that gets one operator wrong is found out, and the program shown is short."""
    right = Machine._do_unary

    def wrong(self: Machine, out: str, method: str, tensor: Any) -> Any:
        result = right(self, out, method, tensor)
        return result * 2 if method == "exp" and self.module is not torch else result

    monkeypatch.setattr(Machine, "_do_unary", wrong)
    assert main(["--count", "60", "--show", "1"]) == 1
    shown = capsys.readouterr().out
    assert ".exp()" in shown
    assert "values:" in shown
    assert len(shown.partition("values:")[0].splitlines()) < 8


def test_long_run_is_quiet_when_all_agree(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--count", "20", "--length", "8"]) == 0
    assert capsys.readouterr().out == "20 programs, 0 divergences\n"
