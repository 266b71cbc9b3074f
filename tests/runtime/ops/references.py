"""References of operators: what a declaration names, as a function of host arrays in double precision."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable
from typing import Any

import numpy

import gradscope as gs
from gradscope.runtime.memory import device, dtype
from gradscope.runtime.ops.declaration.registry import Operator
from gradscope.runtime.tensor.tensor import Tensor
from tests.runtime.ops.operator_cases import REGULAR_FORMS, convert, leaves, own

_DIGITS = 60
# Families whose results are sums: the terms cancel, and infinities come out in the order in which they are added.
_OF_SUMS = {
    "cholesky_and_triangular",
    "convolution",
    "cross_entropy",
    "determinant_and_inverse",
    "elementwise_losses",
    "embedding",
    "fft",
    "grid_sample",
    "interpolate",
    "ldl",
    "lu",
    "margin_losses",
    "matmul",
    "matrix_exponential",
    "normalization",
    "pinv_and_lstsq",
    "qr",
    "svd_and_eigen",
}


def reference_of(op: Operator) -> Callable[..., Any]:
    """Return the reference that an operator's declaration names."""
    if callable(op.reference):
        return op.reference
    assert op.reference is not None, f"the declaration of {op.name} names no reference"
    module, _, name = op.reference.rpartition(".")
    return _of_numbers(name) if module == "mpmath" else getattr(importlib.import_module(module), name)


def expected(op: Operator, sample: Any, *, double: bool) -> list[Any]:
    """Return the outputs of the reference for a sample of the operator, in double precision or in the sample's own."""
    if op.name in REGULAR_FORMS:
        results = own(op, _of_tensors(reference_of(op), double))(*sample[0], **sample[1])
        return [_host(result) for result in results]
    args, kwargs = (_arrays(part, double) for part in sample)
    return [numpy.asarray(part) for part in _called(reference_of(op), args, kwargs)]


