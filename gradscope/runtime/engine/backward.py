"""backward() and grad(): from what a user asks to a :class:`~.graph_task.GraphTask`, and back."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from .. import events, state
from ..dispatch import TENSOR_OPERATORS as F
from ..graph.edges import Edge, edge_to, ends_of
from ..graph.graph_node import GradientEdge, Node
from ..kernels.broadcasting import expandable
from ..kernels.casts import cast
from ..memory import device
from ..memory.dtype import BY_NUMPY
from ..tensor import overrides, tangents
from ..tensor.views import edge_of
from ..user_warnings import warn
from . import graph_task
from .gradient_validation import validate_array, validate_tensor, wrap
from .graph_task import GraphTask

__all__ = ["backward", "backward_scalar", "grad", "queue_callback"]

# Nested backwards beyond this depth continue on a fresh thread, which has a fresh stack.
MAX_DEPTH = 40

OTHER_NAMES: dict[str, str] = {}
"""Other names by which :func:`backward` takes `tensors` and `retain_graph`; :mod:`gradscope` enters them."""


def backward(
    tensors: Any = None,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Any = None,
    **others: Any,
) -> None:
    """Compute the gradients of `tensors` with respect to the leaves, and add them to the leaves' ``grad``.

    Parameters
    ----------
    grad_tensors : Tensor or sequence of Tensor or None, optional
        The gradients of `tensors`; None stands for 1 where a tensor has one element.
    retain_graph : bool, optional
        Keep what nodes saved; `create_graph` unless given.
    create_graph : bool
        Record the backward pass.
    inputs : Tensor, GradientEdge or sequence, optional
        Accumulate only into these (a non-leaf retains its gradient from now on); an empty sequence is an error.
    grad_variables
        Another name of `grad_tensors`.
    **others
        Other names of `tensors` and `retain_graph`: see :data:`OTHER_NAMES`.

    Raises
    ------
    RuntimeError
        When a tensor does not require grad, has several elements and no gradient, or the graph was freed.
    SavedTensorModifiedError
        When a saved tensor has been written in place.

    See Also
    --------
    grad, Tensor.backward

    Examples
    --------
    >>> import gradscope as gs
    >>> x = gs.ones(2, requires_grad=True)
    >>> gs.autograd.backward((x * 3).sum())
    >>> x.grad
    tensor([3., 3.])
    """
    if others:
        tensors, retain_graph = _by_other_names(others, tensors=tensors, retain_graph=retain_graph)
    if create_graph:
        warn(
            "Using backward() with create_graph=True will create a reference cycle between the parameter and its "
            "gradient which can cause a memory leak. We recommend using autograd.grad when creating the graph to avoid "
            "this. If you have to use this function, make sure to reset the .grad fields of your parameters to None "
            "after use to break the cycle and avoid the leak.",
        )
    if (
        grad_tensors is None
        and grad_variables is None
        and inputs is None
        and hasattr(tensors, "_array")
        and tensors._array.size == 1
    ):
        return backward_scalar(tensors, retain_graph, create_graph)
    tensors = as_sequence(tensors)
    grad_tensors = grad_variables if grad_tensors is None and grad_variables is not None else grad_tensors
    carried = create_graph or (state.special and tangents.active())
    roots, grads = root_edges(tensors, grad_tensors, carried)
    keep = create_graph if retain_graph is None else bool(retain_graph)
    if inputs is None:
        run_task(_task(roots, grads, keep, carried, create_graph))
        return
    targets = as_sequence(inputs)
    if not targets:
        raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    for target in targets:
        if hasattr(target, "_array"):
            edge_of(target)  # this makes the edge of a stale view anew, so that retain_grad() sees that it is no leaf
            target.retain_grad()
    only = {ends_of(target_edge(target, index))[0] for index, target in enumerate(targets)}
    run_task(_task(roots, grads, keep, carried, create_graph, only=only))


def _by_other_names(others: dict[str, Any], **given: Any) -> Iterable[Any]:
    """Return the arguments `given`, with what the call names otherwise in the place of None."""
    for name, value in others.items():
        own = OTHER_NAMES.get(name)
        if own is None:
            raise TypeError(f"backward() got an unexpected keyword argument '{name}'")
        if given[own] is None:
            given[own] = value
    return given.values()


def backward_scalar(tensor: Any, retain_graph: bool | None, create_graph: bool) -> None:
    """backward() of one loss, the common call."""
    carried = create_graph or (state.special and tangents.active())
    keep = create_graph if retain_graph is None else bool(retain_graph)
    root, one = _loss_entry(tensor, carried)
    if root is None:
        task = _task(*root_edges((tensor,), None, carried), keep, carried, create_graph)
    else:
        task = GraphTask.of_loss(root, one, keep, carried, create_graph)
    if graph_task.entered:
        run_task(task)
    else:
        task.run()


def _loss_entry(tensor: Any, carried: bool) -> tuple[Node | None, Any]:
    """Return the node of one loss and a 1 that fits there; None where :func:`root_edges` is to be asked."""
    edge: Any = tensor._edge or edge_of(tensor)
    one = _ONE.get(tensor._dtype.char)  # a dtype's own hash takes longer than the copy
    if edge is None or one is None or tensor._shape or type(tensor._array) is not device.ndarray:
        return None, None
    if type(edge) is tuple or edge.shape:  # all nodes that need no seed are of the first kind
        return None, None
    return edge, wrap(one.copy()) if carried else one.copy()


def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Any, ...]:
    """Return the gradients of `outputs` with respect to `inputs`, without touching any ``grad``.

    Parameters
    ----------
    retain_graph, create_graph : bool
        As for :func:`backward`.
    allow_unused : bool, optional
        Return None for an input the outputs do not depend on; an error otherwise.
    is_grads_batched : bool
        The first dimension of each of `grad_outputs` is a batch; so is that of the results.
    materialize_grads : bool
        Return zeros instead of None.

    See Also
    --------
    backward, autograd.functional.jacobian, func.grad

    Examples
    --------
    >>> import gradscope as gs
    >>> x = gs.tensor(3.0, requires_grad=True)
    >>> gs.autograd.grad(x * x, x)
    (tensor(6.),)
    """
    if state.overriding and (found := _overridden_grad(locals())) is not overrides.NONE:
        return found
    if materialize_grads and allow_unused is False:
        raise ValueError("Expected allow_unused to be True or not passed when materialize_grads=True, but got: False.")
    allow_unused = materialize_grads if allow_unused is None else allow_unused
    outputs, targets = as_sequence(outputs), as_sequence(inputs)
    if not targets:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    if is_grads_batched:
        gradients = _batched_grad(outputs, targets, grad_outputs, retain_graph, create_graph, allow_unused)
        if not materialize_grads:
            return gradients
        # As in PyTorch, such a zero has no dimension of the batch.
        return tuple(_zeros_of(t, create_graph) if g is None else g for g, t in zip(gradients, targets, strict=True))
    carried = create_graph or (state.special and tangents.active())
    keep = create_graph if retain_graph is None else bool(retain_graph)
    alone = grad_outputs is None and len(outputs) == 1 and hasattr(outputs[0], "_array")
    root, one = _loss_entry(outputs[0], carried) if alone else (None, None)
    roots, grads = root_edges(outputs, grad_outputs, carried) if root is None else ((root,), (one,))
    captures = [target_edge(t, i) for i, t in enumerate(targets)]
    if root is None:
        task = _task(roots, grads, keep, carried, create_graph, captures)
    else:
        task = GraphTask.of_loss(root, one, keep, carried, create_graph, captures)
    run_task(task)
    results = tuple(
        _zeros_of(t, create_graph) if g is None and materialize_grads else _result(g, i, allow_unused)
        for i, (g, t) in enumerate(zip(task.captured, targets, strict=True))
    )
    if not create_graph and events.wanted(events.OperatorRecorded):
        _tell_of_constants((*outputs, *targets), results)
    return results


def _tell_of_constants(operands: Sequence[Any], results: Sequence[Any]) -> None:
    """Emit what tells a listener that follows values where those of `results` are from, which have no node."""
    given = tuple(t for t in operands if not isinstance(t, GradientEdge))
    made = tuple(t for t in results if t is not None)
    events.emit(events.OperatorRecorded(None, "grad", given, made, events.call_site_if_wanted(3)))


def _result(grad: Any, index: int, allow_unused: bool) -> Any:
    if grad is None and not allow_unused:
        raise RuntimeError(
            f"The differentiated Tensor at index {index} appears to not have been used in the graph. Set "
            "allow_unused=True if this is the desired behavior."
        )
    return grad


def _zeros_of(target: Any, requires_grad: bool) -> Any:
    """Return a zero gradient of a tensor or gradient edge, on its device, laid out as a tensor is.

    Where a graph is created it is a leaf.
    """
    if not isinstance(target, GradientEdge):
        return F.zeros_like(target, requires_grad=requires_grad)
    shape, kind = edge_spec(target)
    place = target.node._input_metadata[target.output_nr].device
    return wrap(device.to_device(device.numpy.zeros(shape, dtype=kind), place)).requires_grad_(requires_grad)


def _batched_grad(
    outputs: Any, targets: Any, grad_outputs: Any, retain_graph: Any, create_graph: bool, allow_unused: bool
) -> tuple[Any, ...]:
    batches = as_sequence(grad_outputs)
    size = batches[0].shape[0]
    if not size:
        raise IndexError(
            f"is_grads_batched=True, but grad_outputs, of shape {list(batches[0].shape)}, is a batch of no gradients\n"
            "Its first dimension is the batch."
        )
    rows = []
    for i in range(size):
        keep = retain_graph or create_graph or i + 1 < size
        seeds = [b[i] for b in batches]
        rows.append(grad(outputs, targets, seeds, keep, create_graph, allow_unused=allow_unused))
    columns = zip(*rows, strict=True)
    return tuple(None if c[0] is None else F.stack(list(c)) for c in columns)


def run_task(task: GraphTask) -> None:
    """Run a task here, or on a fresh thread when backwards are nested so deep that the stack could end."""
    outer = state.local.current_task
    if outer is None or outer.depth % MAX_DEPTH != MAX_DEPTH - 1:
        task.run()
        return
    modes, where = vars_of_modes(), device.current()
    failures: list[BaseException] = []

    def continue_elsewhere() -> None:
        for name, value in modes.items():
            setattr(state.local, name, value)
        try:
            with where:
                task.run()
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=continue_elsewhere, name="gradscope nested backward")
    thread.start()
    thread.join()
    if failures:
        raise failures[0]


def vars_of_modes() -> dict[str, Any]:
    """Return this thread's modes, to be taken over by another thread."""
    hooks = ("saved_hooks", "saved_hooks_disabled")
    names = ("grad_enabled", "inference", "forward_grad", "in_tangent", *hooks, "current_node", "current_task")
    return {name: getattr(state.local, name) for name in names}


