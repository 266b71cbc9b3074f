"""The node that failed in a backward without an observer: known by the traceback, the message and the graph.

PyTorch's engine is C++ and leaves no frame of its own. What is left: the call of the engine (its roots), the frame of
a custom Function (the node itself), the names and versions in the message, and which nodes still hold what they saved,
since the engine goes through them in a known order and each lets go when it has run.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from types import FrameType
from typing import Any, NamedTuple

import torch
from torch.autograd.function import BackwardCFunction

from ....program_files import is_library_file
from ....runtime.call_sites import CallSite
from ...records.execution_order import engine_order
from ...source.frame_variables import variables_of
from ..gradient_hooks import frame_name
from ..protocol import FailedCall
from .node_hooks import hooks_of
from .numpy_conversion import outputs_of
from .observed_backward import TorchTask
from .saved_tensors import saved_of, tell_violation, versions_in

__all__ = ["failed_call"]

_ENGINE = "_engine_run_backward"
_APPLY = BackwardCFunction.apply.__code__
_NAMED = re.compile(r"[Ff]unction '?(\w+)'? returned")
_SECOND_TIME = "Trying to backward through the graph a second time"
_NAN = "returned nan values"
_MOST_NAMED = 4
_NO_GRADIENTS = "the gradients that arrived here are not known: PyTorch has let go of them"


class _Engine(NamedTuple):
    """A call of the engine, as its frame has it."""

    outputs: Sequence[Any]
    grads: Sequence[Any]
    keep_graph: bool
    inputs: Sequence[Any]
    accumulate: bool
    inner: list[FrameType]


class _FailedNode(NamedTuple):
    """The node that failed, and the others that it may be."""

    node: Any
    others: Sequence[Any] = ()
    why: str = ""


def failed_call(error: BaseException, frames: Sequence[FrameType]) -> FailedCall | None:
    """Return the node at which a backward without an observer has failed, as far as that can be known.

    Parameters
    ----------
    frames : sequence of frame
        Those that it has left, innermost first.

    Returns
    -------
    FailedCall or None
        None if no backward of PyTorch has failed, or it failed before it began.
    """
    engine, note = _engine_in(frames), ""
    if engine is None:
        engine, note = _loss_in(error, frames)
    if engine is None:
        return None
    task = _task_of(engine)
    order = _in_order(task)
    if not order:
        return None
    node, grads = _custom(engine.inner)
    versions = versions_in(error)
    if node is not None and versions is not None:
        tell_violation(error, versions, [node])
    found = _search(error, engine, order) if node is None else _FailedNode(node)
    if found is None:
        return None
    notes = [note, _doubt(found, order)]
    if grads is None and found.node is order[0] and len(task.roots) == 1:
        grads = _given(engine)
    if grads is None:
        notes.append(_NO_GRADIENTS)
    notes += _stack_note(found.node)
    in_hook = node is None and bool(engine.inner)
    return FailedCall(task, found.node, grads, tuple(note for note in notes if note), in_hook)


# --- which backward ---


def _engine_in(frames: Sequence[FrameType]) -> _Engine | None:
    """Return the innermost call of the engine."""
    for place, frame in enumerate(frames):
        names = variables_of(frame)
        if frame.f_code.co_name == _ENGINE and "t_outputs" in names and len(names.get("args", ())) >= 4:
            grads, keep_graph, _, inputs = names["args"][:4]
            accumulate = bool(names.get("kwargs", {}).get("accumulate_grad"))
            inner = list(frames[:place])
            return _Engine(names["t_outputs"], grads, bool(keep_graph), inputs, accumulate, inner)
    return None


def _loss_in(error: BaseException, frames: Sequence[FrameType]) -> tuple[_Engine | None, str]:
    """Return the backward of the only loss in the user's frames, where another thread has passed on its error."""
    message = str(error)
    if not (versions_in(error) or _SECOND_TIME in message or _NAMED.search(message)):
        return None, ""
    for frame in frames:
        if is_library_file(frame.f_code.co_filename):
            continue
        variables = variables_of(frame)
        losses = {id(value): name for name, value in variables.items() if _is_loss(value)}
        if len(losses) == 1:
            name = next(iter(losses.values()))
            note = f"the traceback does not show the backward: `{name}` in {frame.f_code.co_name}() may be its loss"
            return _Engine((variables[name],), (None,), False, (), True, []), note
    return None, ""


