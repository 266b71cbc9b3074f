"""Random programs, run on PyTorch and on gradscope in lockstep.

A program is a tuple of :class:`Step`: make a leaf, call an operator, take a view, write in place, detach, enter
no_grad, register a hook, run a backward ... A :class:`Machine` runs them on one module (``torch`` or ``gradscope``: the
names are the same); :func:`first_divergence` runs two machines side by side and compares, after every step, whether it
raised and what, which hooks were called with which gradients, and of every living tensor the values, the version, the
flags, the base and the gradient; for the tensors a program looks at, also the backward graph below them: names, edges,
order, and every saved tensor.

Steps name their operands; for one that does not exist (its maker raised, or was dropped) the newest tensor stands in.
So any subset of a program is a program, and a diverging one is minimised by dropping steps.

A long run, which prints the first divergences, minimised, and exits with status 1 if there are any::

    python -m tests.differential.programs --count 10000 --seed 0

Not compared, because the two differ by design:

- programs whose numbers leave the range in which rounding stays small, and those in which operands that lie in memory
  in different orders meet;
- the inner structure of what ``create_graph`` records: both write the same derivatives, in other operators;
- hooks on AccumulateGrad nodes: a leaf of gradscope keeps its node, PyTorch's may be made anew;
- tensors that were saved and then cut off by ``detach_()``: PyTorch refuses, gradscope goes on with their values;
- fill_(), masked_fill_() and index_put_() on expanded tensors: PyTorch takes or deprecates them, gradscope refuses.

Where PyTorch 2.13 itself fails (a crash, an internal assertion), the machine steps around it.
"""

from __future__ import annotations

import argparse
import itertools
import random
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy

from .machine import OK, SKIPPED, Machine, Program, Ref, Step

__all__ = ["Divergence", "first_divergence", "minimise", "random_program"]

# --- what programs are made of ----------------------------------------------------------------------------------------

SHAPES = ((2, 3), (2, 3), (3,), (2, 1), (1, 3), (), (4,), (2, 2, 2))
UNARY = (
    "exp", "sin", "cos", "tanh", "sigmoid", "relu", "neg", "square", "abs", "clone", "contiguous", "zeros_like",
    "sinc", "erf", "i0", "sgn",
)  # fmt: skip
BINARY = ("add", "sub", "mul", "mul", "div", "maximum", "atan2", "copysign")
WITH_NUMBER = ("add", "mul", "sub", "div", "pow", "__rsub__", "__rtruediv__")
VIEWS = (
    "narrow", "select", "transpose", "permute", "view", "reshape", "expand", "unsqueeze", "squeeze", "flatten",
    "unbind", "split", "chunk", "getitem", "getitem",
)  # fmt: skip
WRITES = ("exp_", "sin_", "sinc_", "erf_", "tanh_", "sigmoid_", "relu_", "neg_", "zero_", "abs_", "t_", "squeeze_")
NUMBER_WRITES = ("add_", "mul_", "sub_", "fill_", "div_", "pow_", "masked_fill_", "ge_")
TENSOR_WRITES = ("add_", "mul_", "sub_", "copy_", "copy_", "div_", "setitem", "setitem")
NUMBERS = (0.5, 2.0, -1.5, 3, 1)
FACTORS = (None, 2.0, -0.5)

Choose = Callable[[Sequence[Any]], Any]


def random_program(choose: Choose, length: int) -> Program:
    """Return a program of `length` steps; `choose` picks one of a sequence."""
    maker = _Maker(choose)
    for number in range(length):
        maker.add(number, "make" if number < 2 else choose(WEIGHTED))
    return tuple(maker.steps)


