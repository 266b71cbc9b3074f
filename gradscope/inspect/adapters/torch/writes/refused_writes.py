"""Writes in place that PyTorch refuses: which rule it was, known by the words of its error."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import torch

from ..numpy_conversion import shape_of
from ..operator_calls import grad_fn_of

__all__ = ["explain_refusal"]

# PyTorch's messages, and the reasons as gradscope's own InplaceError gives them; the first that fits counts.
_REASONS = (
    ("a view of a leaf Variable that requires grad is being used in an in-place operation", "view of leaf"),
    ("a leaf Variable that requires grad is being used in an in-place operation", "leaf"),
    ("Inplace update to inference tensor outside InferenceMode is not allowed", "inference tensor"),
    ("A view was created in no_grad mode and ", "no_grad"),
    ("A view was created in inference mode and ", "inference"),
    ("This view was created inside a custom Function", "custom"),
    ("more than one element of the written-to tensor refers to a single memory location", "overlap"),
    ("This view is the output of a function that returns multiple views", "multi"),
)
_STALE = "its base or another view of its base has been modified inplace"
_PRODUCER = re.compile(r"Output \d+ of (\w+?)(?:Backward\d*)? is a view")


def explain_refusal(error: RuntimeError, tensors: Sequence[torch.Tensor], site_of: Callable[[Any], Any]) -> bool:
    """Put on an error what gradscope's own InplaceError carries; return whether it is such a refusal.

    Parameters
    ----------
    tensors : sequence of Tensor
        The arguments of the call that raised it.
    site_of : callable
        Returns where a node was made, a CallSite or None.
    """
    text = str(error)
    reason = next((reason for words, reason in _REASONS if words in text), None)
    if reason is None or not tensors:
        return False
    stale = _STALE in text
    tensor = next(filter(_is_stale, tensors), tensors[0]) if stale else tensors[0]
    node = grad_fn_of(tensor)
    producer = _PRODUCER.search(text)
    facts = {
        "reason": reason,
        "shape": shape_of(tensor),
        "dtype": tensor.dtype,
        "view_operator": producer[1] if producer is not None else "",
        "view_site": site_of(node) if node is not None and tensor._is_view() else None,
        "stale_memory": tensor.untyped_storage()._cdata if stale else None,
    }
    error.__dict__.update(facts)
    return True


def _is_stale(tensor: torch.Tensor) -> bool:
    """Whether PyTorch refuses to tell the history of a view."""
    try:
        with torch._C.DisableTorchFunction():
            _ = tensor.grad_fn
    except RuntimeError:
        return True
    return False