def _is_loss(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.grad_fn is not None and value.numel() == 1


def _task_of(engine: _Engine) -> TorchTask:
    """Return a backward that has ended as a task whose nodes can be looked at, and that does not run."""
    task = TorchTask(
        (),
        engine.outputs,
        engine.inputs,
        keep_graph=engine.keep_graph,
        create_graph=False,
        accumulate=engine.accumulate,
        site=CallSite([]),
    )
    task.started = True
    return task


def _in_order(task: TorchTask) -> list[Any]:
    """Return the nodes that it ran, or would have run, in the engine's order."""
    nodes = [node for node in task.nodes if task.runs(node)]
    number = {node: place for place, node in enumerate(nodes)}
    targets = {
        place: [number[child] for child, _ in node.next_functions if child in number]
        for place, node in enumerate(nodes)
    }
    sequence = {place: node._sequence_nr() for place, node in enumerate(nodes)}
    roots = [number[node] for node, _ in task.roots if node in number]
    return [nodes[place] for place in engine_order(roots, sequence, targets)]


# --- which node ---


def _custom(inner: Iterable[FrameType]) -> tuple[Any, list[Any] | None]:
    """Return the node of the custom Function whose backward was running, and the gradients it was given."""
    for frame in inner:
        if frame.f_code is _APPLY:
            names = variables_of(frame)
            return names["self"], list(names["args"])
    return None, None


def _search(error: BaseException, engine: _Engine, order: list[Any]) -> _FailedNode | None:
    """Return the node that is not the last Python frame's: by the message, and by which nodes have run."""
    message, versions = str(error), versions_in(error)
    if versions is not None:
        # The engine goes in order, so the first node whose saved tensor has these versions is the one.
        node = tell_violation(error, versions, order)
        return None if node is None else _FailedNode(node)
    if _SECOND_TIME in message:
        return _spent(engine, order)
    hooks = [frame for frame in engine.inner if not is_library_file(frame.f_code.co_filename)]
    if hooks:
        return _hooked(hooks[-1], engine, order)
    reached = _reached(engine, order, ran=_NAN in message)
    named = _NAMED.search(message)
    if named is not None:
        return _named(named[1], reached, order)
    return _FailedNode(reached[-1], reached[:-1], "it is the first that still holds what it saved") if reached else None


def _spent(engine: _Engine, order: list[Any]) -> _FailedNode | None:
    """Return the node that had been freed by an earlier backward."""
    spent = []
    for node in order:
        holds = _holds(node)
        if holds:
            break
        # A custom Function would have left its frame.
        if holds is False and not isinstance(node, BackwardCFunction):
            spent.append(node)
    if not spent:
        return None
    if engine.keep_graph:
        return _FailedNode(spent[0])
    return _FailedNode(spent[0], spent[1:], "it is the first that holds nothing any more")


def _hooked(frame: FrameType, engine: _Engine, order: list[Any]) -> _FailedNode | None:
    """Return the node whose hook raised: known of leaves, and of results since somebody observes."""
    reached = _reached(engine, order, ran=False)
    name = frame_name(frame)
    known = [node for node in reached if any(hook.name == name for hook in hooks_of(node))]
    if len(known) == 1:
        return _FailedNode(known[0])
    why = f"it has the hook {name}" if known else f"the first that may have the hook {name}"
    found = known or reached
    return _FailedNode(found[0], found[1:], why) if found else None


def _named(name: str, reached: list[Any], order: list[Any]) -> _FailedNode | None:
    """Return the node that the message names, the last that can have run."""
    found = [node for node in reached if _name(node) == name] or [node for node in order if _name(node) == name]
    return _FailedNode(found[-1], found[:-1], f"the message says {name}") if found else None


def _reached(engine: _Engine, order: list[Any], *, ran: bool) -> list[Any]:
    """Return the nodes at which the engine can have been; with `ran`, the one that failed had run to its end."""
    if engine.keep_graph:
        return order
    end = next((place for place, node in enumerate(order) if _holds(node)), len(order))
    gone = [place for place, node in enumerate(order[:end]) if _holds(node) is False]
    last = gone[-1] if gone else -1
    return order[max(last, 0) : end] if ran else order[last + 1 : end + 1]


def _holds(node: Any) -> bool | None:
    """Whether a node still has what it saved; None if that was nothing."""
    if isinstance(node, BackwardCFunction):
        try:
            return bool(node._raw_saved_tensors) or None
        except RuntimeError:  # the tensor has been freed
            return False
    saved = saved_of(node)
    return None if not saved else not all(one.released for one in saved)


# --- in words ---


def _given(engine: _Engine) -> list[Any] | None:
    """Return the gradient with which the backward began."""
    root = engine.outputs[0]
    if not engine.inner and engine.grads and isinstance(root, torch.Tensor) and engine.grads[0] is not None:
        count = 1 if root.grad_fn is None else len(outputs_of(root.grad_fn))
        grads: list[Any] = [None] * max(count, root.output_nr + 1)
        grads[root.output_nr] = engine.grads[0]
        return grads
    return None


def _doubt(found: _FailedNode, order: list[Any]) -> str:
    """Say which other node it may be."""
    if not found.others:
        return ""
    place = {node: index for index, node in enumerate(order)}
    named = [f"{place[node]} {_name(node)}" for node in found.others[:_MOST_NAMED]]
    more = len(found.others) - len(named)
    rest = f" and {more} more" if more else ""
    return (
        f"PyTorch does not say which node it was: {place[found.node]} is likely ({found.why}), "
        f"it may also be {', '.join(named)}{rest}"
    )


def _stack_note(node: Any) -> list[str]:
    """Return where the node was made, if anomaly mode has noted it."""
    lines = node.metadata.get("traceback_") or ()
    return [f"anomaly mode: it was made at\n{lines[-1].rstrip()}"] if lines else []


def _name(node: Any) -> str:
    name: str = node.name()
    return name.rpartition("::")[2]
