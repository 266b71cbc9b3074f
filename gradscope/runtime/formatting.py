"""How a tensor prints: PyTorch's form, by NumPy's array printer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy

from . import device, dtype

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
    _Options.precision = _Options.precision if precision is None else precision
    _Options.threshold = _Options.threshold if threshold is None else threshold
    _Options.edgeitems = _Options.edgeitems if edgeitems is None else edgeitems
    _Options.linewidth = _Options.linewidth if linewidth is None else linewidth
    _Options.sci_mode = sci_mode


def _formatter(array: numpy.ndarray) -> Any:
    """Return PyTorch's format for the floats of `array`: one width and one notation for all of them."""
    finite = numpy.abs(array[numpy.isfinite(array)]).astype(numpy.float64)
    nonzero = finite[finite > 0]
    integral = bool((finite == numpy.floor(finite)).all())
    scientific = _Options.sci_mode
    if scientific is None:
        scientific = bool(nonzero.size) and bool(
            nonzero.max() / nonzero.min() > 1000.0 or nonzero.max() > 1.0e8 or nonzero.min() < 1.0e-4
        )
        if integral:
            scientific = bool(nonzero.size) and bool(nonzero.max() > 1.0e8 or nonzero.max() / nonzero.min() > 1000.0)
    digits = _Options.precision

    def show(value: Any) -> str:
        if not numpy.isfinite(value):
            return str(float(value))
        if scientific:
            return f"{value:.{digits}e}"
        return f"{value:.0f}." if integral else f"{value:.{digits}f}"

    width = max((len(show(v)) for v in array.reshape(-1)[:2000]), default=0)
    return lambda value: show(value).rjust(width)


def _body(array: numpy.ndarray, indent: int) -> str:
    formatter = {}
    if array.dtype.kind == "f" and array.size:
        shown = array if array.size <= _Options.threshold else _corners(array)
        formatter = {"float_kind": _formatter(shown)}
    text = numpy.array2string(
        array,
        separator=", ",
        prefix=" " * indent,
        max_line_width=_Options.linewidth,
        threshold=_Options.threshold,
        edgeitems=_Options.edgeitems,
        formatter=formatter or None,  # type: ignore[arg-type]
        precision=_Options.precision,
    )
    return text


def _corners(array: numpy.ndarray) -> numpy.ndarray:
    edge = _Options.edgeitems
    for axis, size in enumerate(array.shape):
        if size > 2 * edge:
            index = numpy.r_[0:edge, size - edge : size]
            array = array.take(index, axis=axis)
    return array


def tensor_repr(tensor: Tensor) -> str:
    """Return what ``repr(tensor)`` says."""
    prefix = f"{type(tensor).__name__.lower() if type(tensor).__name__ == 'Tensor' else type(tensor).__name__}("
    label = "Parameter containing:\n" if type(tensor).__name__ == "Parameter" else ""
    prefix = "tensor(" if type(tensor).__name__ in ("Tensor", "Parameter") else prefix
    array = device.to_host(tensor._array)
    suffixes = []
    if array.size == 0:
        body = "[]"
        if tensor._array.ndim != 1:
            suffixes.append(f"size={tuple(tensor._array.shape)}")
    else:
        body = _body(array, len(prefix))
    if tensor.device.type != "cpu":
        suffixes.insert(0, f"device='{tensor.device}'")
    implied = (dtype.get_default_dtype(), dtype.int64, dtype.bool_)
    if tensor.dtype not in implied or array.size == 0 and tensor.dtype is not dtype.get_default_dtype():
        suffixes.append(f"dtype={tensor.dtype!r}")
    node = _safe_grad_fn(tensor)
    if node is not None:
        suffixes.append(f"grad_fn=<{node}>")
    elif tensor.requires_grad:
        suffixes.append("requires_grad=True")
    return label + prefix + ", ".join([body, *suffixes]) + ")"


def _safe_grad_fn(tensor: Tensor) -> str | None:
    try:
        node = tensor.grad_fn
    except RuntimeError:
        return "Invalid"
    return None if node is None else node.name()
