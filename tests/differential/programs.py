"""Random programs, run on PyTorch and on gradscope in lockstep.

A program is a tuple of :class:`Step`: make a leaf, call an operator, take a view, write in place, detach, enter no_grad,
register a hook, run a backward ... A :class:`Machine` runs them on one module (``torch`` or ``gradscope``: the names are
the same); :func:`first_divergence` runs two machines side by side and compares, after every step, whether it raised and
what, and of every living tensor the values, the version, the flags, the base and the gradient; for the tensors a program
looks at, also the backward graph below them: names, edges, order, and every saved tensor.

Steps name their operands; for one that does not exist (its maker raised, or was dropped) the newest tensor stands in. So
any subset of a program is a program, and a diverging one is minimised by dropping steps.

A long run, which prints the first divergences, minimised, and exits with status 1 if there are any::

    python -m tests.differential.programs --count 10000 --seed 0

Not compared, because the two differ by design: programs whose numbers leave the range in which rounding stays small; the
inner structure of what ``create_graph`` records (both write the same derivatives, in other operators); hooks on
AccumulateGrad nodes (a leaf of gradscope keeps its node, PyTorch's may be made anew); tensors that were saved and then
cut off by ``detach_()`` (gradscope goes on with their values, PyTorch refuses); writes to expanded tensors that PyTorch
only deprecates. Where PyTorch 2.13 itself fails (a crash, an internal assertion), the machine steps around it.
"""

from __future__ import annotations

import argparse
import itertools
import random
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy

__all__ = ["Divergence", "Machine", "Ref", "Step", "first_divergence", "minimise", "random_program"]


