"""A tensor in a notebook: its elements, and those of its gradient, as heat maps drawn by treescope."""

from __future__ import annotations

import warnings
from typing import Any

import numpy
import treescope

from ..inspect.adapters import adapter_for
from ..inspect.output.markup import Markup
from ..inspect.output.notebook_html import note, page
from ..inspect.output.number_format import format_shape
from ..inspect.records.records import dtype_name
from ..runtime.names import Tensor

__all__ = ["hide_tensors", "show_tensors", "tensor_html"]

_FEW = 10
"""Elements of a vector that are better read than looked at."""


def show_tensors(formatter: Any) -> None:
    """Let a notebook show tensors of gradscope and of PyTorch as heat maps.

    Parameters
    ----------
    formatter : IPython.core.formatters.DisplayFormatter
        The shell's.
    """
    html = formatter.formatters["text/html"]
    html.for_type(Tensor, tensor_html)
    html.for_type_by_name("torch", "Tensor", tensor_html)


def hide_tensors(formatter: Any) -> None:
    """Undo :func:`show_tensors`.

    Parameters
    ----------
    formatter : IPython.core.formatters.DisplayFormatter
        The shell's.
    """
    html = formatter.formatters["text/html"]
    for kind in (Tensor, "torch.Tensor"):
        html.pop(kind, None)


def tensor_html(tensor: Any) -> str | None:
    """Return a tensor as a heat map, and its gradient below it.

    Parameters
    ----------
    tensor : Tensor
        Of gradscope or PyTorch, on any device.

    Returns
    -------
    str or None
        None where its text tells more: for a number, a short vector, and what has no elements that could be shown.
    """
    picture = _picture(tensor)
    if picture is None:
        return None
    grad = tensor.grad if tensor.is_leaf else None  # of others PyTorch warns
    below = _picture(grad) if grad is not None else None
    parts = [note("its gradient"), below] if below is not None else []
    return page(note(_facts(tensor)), picture, *parts)


def _facts(tensor: Any) -> str:
    facts = [f"{dtype_name(tensor.dtype)} {format_shape(tuple(tensor.shape))}"]
    if str(tensor.device) != "cpu":
        facts.append(str(tensor.device))
    if tensor.grad_fn is not None:
        facts.append(f"grad_fn={tensor.grad_fn.name()}")
    elif tensor.requires_grad:
        facts.append("requires_grad")
    return ", ".join(facts)


def _picture(tensor: Any) -> Markup | None:
    if (tensor.dim() < 2 and tensor.numel() <= _FEW) or not tensor.numel():
        return None
    try:
        array = adapter_for(tensor).to_host(tensor.detach())
    except (RuntimeError, TypeError, NotImplementedError):  # it has no elements: on "meta", sparse
        return None
    if array.size != tensor.numel():
        return None
    if array.dtype.kind not in "biufc":  # bfloat16 and others that NumPy itself does not know
        array = array.astype(numpy.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # treescope takes the mean of what may be NaN
        drawn = treescope.render_array(numpy.abs(array) if array.dtype.kind == "c" else array)
        return Markup(drawn._repr_html_())