def as_sequence(value: Any) -> tuple[Any, ...]:
    """Return a tensor or edge as a tuple of one."""
    if hasattr(value, "_array") or isinstance(value, GradientEdge):
        return (value,)
    return tuple(value)


def root_edges(tensors: Sequence[Any], grads: Any, create_graph: bool) -> tuple[list[Edge], list[Any]]:
    """Return the edges that gradients enter by, and those gradients."""
    given = as_sequence(grads) if grads is not None else (None,) * len(tensors)
    if len(given) != len(tensors):
        raise RuntimeError(
            f"Mismatch in number of tensors and gradients: got {len(tensors)} tensors and {len(given)} gradients"
        )
    roots, seeds = [], []
    for index, (tensor, grad) in enumerate(zip(tensors, given, strict=True)):
        if not hasattr(tensor, "_array") and not isinstance(tensor, GradientEdge):
            raise TypeError(
                f"all outputs have to be Tensors or GradientEdges, but number {index} is {type(tensor).__name__}\n"
                "backward() starts from tensors that the graph has computed."
            )
        edge = edge_to(*tensor) if isinstance(tensor, GradientEdge) else edge_of(tensor)
        if edge is None:
            if tensor._flags & state.INERT:
                raise RuntimeError(tensor._refused_backward)
            if grad is not None or tensor.requires_grad:
                _seed(tensor, grad, index, create_graph)  # PyTorch looks at the gradients first
            raise RuntimeError(
                f"element {index} of tensors does not require grad and does not have a grad_fn\n"
                f"It has shape {list(tensor.shape)}: it was computed under no_grad, from tensors that do not require "
                "grad, or was detached (detach(), item(), numpy(), argmax())."
            )
        roots.append(edge)
        if grad is None and ends_of(edge)[0].seedless:
            grad = wrap(device.array_module(tensor._array).zeros(*edge_spec(tensor)))
        seed = _seed(tensor, grad, index, create_graph)
        seeds.append(seed if create_graph else seed._array)
    return roots, seeds