class Ref(str):
    """The name of a tensor of the program."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f'Ref("{self}")'


@dataclass(frozen=True, slots=True)
class Step:
    """One instruction: what to do, with what, and the name of the result."""

    kind: str
    out: str
    args: tuple[Any, ...] = ()


Program = tuple[Step, ...]

# --- what programs are made of ----------------------------------------------------------------------------------------

SHAPES = ((2, 3), (2, 3), (3,), (2, 1), (1, 3), (), (4,), (2, 2, 2))
UNARY = ("exp", "sin", "cos", "tanh", "sigmoid", "relu", "neg", "square", "abs", "clone", "contiguous", "zeros_like")
BINARY = ("add", "sub", "mul", "mul", "div", "maximum")
WITH_NUMBER = ("add", "mul", "sub", "div", "pow", "__rsub__", "__rtruediv__")
VIEWS = (
    "narrow", "select", "transpose", "permute", "view", "reshape", "expand", "unsqueeze", "squeeze", "flatten", "unbind",
    "split", "chunk", "getitem", "getitem",
)  # fmt: skip
WRITES = ("exp_", "sin_", "tanh_", "sigmoid_", "relu_", "neg_", "zero_", "abs_")
NUMBER_WRITES = ("add_", "mul_", "sub_", "fill_", "div_", "pow_", "masked_fill_")
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
    *("make",) * 2, *("unary",) * 8, *("binary",) * 8, *("number",) * 4, *("reduce",) * 3, *("join",) * 2, *("view",) * 14,
    *("write",) * 6, *("write_number",) * 5, *("write_tensor",) * 8, *("method",) * 4, "requires_grad_", *("data",) * 2,
    *("grad_of",) * 2, "set_grad", "set_data", *("drop",) * 2, *("look",) * 4, *("hook",) * 5, "post_hook",
    *("node_hook",) * 3, "unhook", *("enter",) * 3, "watch", *("backward",) * 10, *("grad",) * 6,
)  # fmt: skip
MAKE_TENSORS = {
    "make", "unary", "binary", "number", "reduce", "join", "view", "method", "data", "grad_of", "grad",
}  # fmt: skip

# --- one machine ------------------------------------------------------------------------------------------------------

# What an error is about, by a piece of PyTorch's message. The first that fits counts.
FRAGMENTS = (
    ("a view of a leaf Variable that requires grad is being used", "view of leaf"),
    ("a leaf Variable that requires grad is being used", "leaf"),
    ("returns multiple views", "multi-view"),
    ("created in no_grad mode", "no_grad view"),
    ("modified by an inplace operation", "modified by inplace"),
    ("through the graph a second time", "second time"),
    ("does not require grad", "does not require grad"),
    ("doesn't require gradient", "hook without grad"),
    ("can't retain_grad", "retain_grad without grad"),
    ("appears to not have been used in the graph", "unused"),
    ("more than one element of the written-to tensor", "expanded memory"),
    ("implicitly created only for", "implicit gradient"),
    ("only change requires_grad flags of leaf", "requires_grad of non-leaf"),
    ("Can't detach views in-place", "detach_ of view"),
    ("post accumulate grad hooks cannot", "post hook of non-leaf"),
    ("has been detached in-place", "saved and detached in place"),
    ("moved into the graph interior", "leaf moved inside"),
    ("has changed the", "hook result"),
    ("view size is not compatible", "strides"),
    ("as its own grad", "own grad"),
    ("attempting to assign a gradient", "assigned grad"),
    ("assigned grad has", "assigned grad"),
    ("must match the size", "shape"),
    ("must match the existing size", "shape"),
    ("doesn't match the broadcast shape", "shape"),
    ("shape mismatch", "shape"),
    ("is invalid for input of size", "shape"),
    ("Mismatch in shape", "shape"),
    ("output with shape", "shape"),
    ("The expanded size of the tensor", "shape"),
    ("shapes cannot be multiplied", "shape"),
    ("size mismatch", "shape"),
    ("Expected size for first two dimensions of batch2", "shape"),
    ("can't be cast to the desired output type", "cast"),
)

# Which of these a backward raises depends, for what create_graph recorded, on how the derivative is written.
DEPENDS_ON_FORMULA = {"modified by inplace", "second time"}

# What may be found before, or after, that a view went stale, where both are the case.
ALSO_FOUND = ("modified by inplace", "shape", "strides", "implicit gradient", "expanded memory", "other")

# What only PyTorch refuses: the program ends there.
REFUSED_BY_PYTORCH = ("saved and detached in place", "leaf moved inside")

# Wide enough for float32 after many steps: a wrong derivative is wrong by more.
TOLERANCE = 1e-3
LIMIT = 1e3
MULTIPLE = ("unbind", "split", "chunk")


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a step ended."""

    label: str
    message: str = ""


OK, SKIPPED = Outcome("ok"), Outcome("skipped")


def error_outcome(error: Exception) -> Outcome:
    """Return the built-in class of an error and what it is about."""
    builtin = next(c for c in type(error).__mro__ if c.__module__ == "builtins")
    message = str(error)
    about = next((label for fragment, label in FRAGMENTS if fragment in message), "other")
    return Outcome(f"{builtin.__name__}: {about}", message)


