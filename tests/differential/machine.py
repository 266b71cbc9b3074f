"""One machine of the differential fuzzer: runs the steps of a program on ``torch`` or on ``gradscope``.

See :mod:`tests.differential.programs`, which writes programs and compares two machines.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import numpy

__all__ = ["OK", "SKIPPED", "Machine", "Outcome", "Program", "Ref", "Step"]


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

# What an error is about, by a piece of PyTorch's message. The first that fits counts.
FRAGMENTS = (
    ("INTERNAL ASSERT FAILED", "assertion"),
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
    ("some elements of the input tensor and the written-to tensor refer", "overlap"),
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
    ("same dtype", "dtype"),
    ("expected scalar type", "dtype"),
    ("source and destination dtypes match", "dtype"),
)


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
            folded = ranks in ((3, 1), (3, 2)) and tensor.is_contiguous()
            if not (batches or folded or ranks in ((1, 1), (2, 1), (2, 2))):
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
        if is_expanded(tensor._base):
            return SKIPPED
        self._call(method, tensor)
        return None

    def _do_write_number(self, out: str, method: str, tensor: Any, number: float) -> Any:
        if is_expanded(tensor._base):
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
        """Take what is made inside for part of a backward; the edges of stale views, no part of it, are made before."""
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