class _Maker:
    """Writes a program: knows which names there are, not what will become of them."""

    def __init__(self, choose: Choose) -> None:
        self.choose = choose
        self.steps: list[Step] = []
        self.names: list[Ref] = []
        self.open = 0
        self.hooks: list[str] = []

    def add(self, number: int, kind: str) -> None:
        if self.open and self.choose((True, False, False, False)):
            kind = "leave"
        self.open += {"enter": 1, "leave": -1}.get(kind, 0)
        out = f"t{number}"
        args = getattr(self, "_" + kind)()
        self.steps.append(Step(kind, out, args))
        if kind in MAKE_TENSORS:
            several = kind == "grad" or (kind == "view" and args[0] in ("unbind", "split", "chunk"))
            self.names += [Ref(f"{out}.0"), Ref(f"{out}.1")] if several else [Ref(out)]
        if kind in ("hook", "post_hook", "node_hook"):
            self.hooks.append(out)

    def _tensor(self) -> Ref:
        return self.choose((*self.names, *self.names[-3:], *self.names[-3:]))

    def _targets(self) -> tuple[Ref, ...]:
        return tuple(dict.fromkeys(self._tensor() for _ in range(self.choose((1, 1, 2)))))

    def _make(self) -> tuple[Any, ...]:
        dtype = self.choose(("float64", "float64", "float64", "float32"))
        return self.choose(SHAPES), dtype, self.choose((True, True, True, False)), len(self.steps)

    def _unary(self) -> tuple[Any, ...]:
        return self.choose(UNARY), self._tensor()

    def _binary(self) -> tuple[Any, ...]:
        return self.choose(BINARY), self._tensor(), self._tensor(), self.choose((True,) * 15 + (False,))

    def _number(self) -> tuple[Any, ...]:
        return self.choose(WITH_NUMBER), self._tensor(), self.choose(NUMBERS)

    def _reduce(self) -> tuple[Any, ...]:
        return self.choose(("sum", "mean")), self._tensor(), self.choose((None, 0, 1, -1)), self.choose((False, True))

    def _join(self) -> tuple[Any, ...]:
        return self.choose(("cat", "stack", "where", "matmul")), self._tensor(), self._tensor()

    def _view(self) -> tuple[Any, ...]:
        return self.choose(VIEWS), self._tensor(), self.choose(range(6)), self.choose(range(6))

    def _target(self) -> Ref:
        """Return a tensor to write to: for the most part no leaf."""
        made = {Ref(step.out) for step in self.steps if step.kind == "make"}
        others = [name for name in self.names[-6:] if name not in made]
        return self.choose(others) if others and self.choose((True,) * 5 + (False,)) else self._tensor()

    def _write(self) -> tuple[Any, ...]:
        return self.choose(WRITES), self._target()

    def _write_number(self) -> tuple[Any, ...]:
        return self.choose(NUMBER_WRITES), self._target(), self.choose(NUMBERS)

    def _write_tensor(self) -> tuple[Any, ...]:
        fit = self.choose((True,) * 15 + (False,))
        return self.choose(TENSOR_WRITES), self._target(), self._tensor(), fit, self.choose(range(6))

    def _method(self) -> tuple[Any, ...]:
        return self.choose(("detach", "detach", "detach_", "clone", "retain_grad", "retain_grad")), self._tensor()

    def _requires_grad_(self) -> tuple[Any, ...]:
        return self._tensor(), self.choose((True, True, False))

    def _data(self) -> tuple[Any, ...]:
        return (self._tensor(),)

    _grad_of = _drop = _look = _post_hook = _data

    def _set_grad(self) -> tuple[Any, ...]:
        return self._tensor(), self.choose((None, self._tensor()))

    def _set_data(self) -> tuple[Any, ...]:
        return self._tensor(), self._tensor()

    def _hook(self) -> tuple[Any, ...]:
        return self._tensor(), self.choose(FACTORS)

    def _node_hook(self) -> tuple[Any, ...]:
        return self._tensor(), self.choose(("pre", "post")), self.choose(FACTORS)

    def _unhook(self) -> tuple[Any, ...]:
        return (self.choose(self.hooks) if self.hooks else "",)

    def _enter(self) -> tuple[Any, ...]:
        return (self.choose(("no_grad", "no_grad", "enable_grad")),)

    def _leave(self) -> tuple[Any, ...]:
        return ()

    _watch = _leave

    def _backward(self) -> tuple[Any, ...]:
        how = self.choose(("sum", "sum", "sum", "gradient", "plain"))
        inputs = self.choose((None, None, None, self._targets()))
        return self._tensor(), how, self.choose((None, None, True, False)), self.choose((False,) * 4 + (True,)), inputs

    def _grad(self) -> tuple[Any, ...]:
        how = self.choose(("sum", "sum", "sum", "gradient", "plain"))
        flags = (self.choose((None, True)), self.choose((False, True)), self.choose((False, True, True, True)))
        return self._tensor(), how, self._targets(), *flags