def _task(
    roots: Sequence[Edge],
    seeds: Sequence[Any],
    keep: bool,
    carried: bool = False,
    create_graph: bool = False,
    captures: Sequence[Edge] | None = None,
    only: set[Node] | None = None,
) -> GraphTask:
    """Return the task of gradients that enter by `roots`, once they are known to fit there."""
    fitting = [_as_made(seed, root, i, carried) for i, (root, seed) in enumerate(zip(roots, seeds, strict=True))]
    return GraphTask(roots, fitting, keep, carried, create_graph, captures, only)


def _as_made(seed: Any, edge: Edge, index: int, carried: bool) -> Any:
    """Return a gradient with the shape and dtype of what the node has made, which may have been given others since."""
    node, nr = ends_of(edge)
    shape, kind = node.output_specs()[nr]
    if not expandable(shape, seed.shape):
        raise RuntimeError(
            f"invalid gradient at index {index} - got {list(seed.shape)} but expected shape compatible with "
            f"{list(shape)}\n{node.name()} made a tensor of that shape; it was given another since, under no_grad or "
            "by setting .data."
        )
    return (validate_tensor if carried else validate_array)(node, index, seed, shape, kind)


def _overridden_grad(given: dict[str, Any]) -> Any:
    """Return what overrides a call of :func:`grad` with these arguments."""
    relevant = (*as_sequence(given["outputs"]), *as_sequence(given["inputs"]))
    return overrides.dispatch(grad, tuple(given.values()), {}, relevant)


