"""Prints tensors in PyTorch's form."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy

from ..memory import device, dtype
from ..memory.bfloat16 import widened
from .tangents import tangent_of

if TYPE_CHECKING:
    from .tensor import Tensor

__all__ = ["set_printoptions", "tensor_repr"]


class _Options:
    precision = 4
    threshold = 1000
    edgeitems = 3
    linewidth = 80
    sci_mode: bool | None = None


def set_printoptions(
    precision: int | None = None,
    threshold: int | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Set how tensors print; the arguments are PyTorch's.

    Raises
    ------
    ValueError
        If `profile` is not ``"default"``, ``"short"`` or ``"full"``.

    See Also
    --------
    Tensor

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.set_printoptions(precision=2)
    >>> gs.tensor([1.23456])
    tensor([1.23])
    >>> gs.set_printoptions(profile="default")
    """
    profiles: dict[str, tuple[int, float, int]] = {
        "default": (4, 1000, 3),
        "short": (2, 1000, 2),
        "full": (4, numpy.inf, 3),
    }
    if profile is not None:
        if profile not in profiles:
            raise ValueError(f"unknown profile {profile!r}\nUse one of: {', '.join(profiles)}.")
        _Options.precision, _Options.threshold, _Options.edgeitems = profiles[profile]  # type: ignore[assignment]
        _Options.linewidth = 80
    _Options.precision = _Options.precision if precision is None else precision
    _Options.threshold = _Options.threshold if threshold is None else threshold
    _Options.edgeitems = _Options.edgeitems if edgeitems is None else edgeitems
    _Options.linewidth = _Options.linewidth if linewidth is None else linewidth
    _Options.sci_mode = sci_mode


class _Numbers:
    """How the elements of an array print: PyTorch's choice of one notation and one width for all of them."""

    def __init__(self, array: numpy.ndarray) -> None:
        self.floating = array.dtype.kind == "f"
        self.integral, self.scientific, self.width = True, False, 1
        values = array.reshape(-1)
        if self.floating:
            values = values[numpy.isfinite(values) & (values != 0)].astype(numpy.float64)
            if values.size == 0:
                return
            sizes = numpy.abs(values)
            low, high = sizes.min(), sizes.max()
            self.integral = bool((values == numpy.ceil(values)).all())
            wide = high / low > 1000.0 or high > 1.0e8 or low < 1.0e-4
            self.scientific = bool(wide) if _Options.sci_mode is None else _Options.sci_mode
        self.width = max((len(self._text(v)) for v in values.tolist()), default=1)

    def _text(self, value: Any) -> str:
        if not self.floating:
            return str(value)
        if self.scientific:
            return f"{value:.{_Options.precision}e}"
        if not self.integral:
            return f"{value:.{_Options.precision}f}"
        return f"{value:.0f}." if math.isfinite(value) else f"{value:.0f}"

    def format(self, value: Any) -> str:
        """Return one element, right-justified."""
        return self._text(value).rjust(self.width)


class _Elements:
    """The elements of an array as text: real numbers, or pairs of them."""

    def __init__(self, array: numpy.ndarray, summarize: bool) -> None:
        shown = _corners(array) if summarize else array
        self.summarize = summarize
        self.parts = (_Numbers(shown.real), _Numbers(shown.imag)) if array.dtype.kind == "c" else (_Numbers(shown),)
        # Each element is followed by a comma and a space, an imaginary part by its j.
        self.width = self.parts[0].width + 2 + (self.parts[1].width + 1 if len(self.parts) == 2 else 0)

    def one(self, value: Any) -> str:
        """Return one element."""
        if len(self.parts) == 1:
            return self.parts[0].format(value)
        real, imaginary = self.parts[0].format(value.real), self.parts[1].format(value.imag).lstrip() + "j"
        return real + imaginary if imaginary[0] in "+-" else f"{real}+{imaginary}"

    def text(self, array: numpy.ndarray, indent: int) -> str:
        """Return all elements in brackets, continued lines indented."""
        if array.ndim == 0:
            return self.one(array.item())
        edge = _Options.edgeitems
        split = self.summarize and len(array) > 2 * edge
        chosen = [*array[:edge], *array[len(array) - edge :]] if split else list(array)
        if array.ndim == 1:
            items = [self.one(v.item()) for v in chosen]
            if split:
                items.insert(edge, " ...")
            per_line = max(1, (_Options.linewidth - indent) // self.width)
            lines = [", ".join(items[i : i + per_line]) for i in range(0, len(items), per_line)]
            return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"
        blocks = [self.text(numpy.asarray(part), indent + 1) for part in chosen]
        if split:
            blocks.insert(edge, "...")
        return "[" + ("," + "\n" * (array.ndim - 1) + " " * (indent + 1)).join(blocks) + "]"


def _corners(array: numpy.ndarray) -> numpy.ndarray:
    edge = _Options.edgeitems
    for axis, size in enumerate(array.shape):
        if size > 2 * edge:
            index = numpy.r_[0:edge, size - edge : size]
            array = array.take(index, axis=axis)
    return array


def tensor_repr(tensor: Tensor) -> str:
    """Return what ``repr(tensor)`` says."""
    name = type(tensor).__name__
    label = "Parameter containing:\n" if name == "Parameter" else ""
    prefix = "tensor(" if name in ("Tensor", "Parameter") else f"{name}("
    array = widened(device.to_host(tensor._array))
    suffixes = []
    if tensor.device.type != "cpu":
        suffixes.append(f"device='{tensor.device}'")
    implied: tuple[Any, ...] = (dtype.get_default_dtype(),)
    if array.size == 0:
        body = "[]"
        if array.ndim != 1:
            suffixes.append(f"size={tuple(array.shape)}")
    else:
        body = _Elements(array, array.size > _Options.threshold).text(array, len(prefix))
        implied += (dtype.int64, dtype.bool_, dtype.BY_NUMPY[dtype.default_dtype.numpy_complex])
    if tensor.dtype not in implied:
        suffixes.append(f"dtype={tensor.dtype!r}")
    node = _safe_grad_fn(tensor)
    if node is not None:
        suffixes.append(f"grad_fn=<{node}>")
    elif tensor.requires_grad:
        suffixes.append("requires_grad=True")
    tangent = tangent_of(tensor)
    if tangent is not None:
        suffixes.append(f"tangent={tensor_repr(tangent)}")
    return label + prefix + _with_suffixes(body, suffixes, len(prefix)) + ")"


def _with_suffixes(body: str, suffixes: list[str], indent: int) -> str:
    """Append the suffixes, each on a line of its own where the line would grow too long."""
    column = len(body) - body.rfind("\n") + 1
    for suffix in suffixes:
        if column + len(suffix) + 2 > _Options.linewidth:
            body += ",\n" + " " * indent + suffix
            column = indent + len(suffix)
        else:
            body += ", " + suffix
            column += len(suffix) + 2
    return body


def _safe_grad_fn(tensor: Tensor) -> str | None:
    try:
        node = tensor.grad_fn
    except RuntimeError:
        return "Invalid"
    return None if node is None else node.name()
