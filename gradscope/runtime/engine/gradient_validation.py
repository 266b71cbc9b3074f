"""The engine's checks of the gradients that nodes and hooks produce, and their error messages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .. import dispatch, events, state
from ..dispatch import TENSOR_OPERATORS as F
from ..graph.edges import ends_of
from ..graph.graph_node import Node
from ..graph.hooks import hook_name
from ..kernels.broadcasting import expandable, sum_to
from ..kernels.casts import cast
from ..memory import device
from ..memory.dtype import BY_NUMPY
from ..modes import report_anomaly

__all__ = [
    "announce_unpacked",
    "check_anomaly",
    "check_count",
    "check_hook_result",
    "name_node",
    "refuse_reshaped",
    "release_announced",
    "replaced",
    "retain",
    "validate_array",
    "validate_tensor",
    "wrap",
]


def wrap(array: Any) -> Any:
    """Return a bare gradient as a tensor, in inference mode as one that was made there."""
    if type(array) is not device.ndarray and not device.is_array(array):
        array = device.numpy.asarray(array)
    tensor = dispatch.tensor_type._wrap(array)
    if state.modes_on and state.local.inference:
        tensor._mark_inference()
    return tensor


def name_node(error: BaseException, node: Node) -> None:
    """Note on an exception which node it left, once."""
    if getattr(error, "_gradscope_noted", False):
        return
    site = node.call_site
    frame = site.user_frame() if site is not None else None
    where = f", recorded at {frame.filename}:{frame.lineno}" if frame else ""
    error.add_note(f"while running {node.name()} in backward{where}")
    try:
        error._gradscope_noted = True  # type: ignore[attr-defined]
    except AttributeError:
        pass


def refuse_reshaped(error: Exception, node: Node) -> None:
    """Raise RuntimeError where a derivative failed because an operand that it saved has another shape since.

    ``.data =`` and ``set_()`` give it one, and no version counts them. What a hook of the node raises is left alone.
    """
    op: Any = getattr(node, "op", None)
    if op is None or node.extra is not None or not isinstance(error, (IndexError, TypeError, ValueError)):
        return
    for parameter, edge in zip(op.edged, node.edges, strict=False):  # a list of tensors has an edge for each
        shape = getattr(getattr(node, "s_" + parameter.name, None), "_shape", None)
        if edge is None or shape is None:
            continue
        child, nr = ends_of(edge)
        before = child.output_specs()[nr][0]
        if shape != before:
            raise RuntimeError(
                f"Function {node.name()} cannot compute a gradient: '{parameter.name}' of shape {list(before)}, which "
                f"it saved, has got shape {list(shape)} since\n"
                "Give a tensor other data after backward(), or save a clone() of it."
            ) from error


def check_count(node: Node, results: Any) -> Any:
    """Return `results` cut to the number of edges; only extra Nones may be cut."""
    expected = len(node.edges)
    if len(results) > expected and all(r is None for r in results[expected:]):
        return results[:expected]
    raise RuntimeError(
        f"function {node.name()} returned an incorrect number of gradients (expected {expected}, got {len(results)})\n"
        "backward() must return one gradient (or None) per argument of forward()."
    )


def _invalid(node: Node, index: int, got: tuple[int, ...], shape: tuple[int, ...]) -> RuntimeError:
    way_out = "transpose it" if got[::-1] == shape else "sum over the dimensions that forward() has broadcast"
    return RuntimeError(
        f"Function {node.name()} returned an invalid gradient at index {index} - got {list(got)} but expected shape "
        f"compatible with {list(shape)}\nA gradient has the shape of its input: {way_out}."
    )


def validate_array(node: Node, index: int, grad: Any, shape: tuple[int, ...], kind: Any) -> Any:
    """Return a gradient with the shape and dtype its receiver expects; raise if it cannot have them."""
    if grad.shape != shape:
        if not expandable(shape, grad.shape):
            raise _invalid(node, index, grad.shape, shape)
        grad = sum_to(grad, shape)
    if grad.dtype != kind:
        if grad.dtype.kind == "c" and kind.kind != "c":
            grad = grad.real
        grad = cast(grad, kind)
    return grad


def validate_tensor(node: Node, index: int, grad: Any, shape: tuple[int, ...], kind: Any) -> Any:
    """The same for tensors, recorded."""
    array = grad._array
    if array.shape != shape:
        if not expandable(shape, array.shape):
            raise _invalid(node, index, array.shape, shape)
        grad = F.sum_to_size(grad, shape)
    if array.dtype != kind:
        if array.dtype.kind == "c" and kind.kind != "c":
            grad = F.real(grad)
        grad = grad.to(BY_NUMPY[kind])
    return grad


def check_hook_result(hook: Callable[..., Any], result: Any, grad: Any) -> None:
    """Raise when a hook returned something that cannot stand for the gradient it was given."""
    name = hook_name(hook)
    if not hasattr(result, "_array"):
        raise TypeError(
            f"expected Variable, but hook returned '{type(result).__name__}'\n"
            f"It is hook '{name}': return a tensor, or None to leave the gradient as it is."
        )
    if grad is None:
        return
    if result._array.shape != grad._array.shape:
        raise RuntimeError(
            f"hook '{name}' has changed the size of value (was {list(grad.shape)} got {list(result.shape)})"
        )
    if result._dtype != grad._dtype:
        raise RuntimeError(f"hook '{name}' has changed the type of value (was {grad.dtype} got {result.dtype})")
    if result.device != grad.device:
        raise RuntimeError(f"hook '{name}' has changed the device of value (was {grad.device} got {result.device})")


def replaced(hook: Callable[..., Any], result: Any, old: Sequence[Any]) -> list[Any]:
    """Return the gradients a node hook put in place of `old`, checked."""
    if not isinstance(result, tuple):
        raise TypeError(
            f"expected tuple, but hook returned '{type(result).__name__}'\n"
            f"It is hook '{hook_name(hook)}' of a node: return a tuple of {len(old)}, or None to leave the gradients "
            "as they are."
        )
    new = list(result)
    if len(new) != len(old):
        raise RuntimeError(
            f"hook '{hook_name(hook)}' has returned an incorrect number of values (got {len(new)}, but expected "
            f"{len(old)})"
        )
    for after, before in zip(new, old, strict=True):
        if after is not None and after is not before:
            check_hook_result(hook, after, before)
    return new


def retain(tensor: Any, grad: Any) -> None:
    """Add `grad` into the ``grad`` of a non-leaf that retains it."""
    if tensor is None or grad is None:
        return
    meta = tensor._extras()
    if meta.grad is None:
        meta.grad = grad.clone()
    else:
        meta.grad = meta.grad + grad


def check_anomaly(node: Node, results: Sequence[Any]) -> None:
    """In anomaly mode, raise when a node produced NaN (or, by option, Inf)."""
    for index, result in enumerate(results):
        if result is None:
            continue
        array = getattr(result, "_array", result)
        xp = device.array_module(array)
        found = None
        if state.anomaly_check_nan and device.to_host(xp.isnan(array).any()):
            found = "nan"
        elif state.anomaly_check_inf and device.to_host(xp.isinf(array).any()):
            found = "inf"
        if found is not None:
            report_anomaly(node, index, found)


def announce_unpacked(node: Node) -> None:
    """Emit a TensorUnpacked for everything the node is about to unpack."""
    for saved in node.saved_tensors_info():
        if not saved.released:
            events.emit(events.TensorUnpacked(node, saved.name, saved.saved_version))


def release_announced(node: Node) -> None:
    """Release what a node saved, telling listeners."""
    if state.special and events.wanted(events.TensorReleased):
        for saved in node.saved_tensors_info():
            if not saved.released:
                events.emit(events.TensorReleased(node, saved.name))
    node.release()