class Machine:
    """Runs steps on one module."""

    def __init__(self, module: Any) -> None:
        self.module = module
        self.tensors: dict[str, Any] = {}
        self.handles: dict[str, Any] = {}
        self.log: list[tuple[Any, ...]] = []
        self.text = ""
        self.watching = False
        self._modes: list[Any] = []
        self._probe = module.ones(1, requires_grad=True)
        self._recorded: list[tuple[int, int]] = []
        self._gradients: set[str] = set()

    # --- running ---

    def run(self, step: Step) -> Outcome:
        """Run one step."""
        self.text = f"{step.kind}{step.args}"
        try:
            args = [self._resolve(a) for a in step.args]
            operands = [self._find(name) for name in references(step.args)]
        except KeyError:
            return SKIPPED
        try:
            result = getattr(self, "_do_" + step.kind)(step.out, *args)
        except Exception as error:
            for operand in args:
                self._renew(operand)  # PyTorch did so before it found the fault, or not
            return error_outcome(error)
        if result is SKIPPED:
            return SKIPPED
        several = isinstance(result, tuple)
        made = {f"{step.out}.{i}" if several else step.out: t for i, t in enumerate(result if several else [result])}
        self.tensors.update({name: tensor for name, tensor in made.items() if tensor is not None})
        if step.kind == "grad_of" or not self._gradients.isdisjoint(operands):
            self._gradients.update(made)
        if result is not None:
            self.text = f"{', '.join(made)} = {self.text}".replace(".", "_", len(made) * several)
        return OK

    def close(self) -> None:
        """Leave the blocks that are still open."""
        while self._modes:
            self._modes.pop().__exit__(None, None, None)

    def _resolve(self, argument: Any) -> Any:
        if isinstance(argument, Ref):
            return self.tensors[self._find(argument)]
        return tuple(map(self._resolve, argument)) if isinstance(argument, tuple) else argument

    def _find(self, name: Ref) -> str:
        """Return `name`, or that of the newest tensor if there is none of that name."""
        return name if name in self.tensors else next(reversed(self.tensors), "")

    def name(self, value: Any) -> str:
        """Return the program's name of a tensor, or the repr of something else."""
        if isinstance(value, (tuple, list)):
            return f"[{', '.join(map(self.name, value))}]"
        if not hasattr(value, "requires_grad"):
            return repr(value)
        return next((n.replace(".", "_") for n, t in self.tensors.items() if t is value), "?")

    def _call(self, method: str, tensor: Any, *args: Any, **options: Any) -> Any:
        shown = [*map(self.name, args), *(f"{k}={self.name(v)}" for k, v in options.items())]
        self.text = f"{self.name(tensor)}.{method}({', '.join(shown)})"
        return getattr(tensor, method)(*args, **options)

    # --- values and operators ---

    def _do_make(self, out: str, shape: tuple[int, ...], dtype: str, requires_grad: bool, seed: int) -> Any:
        values = numpy.round(0.3 + numpy.cos(numpy.arange(int(numpy.prod(shape))) * (seed + 1)), 2).reshape(shape)
        self.text = f"torch.tensor({values.tolist()}, dtype=torch.{dtype}, requires_grad={requires_grad})"
        kind = getattr(self.module, dtype)
        return self.module.tensor(values.tolist(), dtype=kind, requires_grad=requires_grad)

    def _do_unary(self, out: str, method: str, tensor: Any) -> Any:
        if method == "zeros_like":
            self.text = f"torch.zeros_like({self.name(tensor)})"
            return self.module.zeros_like(tensor)
        return self._call(method, tensor)

    def _do_binary(self, out: str, method: str, tensor: Any, other: Any, fit: bool) -> Any:
        if method == "maximum":
            other = other.to(tensor.dtype)  # where rounding to float32 makes a tie, the gradient may go either way
        return self._call(method, tensor, self._fitted(other, tensor.shape, fit))

    def _do_number(self, out: str, method: str, tensor: Any, number: float) -> Any:
        return self._call(method, tensor, number)

    def _do_reduce(self, out: str, method: str, tensor: Any, dim: int | None, keepdim: bool) -> Any:
        return self._call(method, tensor) if dim is None else self._call(method, tensor, dim, keepdim=keepdim)

    def _do_join(self, out: str, function: str, tensor: Any, other: Any) -> Any:
        self.text = f"torch.{function}({self.name(tensor)}, {self.name(other)})"
        if function == "where":
            return self.module.where(tensor.detach() > 0.5, tensor, self._fitted(other, tensor.shape, True))
        if function == "matmul":
            # Others are put together from more than one product, not always as in PyTorch.
            ranks = (len(tensor.shape), len(other.shape))
            batches = ranks == (3, 3) and tensor.shape[0] == other.shape[0]
            if not batches and ranks not in ((1, 1), (2, 1), (3, 1), (2, 2), (3, 2)):
                return SKIPPED
            return self.module.matmul(tensor, other)
        return getattr(self.module, function)([tensor, other])

    def _do_view(self, out: str, method: str, tensor: Any, i: int, j: int) -> Any:
        shape = tuple(tensor.shape)
        if method == "getitem":
            index = index_of(shape, i, j)
            self.text = f"{self.name(tensor)}[{index}]"
            return tensor[index]
        return self._call(method, tensor, *view_arguments(method, shape, i, j))

    # --- writes ---

    def _do_write(self, out: str, method: str, tensor: Any) -> Any:
        if is_expanded(tensor._base) or (method == "zero_" and is_expanded(tensor)):
            return SKIPPED
        self._call(method, tensor)
        return None

    def _do_write_number(self, out: str, method: str, tensor: Any, number: float) -> Any:
        if is_expanded(tensor._base) or (method in ("masked_fill_", "fill_") and is_expanded(tensor)):
            return SKIPPED
        if method == "masked_fill_":
            self._call(method, tensor, tensor.detach() > 0.5, number)
        else:
            self._call(method, tensor, number)
        return None

    def _do_write_tensor(self, out: str, method: str, tensor: Any, other: Any, fit: bool, i: int) -> Any:
        if is_expanded(tensor._base):
            return SKIPPED
        if not fit:
            other = other.to(tensor.dtype)  # one thing wrong at a time
        if method == "setitem":
            index = index_of(tuple(tensor.shape), i, i)
            part = numpy.empty(tuple(tensor.shape))[index].shape
            if is_expanded(tensor):
                return SKIPPED
            value = self._fitted(other, part, fit, target=tensor)
            self.text = f"{self.name(tensor)}[{index}] = {self.name(value)}"
            tensor[index] = value
        else:
            self._call(method, tensor, self._fitted(other, tensor.shape, fit, target=tensor))
        return None

    def _fitted(self, other: Any, shape: Any, fit: bool, target: Any = None) -> Any:
        """Return `other`, or its mean where its shape does not broadcast with `shape`."""
        if target is not None and target.untyped_storage().data_ptr() == other.untyped_storage().data_ptr():
            # PyTorch notices that it reads what it writes only if neither has gaps; else the result is arbitrary.
            dense = target.is_contiguous() and other.is_contiguous()
            if not dense or 1 in target.shape or tuple(other.shape) != tuple(shape):
                other = other.clone()
        if not fit:
            return other
        try:
            together = numpy.broadcast_shapes(tuple(other.shape), tuple(shape))
        except ValueError:
            return other.mean()
        return other.mean() if target is not None and together != tuple(shape) else other

    # --- history ---

    def _do_method(self, out: str, method: str, tensor: Any) -> Any:
        if method == "detach_" and tensor.retains_grad:
            return SKIPPED  # the next write to it fails an assertion inside PyTorch 2.13
        result = self._call(method, tensor)
        return None if method.endswith("_") else result

    def _do_requires_grad_(self, out: str, tensor: Any, value: bool) -> Any:
        if any(other._base is tensor for other in self.tensors.values()):
            return SKIPPED  # what was a view of it before requires grad then, but leads nowhere
        self._call("requires_grad_", tensor, value)
        return None

    def _do_data(self, out: str, tensor: Any) -> Any:
        self.text = f"{self.name(tensor)}.data"
        return tensor.data

    def _do_set_data(self, out: str, tensor: Any, other: Any) -> Any:
        if tensor.shape != other.shape or tensor.dtype != other.dtype:
            return SKIPPED  # what its AccumulateGrad expects stays as it was in PyTorch
        if tensor._is_view() or any(t._base is tensor for t in self.tensors.values()):
            return SKIPPED  # whose views go on with the old memory and the new history
        self.text = f"{self.name(tensor)}.data = {self.name(other)}.data"
        tensor.data = other.data
        return None

    def _do_grad_of(self, out: str, tensor: Any) -> Any:
        self.text = f"{self.name(tensor)}.grad"
        grad = tensor.grad
        with self._recording(True):
            # Of a non-leaf it may be anything that was on its way through the graph.
            return SKIPPED if grad is None else grad if tensor.is_leaf else grad.contiguous().clone()

    def _do_set_grad(self, out: str, tensor: Any, value: Any) -> None:
        self.text = f"{self.name(tensor)}.grad = {self.name(value)}"
        tensor.grad = value

    def _do_drop(self, out: str, tensor: Any) -> None:
        name = next(n for n, t in self.tensors.items() if t is tensor)
        self.text = f"del {name}"
        del self.tensors[name]

    def _do_enter(self, out: str, mode: str) -> None:
        self.text = f"{mode}().__enter__()"
        self._modes.append(getattr(self.module, mode)())
        self._modes[-1].__enter__()

    def _do_leave(self, out: str) -> Any:
        if not self._modes:
            return SKIPPED
        self.text = "__exit__()"
        self._modes.pop().__exit__(None, None, None)
        return None

    def _do_watch(self, out: str) -> None:
        self.watching = True

    def _do_look(self, out: str, tensor: Any) -> None:
        self.text = f"{self.name(tensor)}.grad_fn"

    # --- hooks ---

    def _do_hook(self, out: str, tensor: Any, factor: float | None) -> None:
        self.text = f"{self.name(tensor)}.register_hook(lambda grad: grad and {factor})"
        tensor.grad_fn  # PyTorch 2.13 crashes on a first hook of a view whose edge is stale; this makes it anew
        self.handles[out] = tensor.register_hook(self._tensor_hook(out, factor))

    def _tensor_hook(self, tag: str, factor: float | None) -> Callable[[Any], Any]:
        def hook(grad: Any) -> Any:
            self.log.append((tag, self._copies([grad])))
            return None if factor is None or grad is None else grad * factor

        return hook

    def _do_post_hook(self, out: str, tensor: Any) -> None:
        def hook(leaf: Any) -> None:
            self.log.append((out, self._copies([leaf.grad])))

        self.text = f"{self.name(tensor)}.register_post_accumulate_grad_hook(...)"
        self.handles[out] = tensor.register_post_accumulate_grad_hook(hook)

    def _do_node_hook(self, out: str, tensor: Any, when: str, factor: float | None) -> Any:
        node = tensor.grad_fn
        if node is None or self._is_recorded(node):
            return SKIPPED

        def scaled(grads: tuple[Any, ...]) -> tuple[Any, ...] | None:
            return None if factor is None else tuple(None if g is None else g * factor for g in grads)

        def pre(grads: tuple[Any, ...]) -> Any:
            self.log.append((out, self._copies(grads)))
            return scaled(grads)

        def post(results: tuple[Any, ...], grads: tuple[Any, ...]) -> Any:
            self.log.append((out, self._copies(results), self._copies(grads)))
            return scaled(results)

        method = "register_prehook" if when == "pre" else "register_hook"
        self.text = f"{self.name(tensor)}.grad_fn.{method}({factor})"
        self.handles[out] = getattr(node, method)(pre if when == "pre" else post)
        return None

    def _do_unhook(self, out: str, name: str) -> Any:
        if not self.handles:
            return SKIPPED
        name = name if name in self.handles else next(reversed(self.handles))
        self.text = f"handle_of_{name}.remove()"
        self.handles.pop(name).remove()
        return None

    @staticmethod
    def _copies(grads: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(None if g is None else g.numpy(force=True).copy() for g in grads)

    # --- backward ---

    def _root(self, tensor: Any, how: str) -> tuple[Any, Any]:
        """Return what to start from, and its gradient."""
        if how == "sum":
            return tensor.sum(), None
        return tensor, self.module.ones_like(tensor.detach()) * 1.5 if how == "gradient" else None

    def _do_backward(self, out: str, tensor: Any, how: str, retain: bool | None, create: bool, inputs: Any) -> None:
        root, gradient = self._root(tensor, how)
        options = {} if inputs is None else {"inputs": list(inputs)}
        start = "" if how == "plain" else ".sum()" if how == "sum" else " with gradient=1.5"
        self.text = (
            f"{self.name(tensor)}{start}.backward(retain_graph={retain}, create_graph={create}, "
            f"inputs={self.name(inputs)})"
        )
        with self._recording(create):
            root.backward(gradient, retain_graph=retain, create_graph=create, **options)

    def _do_grad(
        self, out: str, tensor: Any, how: str, inputs: Any, retain: bool | None, create: bool, unused: bool
    ) -> Any:
        root, gradient = self._root(tensor, how)
        start = "" if how == "plain" else ".sum()" if how == "sum" else " with gradient=1.5"
        self.text = (
            f"grad({self.name(tensor)}{start}, {self.name(inputs)}, retain_graph={retain}, create_graph={create}, "
            f"allow_unused={unused})"
        )
        with self._recording(create):
            grads = self.module.autograd.grad(
                root, list(inputs), gradient, retain_graph=retain, create_graph=create, allow_unused=unused
            )
            # What else the result shares its memory with, and how it lies in it, is up to the derivatives.
            return tuple(None if grad is None else grad.contiguous().clone() for grad in grads)

    @staticmethod
    def _renew(tensor: Any) -> None:
        """Have the edge of a stale view made anew."""
        with suppress(RuntimeError, AttributeError):
            tensor.grad_fn

    @contextmanager
    def _recording(self, create: bool) -> Iterator[None]:
        """Take what is made inside for part of a backward, but not the edges of stale views: they are made anew before."""
        for tensor in self.tensors.values() if create else ():
            self._renew(tensor)
        start = self._sequence() if create else 0
        try:
            yield
        finally:
            if create:
                self._recorded.append((start, self._sequence()))

    def _sequence(self) -> int:
        with self.module.enable_grad():
            return self._probe.neg().grad_fn._sequence_nr()

    def _is_recorded(self, node: Any) -> bool:
        """Whether a backward with create_graph made the node."""
        number = node._sequence_nr()
        return any(start < number < end for start, end in self._recorded)

    @property
    def has_recorded(self) -> bool:
        """Whether any backward ran with create_graph."""
        return bool(self._recorded)

    # --- what is compared ---

    def facts(self, name: str) -> dict[str, Any]:
        """Return what can be read off a tensor without touching its history."""
        tensor = self.tensors[name]
        facts = {
            "dtype": str(tensor.dtype).rpartition(".")[2],
            "shape": tuple(tensor.shape),
            "strides": tuple(step for step, size in zip(tensor.stride(), tensor.shape, strict=True) if size != 1),
            "requires_grad": tensor.requires_grad,
            # Whether a gradient was handed over or copied (one write) is up to the engine.
            "_version": None if name in self._gradients else tensor._version,
            "_is_view()": tensor._is_view(),
            "_base": None if tensor._base is None else self.name(tensor._base),
            "retains_grad": tensor.retains_grad,
            "values": tensor.numpy(force=True),
        }
        grad = tensor.grad
        facts["grad"] = grad is not None
        if grad is not None:
            facts["grad.dtype"] = str(grad.dtype).rpartition(".")[2]
            facts["grad.requires_grad"] = grad.requires_grad
            facts["grad values"] = grad.numpy(force=True)
        return facts

    def history(self, name: str) -> tuple[dict[str, Any], list[Any]]:
        """Return what the backward graph of a tensor looks like, and its nodes, breadth first."""
        tensor = self.tensors[name]
        try:
            facts = {"is_leaf": tensor.is_leaf, "output_nr": tensor.output_nr}
            root = tensor.grad_fn
        except RuntimeError as error:
            return {"grad_fn": error_outcome(error).label}, []
        nodes = [] if root is None else [root]
        position = {node: i for i, node in enumerate(nodes)}
        shown = []
        for node in nodes:
            edges = []
            for child, number in () if self._is_recorded(node) else node.next_functions:
                if child is not None and child not in position:
                    position[child] = len(nodes)
                    nodes.append(child)
                edges.append((None if child is None else position[child], number))
            shown.append((self._node_name(node), tuple(edges)))
        # The edge of a stale view is made anew while its receiver is made: before or after, it never runs first.
        aside = ("AccumulateGrad", "AsStridedBackward0")
        own = [n for n in nodes if not n.name().endswith(aside) and not self._is_recorded(n)]
        facts["graph"] = tuple(shown)
        facts["order"] = tuple(position[n] for n in sorted(own, key=lambda n: n._sequence_nr()))
        return facts, nodes

    def _node_name(self, node: Any) -> str:
        if self._is_recorded(node):
            return "recorded in backward"
        name = node.name().rpartition("::")[2]
        return f"{name} of {self.name(node.variable)}" if name == "AccumulateGrad" else name

    def saved(self, node: Any, attribute: str) -> Any:
        """Return the saved tensor `attribute`, "none", how unpacking it fails, or None when it is something else."""
        try:
            value = getattr(node, attribute)
        except RuntimeError as error:
            return error_outcome(error).label
        if value is None:
            return "none"
        return value.numpy(force=True) if hasattr(value, "requires_grad") else None


def references(args: tuple[Any, ...]) -> Iterator[str]:
    """Yield the names of the tensors among the arguments of a step."""
    for argument in args:
        if isinstance(argument, Ref):
            yield argument
        elif isinstance(argument, tuple):
            yield from references(argument)


def view_arguments(method: str, shape: tuple[int, ...], i: int, j: int) -> tuple[Any, ...]:
    """Return arguments of a view operator that fit `shape`; `i` and `j` choose among them."""
    ndim = len(shape)
    dim = i % ndim if ndim else 0
    size = shape[dim] if ndim else 1
    count = int(numpy.prod(shape))
    if method == "narrow":
        start = j % max(size, 1)
        return dim, start, 1 + (i + j) % max(size - start, 1)
    if method == "select":
        return dim, j % max(size, 1) - (size if i > 3 else 0)
    if method == "transpose":
        return dim, j % max(ndim, 1)
    if method == "permute":
        orders = list(itertools.permutations(range(ndim)))
        return (orders[j % len(orders)],)
    if method in ("view", "reshape"):
        shapes = [(-1,), (1, -1), (count, 1), shape[::-1], (2, -1), (3, -1)]
        return (shapes[i],)
    if method == "expand":
        return ([(2, *shape), tuple(2 if s == 1 else s for s in shape), (-1,) * ndim][j % 3],)
    if method == "unsqueeze":
        return (i % (ndim + 1),)
    if method == "squeeze":
        return () if j % 2 else (dim,)
    if method == "flatten":
        return ()
    if method == "unbind":
        return (dim,)
    return (1 + j % 2, dim)


def is_expanded(tensor: Any) -> bool:
    """Whether elements share memory.

    Some writes to such a tensor PyTorch takes (or deprecates); gradscope takes none. What a write to a part of it does
    to the gradients of the rest is not defined.
    """
    return tensor is not None and any(
        step == 0 and size > 1 for step, size in zip(tensor.stride(), tensor.shape, strict=True)
    )


def index_of(shape: tuple[int, ...], i: int, j: int) -> Any:
    """Return an index that fits `shape`."""
    if not shape:
        return (..., None, ())[i % 3]
    last = shape[0] - 1
    return (min(j, last), slice(min(j, last), None), (..., 0), None, slice(None), [last, 0])[i]


# --- two machines -----------------------------------------------------------------------------------------------------


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


class _Stop(Exception):
    """The numbers have left the range that can be compared."""


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
    except _Stop:
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
        if expected.label.endswith(REFUSED_BY_PYTORCH):
            return None
        if expected.label != got.label:
            if same_refusal(expected.label, got.label):
                continue
            abouts = {o.label.partition(": ")[2] for o in (expected, got)}
            if reference.has_recorded and abouts & DEPENDS_ON_FORMULA:
                return None
            return "outcome", expected, got
        if step.kind in ("unary", "binary", "number", "join") and expected is OK:
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

    Of operands that lie there in different orders PyTorch follows the first, NumPy none; and so it is with expanded ones.
    """
    if len({reference.facts(name)["strides"], candidate.facts(name)["strides"]}) == 2:
        raise _Stop


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
        raise _Stop
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
