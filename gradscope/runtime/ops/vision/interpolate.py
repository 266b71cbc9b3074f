"""Interpolation of signals, images and volumes to another size, one dimension after the other.

Every mode is a linear map along each dimension (:mod:`separable_resampling`), so an operator and its adjoint are
each other's derivatives, to any order.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy

from ..declaration.annotations import Argument, Array, Cases, Gradient, Ints, Make, Namespace
from ..declaration.references import adjoint, resampled, resampling_matrix
from ..declaration.registry import operator
from ..declaration.samples import Samples
from ..execution.array_errors import refuse_kinds
from .separable_resampling import Taps, cubic_weights, lanczos, linear_parts, resample, resample_bytes, windows

# --- where each output reads ------------------------------------------------------------------------------------------


def _scale(size: int, out: int, scale: float | None) -> float:
    """Return how far apart, in the input, two neighbouring outputs are."""
    return 1.0 / scale if scale is not None and scale > 0 else size / out


def _nearest(size: int, out: int, scale: float | None, *, exact: bool) -> Taps:
    # In single precision whatever the tensor's is, as PyTorch does: which neighbour is the nearest depends on it.
    step = numpy.float32(_scale(size, out, scale))
    at = numpy.arange(out, dtype=numpy.float32) + numpy.float32(0.5 if exact else 0)
    places = numpy.minimum(numpy.floor(at * step).astype(numpy.int64), size - 1)
    return Taps(places[None], numpy.ones((1, out)), size)


def _positions(size: int, out: int, align_corners: bool, scale: float | None) -> numpy.ndarray:
    """Return the fractional place of each output in the input."""
    at = numpy.arange(out)
    if align_corners:
        return at * ((size - 1) / (out - 1) if out > 1 else 0.0)
    return (at + 0.5) * _scale(size, out, scale) - 0.5


def _linear(size: int, out: int, align_corners: bool, scale: float | None) -> Taps:
    if size == out:
        return Taps(numpy.arange(size)[None], numpy.ones((1, size)), size)
    return linear_parts(numpy.maximum(_positions(size, out, align_corners, scale), 0), size)


def _cubic(size: int, out: int, align_corners: bool, scale: float | None) -> Taps:
    at = _positions(size, out, align_corners, scale)
    first = numpy.floor(at)
    places = numpy.clip(first.astype(numpy.int64) + numpy.arange(-1, 3)[:, None], 0, size - 1)
    return Taps(places, numpy.stack(cubic_weights(numpy.clip(at - first, 0, 1), -0.75)), size)


def _triangle(x: float) -> float:
    return max(1.0 - abs(x), 0.0)


def _keys(x: float) -> float:
    x = abs(x)
    if x >= 2:
        return 0.0
    return float(cubic_weights(x, -0.5)[1]) if x < 1 else float(cubic_weights(x - 1, -0.5)[0])


# Kernel and half its width.
_FILTERS: dict[str, tuple[Callable[[float], float], float]] = {
    "linear": (_triangle, 1.0),
    "cubic": (_keys, 2.0),
    "lanczos": (lanczos, 3.0),
}


def _antialiased(size: int, out: int, align_corners: bool, scale: float | None, kind: str) -> Taps:
    """Return weighted means over all that an output covers: the kernel is widened where the image shrinks."""
    kernel, reach = _FILTERS[kind]
    if align_corners:
        step = (size - 1) / (out - 1) if out > 1 else 0.0
    else:
        step = _scale(size, out, scale)
    width = max(step, 1.0)
    starts, ends, weights = [], [], []
    for i in range(out):
        centre = step * (i + 0.5)
        start = max(int(centre - reach * width + 0.5), 0)
        end = min(int(centre + reach * width + 0.5), size)
        row = [kernel((j - centre + 0.5) / width) for j in range(start, end)]
        total = sum(row)
        starts.append(start)
        ends.append(end)
        weights.append([w / total for w in row] if total else row)
    return windows(starts, ends, size, weights)


@lru_cache(maxsize=256)
def _taps(mode: str, size: int, out: int, align_corners: bool, scale: float | None) -> Taps:
    if mode.startswith("nearest"):
        return _nearest(size, out, scale, exact=mode == "nearest_exact")
    if mode.endswith("_aa"):
        return _antialiased(size, out, align_corners, scale, mode.removesuffix("_aa"))
    return (_linear if mode == "linear" else _cubic)(size, out, align_corners, scale)


# --- the operators ----------------------------------------------------------------------------------------------------


def _shown(sizes: Ints) -> str:
    return "(" + ", ".join(f"{n}: {s}" for n, s in zip("DHW"[-len(sizes) :], sizes, strict=True)) + ")"


def _check(name: str, x: Array, out: Ints) -> None:
    spatial = len(out)
    shape = tuple(x.shape)
    if len(shape) != spatial + 2:
        raise RuntimeError(f"It is expected input_size equals to {spatial + 2}, but got size {len(shape)}")
    if min(*shape[2:], *out) <= 0:
        between = "and output" if spatial == 1 else "output"
        raise RuntimeError(
            f"Input and output sizes should be greater than 0, but got input {_shown(shape[2:])} {between} "
            f"{_shown(tuple(out))}"
        )
    if shape[0] and not shape[1]:
        raise RuntimeError(f"Non-empty {spatial + 2}D data tensor expected but got a tensor with sizes {list(shape)}")
    if x.dtype.name != "uint8" or ("nearest" not in name and "2d" not in name):
        refuse_kinds(name, x, "biuc")


def _maps(mode: str, sizes: Ints, out: Ints, align: bool, scales: tuple[float | None, ...]) -> list[Taps]:
    return [_taps(mode, n, o, align, s) for n, o, s in zip(sizes, out, scales, strict=True)]


class _Formula:
    """A derivative that names its parameters by a list: they differ from one number of dimensions to the next."""

    def __init__(self, names: list[str], body: Callable[..., Any]) -> None:
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        self.__signature__ = inspect.Signature([inspect.Parameter(n, kind) for n in names])
        self.body = body

    def __call__(self, *values: Any) -> Array:
        return self.body(*values)


def _samples(spatial: int, aligned: bool, backward: bool) -> Samples:
    """Return samples that grow, shrink, and (where there is such an option) have the corners aligned."""
    small, large = (3, 2, 4)[:spatial], (5, 4, 3)[:spatial]

    def make_samples(make: Make) -> Cases:
        found: Cases = []
        for size, out in ((small, large), (large, small)):
            shape = (2, 1, *(out if backward else size))
            places = (out, (2, 1, *size)) if backward else (out,)
            for align in (False, True) if aligned else (None,):
                options = () if align is None else (align,)
                found.append(((make(*shape), *places, *options, *(None,) * spatial), {}))
        return found

    return make_samples


def _declare(mode: str, name: str, spatial: int, doc: str) -> None:
    """Declare one interpolation and its adjoint."""
    aligned = not mode.startswith("nearest")
    scales = ["scales"] if spatial == 1 else ["scales_d", "scales_h", "scales_w"][-spatial:]
    options = (["align_corners"] if aligned else []) + scales
    schema = ("bool align_corners, " if aligned else "") + ", ".join(f"float? {s}=None" for s in scales)

    def split(values: tuple[Argument, ...]) -> tuple[bool, tuple[float | None, ...]]:
        return (values[0], values[1:]) if aligned else (False, values)

    def forward(xp: Namespace, self: Array, output_size: Ints, *values: Any) -> Array:
        _check(name, self, output_size)
        maps = _maps(mode, self.shape[2:], output_size, *split(values))
        return (resample_bytes if aligned and self.dtype.kind == "u" else resample)(xp, self, maps)

    def backward(xp: Namespace, grad_output: Gradient, output_size: Ints, input_size: Ints, *values: Any) -> Array:
        maps = _maps(mode, tuple(input_size)[2:], output_size, *split(values))
        return resample(xp, grad_output, [m.adjoint for m in maps])

    def definition(self: Array, output_size: Ints, *values: Any) -> Array:
        align, scales_ = split(values)
        given = zip(self.shape[2:], output_size, scales_ or [None] * spatial)
        return resampled(self, [resampling_matrix(mode, n, m, align, scale) for n, m, scale in given])

    def of_self(g: Gradient, self_shape: Ints, output_size: Ints, *rest: Any) -> Gradient:
        return getattr(rest[-1], f"{name}_backward")(g, output_size, tuple(self_shape), *rest[:-1])

    def of_grad(g: Gradient, output_size: Ints, *rest: Any) -> Gradient:
        return getattr(rest[-1], name)(g, output_size, *rest[:-1])

    node = "".join(p[:1].upper() + p[1:] for p in name.split("_")).replace("1d", "1D").replace("2d", "2D")
    node = node.replace("3d", "3D")
    operator(
        f"{name}(Tensor self, int[] output_size, {schema})",
        forward,
        images=1,
        method=False,
        public_name=False,
        node=f"{node}Backward0",
        derivatives={"self": _Formula(["g", "self_shape", "output_size", *options, "F"], of_self)},
        doc=doc,
        samples=_samples(spatial, aligned, backward=False),
        reference=definition,
        supports="f",
    )
    operator(
        f"{name}_backward(Tensor grad_output, int[] output_size, int[] input_size, {schema})",
        backward,
        images=1,
        method=False,
        public_name=False,
        node=f"{node}BackwardBackward0",
        derivatives={"grad_output": _Formula(["g", "output_size", *options, "F"], of_grad)},
        doc=f"The adjoint of {name}.",
        samples=_samples(spatial, aligned, backward=True),
        reference=lambda grad_output, output_size, input_size, *values: adjoint(
            lambda x: definition(x, output_size, *values), input_size, grad_output
        ),
        supports="f",
    )


for _spatial in (1, 2, 3):
    _declare("nearest", f"upsample_nearest{_spatial}d", _spatial, "Repeat or drop elements, to a given size.")
    _declare("nearest_exact", f"_upsample_nearest_exact{_spatial}d", _spatial, "Take the nearest element's centre.")
_declare("linear", "upsample_linear1d", 1, "Interpolate linearly between neighbours in a signal.")
_declare("linear", "upsample_bilinear2d", 2, "Interpolate linearly between neighbours in an image.")
_declare("linear", "upsample_trilinear3d", 3, "Interpolate linearly between neighbours in a volume.")
_declare("cubic", "upsample_bicubic2d", 2, "Interpolate by cubic convolution in an image.")
_declare("linear_aa", "_upsample_bilinear2d_aa", 2, "Interpolate linearly, with a wider kernel where it shrinks.")
_declare("cubic_aa", "_upsample_bicubic2d_aa", 2, "Interpolate by cubics, with a wider kernel where it shrinks.")
_declare("lanczos_aa", "_upsample_lanczos2d_aa", 2, "Interpolate by Lanczos' kernel, wider where it shrinks.")

del _spatial