def _seed(tensor: Any, grad: Any, index: int, create_graph: bool) -> Any:
    shape, kind = edge_spec(tensor)
    if grad is None:
        if (isinstance(tensor, GradientEdge) and shape != ()) or tensor_size(shape) != 1:
            raise RuntimeError(
                f"grad can be implicitly created only for scalar outputs\nOutput {index} has shape {list(shape)}: "
                "reduce it (.sum(), .mean()), or pass its gradient."
            )
        if kind.kind == "c":
            raise RuntimeError(f"grad can be implicitly created only for real scalar outputs but got {BY_NUMPY[kind]}")
        return wrap(_ones(getattr(tensor, "_array", None), shape, kind))
    if not hasattr(grad, "_array"):
        raise TypeError(f"gradients can be either Tensors or None, but got {type(grad).__name__}")
    if grad._array.shape != shape:
        raise RuntimeError(
            f"Mismatch in shape: grad_output[{index}] has a shape of {list(grad.shape)} and output[{index}] has a "
            f"shape of {list(shape)}."
        )
    if (grad._dtype.kind == "c") != (kind.kind == "c"):
        raise RuntimeError(
            f"For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in dtype: "
            f"grad_output[{index}] has a dtype of {grad.dtype} and output[{index}] has a dtype of {BY_NUMPY[kind]}."
        )
    if grad._dtype != kind:
        return grad.to(BY_NUMPY[kind]) if create_graph else wrap(cast(grad._array, kind))
    return grad


def tensor_size(shape: tuple[int, ...]) -> int:
    """Return the number of elements of a shape."""
    size = 1
    for length in shape:
        size *= length
    return size


# One 1 of each dtype that there has been, copied for each backward.
_ONE: dict[str, Any] = {}


def _ones(like: Any, shape: tuple[int, ...], kind: Any) -> Any:
    """Return ones where the array `like` is; on the CPU without one."""
    if type(like) is not device.ndarray and like is not None:
        return device.array_module(like).ones(shape, dtype=kind)
    if kind.kind != "c":
        _ONE[kind.char] = device.numpy.ones((), kind)
    return device.numpy.ones(shape, kind)


def edge_spec(target: Any) -> tuple[tuple[int, ...], Any]:
    """Return shape and NumPy dtype of a tensor or gradient edge."""
    if isinstance(target, GradientEdge):
        return target.node.output_specs()[target.output_nr]
    return target._array.shape, target._dtype


def target_edge(target: Any, index: int) -> Edge:
    """Return the edge of a tensor or gradient edge that gradients are wanted for."""
    if isinstance(target, GradientEdge):
        return edge_to(*target)
    if not hasattr(target, "_array"):
        raise RuntimeError(
            f"all inputs have to be Tensors or GradientEdges, but got {type(target).__name__}\nIt is number {index}."
        )
    if not target.requires_grad:
        raise RuntimeError(
            "One of the differentiated Tensors does not require grad\n"
            f"It is number {index}, of shape {list(target.shape)}: call requires_grad_() on it before the forward pass."
        )
    # A view made under no_grad requires grad, but no graph leads to it.
    return edge_of(target) or Node()


def queue_callback(callback: Callable[[], None]) -> None:
    """Call `callback` at the end of the backward that runs on this thread.

    Raises
    ------
    RuntimeError
        Outside a backward.

    See Also
    --------
    autograd.graph.register_multi_grad_hook

    Examples
    --------
    >>> import gradscope as gs
    >>> x = gs.ones(2, requires_grad=True)
    >>> _ = x.register_hook(lambda grad: gs.autograd.queue_callback(lambda: print("done", x.grad)))
    >>> x.sum().backward()
    done tensor([1., 1.])
    """
    task = state.local.current_task
    if task is None:
        raise RuntimeError("Final callbacks can only be installed during backward pass.")
    task.callbacks = [*task.callbacks, callback]
