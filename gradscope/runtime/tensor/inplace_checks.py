"""Which in-place writes are refused: of leaves, of views of leaves, of multi-output views, of overlapping memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import events, state
from ..errors import InplaceError
from ..memory.storage import overlap_error, overlaps_itself

if TYPE_CHECKING:
    from .tensor import Tensor
    from .views import ViewInfo

__all__ = ["check_inplace", "check_view", "forbidden_view", "refuse"]


def check_inplace(tensor: Tensor, recording: bool, *, expanded: bool = False, differentiable: bool = True) -> None:
    """Raise where PyTorch forbids an in-place write: leaves, views of leaves, multi-output views ...

    Elements that lie at one address may be written by operators that allow `expanded` tensors. Operators that are not
    `differentiable` (logical_not_) leave the history as it is, and may write a leaf.
    """
    if tensor._flags & state.INFERENCE and not state.local.inference:
        message = (
            "Inplace update to inference tensor outside InferenceMode is not allowed. "
            "You can make a clone to get a normal tensor before doing inplace update."
        )
        raise refuse(InplaceError(message, "inference tensor", tensor))
    view = tensor._view
    if differentiable and (recording or (state.local.grad_enabled and tensor.requires_grad)):
        if view is not None:
            check_view(tensor, view)
        if tensor.requires_grad and tensor._known_edge() is None:
            message = (
                f"a leaf Variable that requires grad is being used in an in-place operation. {_describe(tensor)}\n"
                "Write it under gradscope.no_grad(), as optimizers do, or use the out-of-place form."
            )
            raise refuse(InplaceError(message, "leaf", tensor))
    if not expanded and overlaps_itself(tensor._memory):
        raise refuse(InplaceError(str(overlap_error()), "overlap", tensor, view))
    if state.local.before_write is not None:
        state.local.before_write(tensor)
    if state.special and events.wanted(events.WriteStarted):
        events.emit(events.WriteStarted(tensor))


def check_view(tensor: Tensor, view: ViewInfo) -> None:
    """Raise where the history of a written view could not be kept: views of leaves, multi-output views ..."""
    if view.creation != "default":
        raise refuse(InplaceError(forbidden_view(view, indirect=False), view.creation, tensor, view))
    base = view.base
    if tensor.requires_grad and base._known_edge() is None:
        message = (
            "a view of a leaf Variable that requires grad is being used in an in-place operation. "
            f"{_describe(base)}\nWrite it under gradscope.no_grad(), or work on a clone()."
        )
        raise refuse(InplaceError(message, "view of leaf", base, view))


def refuse(error: InplaceError) -> InplaceError:
    """Tell the listeners of a write that is not allowed; return the error to raise."""
    if state.special and events.wanted(events.WriteRefused):
        events.emit(events.WriteRefused(error))
    return error


def _describe(tensor: Tensor) -> str:
    return f"Its shape is {list(tensor.shape)}."


_FORBIDDEN_BLOCKS = {
    "no_grad": ("with grad mode enabled", "no_grad"),
    "inference": ("in normal mode", "inference_mode"),
}
"""Of views made in a mode: how a write outside of it is described, and the name of the block."""


def forbidden_view(view: ViewInfo, *, indirect: bool) -> str:
    """Return the text of the error for a view whose history could not be kept; `indirect` if its base was written."""
    done = "its base or another view of its base has been modified inplace" if indirect else "is being modified inplace"
    if view.creation in _FORBIDDEN_BLOCKS or view.edge is None:
        mode = view.creation if view.creation in _FORBIDDEN_BLOCKS else "no_grad"
        later, block = _FORBIDDEN_BLOCKS[mode]
        start = f"A view was created in {mode} mode and {done} {later}. "
    else:
        start = f"Output {view.output_nr} of {view.operator} is a view and {done}. "
    if view.creation in _FORBIDDEN_BLOCKS:
        return (
            f"{start}Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify your code "
            f"by moving both the view and the inplace either both inside the {block} block (if you don't want the "
            "inplace to be tracked) or both outside (if you want the inplace to be tracked)."
        )
    if view.creation == "multi":
        return (
            f"{start}This view is the output of a function that returns multiple views. Such functions do not allow "
            "the output views to be modified inplace. You should replace the inplace operation by an out-of-place one."
        )
    return (
        f"{start}This view was created inside a custom Function (or because an input was returned as-is) and the "
        "autograd logic to handle view+inplace would override the custom backward associated with the custom Function, "
        "leading to incorrect gradients. This behavior is forbidden. You can fix this by cloning the output of the "
        "custom Function."
    )