WEIGHTED = (
    *("make",) * 2, *("unary",) * 8, *("binary",) * 8, *("number",) * 4, *("reduce",) * 3, *("join",) * 2,
    *("view",) * 14, *("write",) * 6, *("write_number",) * 5, *("write_tensor",) * 8, *("method",) * 4,
    "requires_grad_", *("data",) * 2, *("grad_of",) * 2, "set_grad", "set_data", *("drop",) * 2, *("look",) * 4,
    *("hook",) * 5, "post_hook", *("node_hook",) * 3, "unhook", *("enter",) * 3, "watch", *("backward",) * 10,
    *("grad",) * 6,
)  # fmt: skip
MAKE_TENSORS = {
    "make", "unary", "binary", "number", "reduce", "join", "view", "method", "data", "grad_of", "grad",
}  # fmt: skip

# --- two machines -----------------------------------------------------------------------------------------------------


# Which of these a backward raises depends, for what create_graph recorded, on how the derivative is written.
DEPENDS_ON_FORMULA = {"modified by inplace", "second time"}

# What may be found before, or after, that a view went stale, where both are the case.
ALSO_FOUND = (
    "modified by inplace",
    "shape",
    "strides",
    "implicit gradient",
    "expanded memory",
    "overlap",
    "dtype",
    "other",
)

# What only PyTorch refuses: the program ends there.
REFUSED_BY_PYTORCH = ("saved and detached in place", "leaf moved inside")

# Wide enough for float32 after many steps: a wrong derivative is wrong by more.
TOLERANCE = 1e-3
LIMIT = 1e3


@dataclass(frozen=True, slots=True)
class Divergence:
    """Where gradscope does something else than PyTorch."""

    program: Program
    texts: tuple[str, ...]
    what: str
    expected: Any
    got: Any

    def __str__(self) -> str:
        lines = [f"    {text}" for text in self.texts]
        return "\n".join([*lines, f"{self.what}:", f"    torch     {self.expected}", f"    gradscope {self.got}"])


class _NotComparableError(Exception):
    """From here on the two differ by design: numbers too large, another order in memory."""


def first_divergence(program: Program) -> Divergence | None:
    """Run `program` on both modules; return where they first differ, or None."""
    import torch

    import gradscope

    reference, candidate = Machine(torch), Machine(gradscope)
    texts: list[str] = []
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            difference = _lockstep(program, reference, candidate, texts)
    except _NotComparableError:
        return None
    finally:
        reference.close()
        candidate.close()
    return None if difference is None else Divergence(program, tuple(texts), *difference)


def _lockstep(program: Program, reference: Machine, candidate: Machine, texts: list[str]) -> Any:
    for step in program:
        expected, got = reference.run(step), candidate.run(step)
        if expected is not SKIPPED or got is not SKIPPED:
            texts.append(reference.text + ("" if expected is OK else f"  # {expected.label}"))
        if expected.label.endswith(REFUSED_BY_PYTORCH) or "please report a bug to PyTorch" in expected.message:
            return None
        if expected.label != got.label:
            if same_refusal(expected.label, got.label):
                continue
            abouts = {o.label.partition(": ")[2] for o in (expected, got)}
            if reference.has_recorded and abouts & DEPENDS_ON_FORMULA:
                return None
            return "outcome", expected, got
        if step.kind in ("unary", "binary", "number", "join", "view") and step.out in reference.tensors:
            _stop_at_other_layout(step.out, reference, candidate)
        difference = _compare_light(reference, candidate)
        if difference is None and step.kind == "look" and reference.tensors:
            difference = _compare_history(reference, candidate, reference._find(step.args[0]))
        if difference is None and reference.watching:
            difference = _compare_all(reference, candidate)
        if difference is not None:
            return difference
    return _compare_all(reference, candidate)


def _stop_at_other_layout(name: str, reference: Machine, candidate: Machine) -> None:
    """Stop where the result lies in memory in another order.

    Of operands that lie there in different orders PyTorch follows the first, NumPy none; so it is with expanded ones.
    """
    strides = {machine.facts(name)["strides"] for machine in (reference, candidate)}
    if len(strides) == 2 and not reference.tensors[name]._is_view():
        raise _NotComparableError


def _compare_light(reference: Machine, candidate: Machine) -> Any:
    if reference.tensors.keys() != candidate.tensors.keys():
        return "tensors", sorted(reference.tensors), sorted(candidate.tensors)
    if [entry[0] for entry in reference.log] != [entry[0] for entry in candidate.log]:
        return "hooks called", *([e[0] for e in m.log] for m in (reference, candidate))
    for (tag, *expected), (_, *got) in zip(reference.log, candidate.log, strict=True):
        for a, b in zip(itertools.chain(*expected), itertools.chain(*got), strict=True):
            if not same(a, b):
                return f"gradients at the hook {tag}", expected, got
    reference.log.clear()
    candidate.log.clear()
    for name in reference.tensors:
        expected = reference.facts(name)
        try:
            got = candidate.facts(name)
        except RuntimeError as error:
            return f"facts of {name}", expected, error
        difference = _first_difference(name, expected, got)
        if difference is not None:
            return difference
    return None