def _called(reference: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    with warnings.catch_warnings(), numpy.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        result = reference(*args, **kwargs)
    return result if isinstance(result, (tuple, list)) else [result]


def _of_tensors(reference: Callable[..., Any], double: bool) -> Callable[..., Any]:
    """Return a reference as a function of tensors, which what it is unique up to is taken out of (`REGULAR_FORMS`)."""

    def function(*args: Any, **kwargs: Any) -> Any:
        results = [gs.tensor(part) for part in _called(reference, _arrays(args, double), _arrays(kwargs, double))]
        return results if len(results) > 1 else results[0]

    return function


def _arrays(value: Any, double: bool) -> Any:
    """Return arguments with arrays in place of tensors, in double precision or in their own."""
    value = convert(value, lambda tensor: _double(_host(tensor)) if double else _host(tensor))
    if isinstance(value, (list, tuple)):
        return type(value)(_arrays(item, double) for item in value)
    if isinstance(value, dict):
        return {key: _arrays(item, double) for key, item in value.items()}
    return value.numpy if isinstance(value, dtype.dtype) else value


def _host(tensor: Tensor) -> Any:
    """Return the values of a tensor: conjugates and negatives are views, which its array does not show."""
    return device.to_host(tensor.detach().resolve_conj().resolve_neg()._array)


def _double(array: Any) -> Any:
    return array.astype({"f": "float64", "c": "complex128"}.get(array.dtype.kind, array.dtype))


def _of_numbers(name: str) -> Callable[..., Any]:
    """Return mpmath's function `name` over arrays, rounded to double precision once, at the end."""
    import mpmath

    function = getattr(mpmath, name)

    def one(*numbers: Any) -> Any:
        # Of a NaN mpmath makes NaN slowly or not at all; every function named here has NaN there.
        if any(number != number for number in numbers):
            return numpy.nan
        try:
            result = function(*(number.item() if hasattr(number, "item") else number for number in numbers))
        except (ValueError, ZeroDivisionError):
            return numpy.nan  # outside of its domain, or a pole
        return _rounded(result, any(isinstance(number, complex) for number in numbers))

    def over_arrays(*arguments: Any) -> Any:
        kind = numpy.result_type(*arguments, numpy.float64)
        arrays = numpy.broadcast_arrays(*arguments)
        found = numpy.empty(arrays[0].shape, dtype=kind)
        with mpmath.workdps(_DIGITS):
            for place in numpy.ndindex(found.shape):
                found[place] = one(*(array[place] for array in arrays))
        return found

    return over_arrays


def _rounded(number: Any, complex_: bool) -> Any:
    """Return a number of mpmath's as Python's: NaN where a function of real numbers leaves them."""
    if complex_:
        return complex(number)
    if getattr(number, "imag", 0) != 0:
        return numpy.nan
    try:
        return float(number.real)
    except OverflowError:
        return numpy.copysign(numpy.inf, 1 if number.real > 0 else -1)


def comparable(op: Operator, sample: Any) -> bool:
    """Whether the elements of a result depend on the sample, and not on the order of the sums that it is made of."""
    if op.family.rpartition(".")[2] not in _OF_SUMS:
        return True
    arrays = [_host(tensor) for tensor in leaves(list(sample))]
    return all(bool((numpy.abs(array) < 1e30).all()) for array in arrays if array.dtype.kind in "fc")


def disagreements(op: Operator, sample: Any, outputs: list[Tensor], *, rtol: float) -> list[str]:
    """Return a line for each element in which an operator and its reference differ, stated differences apart."""
    lines = []
    for number, (found, other, wrong) in enumerate(_differing(op, sample, outputs, rtol)):
        for where, _ in op.differs:
            wrong &= ~_mask(where, sample, found.shape)
        for place in (tuple(place) for place in numpy.argwhere(wrong)):
            at = [_element(argument, place, found.shape) for argument in (*sample[0], *sample[1].values())]
            lines.append(f"{op.name}({', '.join(at)})[{number}] = {found[place]}, its reference {other[place]}")
    return lines


def shown_differences(op: Operator, sample: Any, outputs: list[Tensor], *, rtol: float) -> set[str]:
    """Return the reasons of those differences that the declaration states and that a sample shows."""
    return {
        why
        for where, why in op.differs
        for found, _, wrong in _differing(op, sample, outputs, rtol)
        if (wrong & _mask(where, sample, found.shape)).any()
    }


def _differing(op: Operator, sample: Any, outputs: list[Tensor], rtol: float) -> list[tuple[Any, Any, Any]]:
    """Return, for each result, its values, the reference's, and where they differ.

    They agree where the number is the reference's in double precision, rounded, or the one that the reference makes of
    the same formula in the operator's own precision, with its overflows.
    """
    wanted, own = expected(op, sample, double=True), None
    assert len(outputs) == len(wanted), f"{op.name}: {len(outputs)} results, its reference has {len(wanted)}"
    differing = []
    for number, (output, other) in enumerate(zip(outputs, wanted, strict=True)):
        found = _host(output)
        assert found.shape == other.shape, f"{op.name}: shape {found.shape}, that of its reference {other.shape}"
        wrong = ~_agree(op, found, other, rtol)
        if wrong.any():
            own = own or expected(op, sample, double=False)
            wrong &= ~_agree(op, found, own[number], rtol)
        differing.append((found, other, wrong))
    return differing


def _agree(op: Operator, found: Any, other: Any, rtol: float) -> Any:
    """Return where two arrays agree: to `rtol`, NaN with NaN, and in the sign of zeros where that has a meaning.

    A sum that starts from 0 loses it, and mpmath does not know it.
    """
    with numpy.errstate(all="ignore"):
        other = other.astype(found.dtype)
        if found.dtype.kind not in "fc":
            return found == other
        close = numpy.isclose(found, other, rtol=rtol, atol=_absolute(op, other, rtol), equal_nan=True)
    if found.dtype.kind == "c":
        return close | (numpy.isnan(found) & numpy.isnan(other))
    signed = op.promote is not None and not str(op.reference).startswith("mpmath.")
    return close & ~((found == 0) & (other == 0) & (numpy.signbit(found) != numpy.signbit(other)) & signed)


def _absolute(op: Operator, other: Any, rtol: float) -> float:
    """Return how far apart small numbers may be; terms of sums cancel, up to the rounding of the largest sum."""
    smallest = 4 * float(numpy.finfo(other.dtype).smallest_subnormal)
    sizes = numpy.abs(other[numpy.isfinite(other)]) if op.family.rpartition(".")[2] in _OF_SUMS else ()
    return max(smallest, rtol * float(numpy.max(sizes, initial=0)))


def _mask(where: Callable[..., Any], sample: Any, shape: tuple[int, ...]) -> Any:
    args, kwargs = (_arrays(part, double=True) for part in sample)
    with numpy.errstate(all="ignore"):
        return numpy.broadcast_to(where(*args, **kwargs), shape)


def _element(argument: Any, place: tuple[Any, ...], shape: tuple[int, ...]) -> str:
    if isinstance(argument, Tensor) and tuple(argument.shape) == shape:
        return repr(argument[tuple(int(i) for i in place)].item())
    return repr(argument.tolist()) if isinstance(argument, Tensor) and argument.numel() < 30 else f"{argument!r:.60}"