def _compare_all(reference: Machine, candidate: Machine) -> Any:
    differences = (_compare_history(reference, candidate, name) for name in reference.tensors)
    return next((d for d in differences if d is not None), None)


def _compare_history(reference: Machine, candidate: Machine, name: str) -> Any:
    (expected, reference_nodes), (got, candidate_nodes) = reference.history(name), candidate.history(name)
    difference = _first_difference(name, expected, got)
    if difference is not None:
        return difference
    for a, b in zip(reference_nodes, candidate_nodes, strict=True):
        # A node that leads nowhere has saved all, something or nothing.
        if reference._is_recorded(a) or not any(child for child, _ in a.next_functions):
            continue
        for attribute in saved_names(type(a), type(b)):
            x, y = reference.saved(a, attribute), candidate.saved(b, attribute)
            # A slot in which nothing was saved stays None in PyTorch when the node is released.
            freed = isinstance(x, str) and x == "none" and isinstance(y, str) and y.endswith("second time")
            if x is not None and y is not None and not (freed or same(x, y) or same_refusal(x, y)):
                return f"{b.name()}.{attribute} below {name}", x, y
    return None


@cache
def saved_names(*kinds: type) -> list[str]:
    """Return the names of saved values that node classes have in common."""
    return sorted(set.intersection(*({n for n in dir(kind) if n.startswith("_saved_")} for kind in kinds)))


def _first_difference(name: str, expected: dict[str, Any], got: dict[str, Any]) -> Any:
    for fact, value in expected.items():
        if fact not in got or not same(value, got[fact]):
            return f"{name}: {fact}", value, got.get(fact, got)
    return None


def same_refusal(expected: Any, got: Any) -> bool:
    """Whether both refuse a call with two faults: a view that went stale, found sooner by one, and something else."""
    stale = {"RuntimeError: multi-view", "RuntimeError: no_grad view"}
    if not (isinstance(expected, str) and isinstance(got, str)):
        return False
    second = {expected, got} - stale
    return len(second) == 1 and second != {expected, got} and second.pop().endswith(ALSO_FOUND)


def same(expected: Any, got: Any) -> bool:
    """Whether two facts agree; arrays up to rounding."""
    if not isinstance(expected, numpy.ndarray) or not isinstance(got, numpy.ndarray):
        return type(expected) is type(got) and expected == got
    if expected.dtype != got.dtype or expected.shape != got.shape:
        return False
    if expected.dtype.kind == "f" and not (numpy.abs(expected) < LIMIT).all():
        raise _NotComparableError
    return bool(numpy.allclose(got, expected, rtol=TOLERANCE, atol=TOLERANCE))


# --- minimising, and the long run -------------------------------------------------------------------------------------


def minimise(divergence: Divergence) -> Divergence:
    """Return a divergence in the same fact, of a program from which no step can be dropped."""
    best = divergence
    size = len(best.program) // 2
    while size:
        start, dropped = 0, False
        while start < len(best.program):
            shorter = first_divergence(best.program[:start] + best.program[start + size :])
            if shorter is not None and _about(shorter) == _about(divergence):
                best, dropped = shorter, True
            else:
                start += size
        size = size if dropped else size // 2
    return best


def _about(divergence: Divergence) -> str:
    return divergence.what.rpartition(": ")[2].partition(" below ")[0]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run many programs; print the first divergences; return 1 if there were any."""
    parser = argparse.ArgumentParser(prog="python -m tests.differential.programs", description="A long run.")
    parser.add_argument("--count", type=int, default=10_000, help="how many programs")
    parser.add_argument("--seed", type=int, default=0, help="of the first program; the next has the next")
    parser.add_argument("--length", type=int, default=25, help="steps of the longest programs")
    parser.add_argument("--show", type=int, default=5, help="how many divergences to print")
    options = parser.parse_args(arguments)
    found = 0
    for seed in range(options.seed, options.seed + options.count):
        generator = random.Random(seed)
        program = random_program(generator.choice, generator.randint(5, options.length))
        divergence = first_divergence(program)
        if divergence is None:
            continue
        found += 1
        if found <= options.show:
            print(f"--- program {seed}\n{minimise(divergence)}\n", flush=True)
    print(f"{options.count} programs, {found} divergences")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
