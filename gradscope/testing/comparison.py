"""assert_close: PyTorch's ``torch.testing.assert_close``, with its tolerances and its messages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy

from ..runtime.kernels.casts import cast
from ..runtime.memory import device, dtype
from ..runtime.memory.bfloat16 import widened
from ..runtime.tensor.tensor import Tensor

__all__ = ["assert_close", "default_tolerances"]

# (rtol, atol) for each dtype; integers and booleans compare exactly.
TOLERANCES = {
    dtype.float16: (1e-3, 1e-5),
    dtype.bfloat16: (1.6e-2, 1e-5),
    dtype.float32: (1.3e-6, 1e-5),
    dtype.float64: (1e-7, 1e-7),
    dtype.complex64: (1.3e-6, 1e-5),
    dtype.complex128: (1e-7, 1e-7),
}
NUMBER_DTYPES = {bool: dtype.bool_, int: dtype.int64, float: dtype.float64, complex: dtype.complex128}


class NotCloseError(Exception):
    """A difference, and where in nested sequences and mappings it is; becomes an AssertionError."""

    def __init__(self, message: str, path: tuple[Any, ...]) -> None:
        where = "".join(f"[{item!r}]" for item in path)
        super().__init__(f"{message}\n\nThe failure occurred for item {where}" if path else message)


def default_tolerances(*dtypes: dtype.dtype) -> tuple[float, float]:
    """Return the loosest (rtol, atol) of several dtypes.

    See Also
    --------
    assert_close

    Examples
    --------
    >>> import gradscope as gs
    >>> default_tolerances(gs.float32, gs.float64)
    (1.3e-06, 1e-05)
    """
    found = [TOLERANCES.get(d, (0.0, 0.0)) for d in dtypes]
    return max(rtol for rtol, _ in found), max(atol for _, atol in found)


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: str | Callable[[str], str] | None = None,
) -> None:
    """Assert that `actual` and `expected` are close: tensors, arrays, numbers, and sequences and mappings of them.

    Parameters
    ----------
    allow_subclasses : bool
        False requires the very same type, not a related one.
    rtol, atol : float, optional
        Both or neither; by default those of the dtypes, e.g. 1.3e-6 and 1e-5 for float32.
    equal_nan : bool
        Whether two NaN are equal.
    check_device, check_dtype, check_stride : bool
        Whether those must agree.
    check_layout : bool
        Accepted for PyTorch's sake; every tensor is strided.
    msg : str or callable, optional
        The message to raise with, or what makes it from the usual one.

    Raises
    ------
    AssertionError
        If they are not close: how many elements differ, and the greatest differences.
    ValueError
        If only one of `rtol` and `atol` is given.
    TypeError
        If the two cannot be compared.

    See Also
    --------
    allclose, default_tolerances

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.testing.assert_close(gs.tensor([1.0, 2.0]), gs.tensor([1.0, 2.0000001]))
    """
    if (rtol is None) != (atol is None):
        missing = "atol" if atol is None else "rtol"
        raise ValueError(f"Both 'rtol' and 'atol' must be either specified or omitted, but got no {missing}.")
    comparison = _Comparison(
        allow_subclasses,
        rtol,
        atol,
        equal_nan,
        check_device=check_device,
        check_dtype=check_dtype,
        check_stride=check_stride,
    )
    try:
        comparison.compare(actual, expected, ())
    except NotCloseError as error:
        text = str(error) if msg is None else msg(str(error)) if callable(msg) else msg
        raise AssertionError(text) from None


class _Comparison:
    """The options of one :func:`assert_close`."""

    def __init__(
        self,
        allow_subclasses: bool,
        rtol: float | None,
        atol: float | None,
        equal_nan: bool,
        *,
        check_device: bool,
        check_dtype: bool,
        check_stride: bool,
    ) -> None:
        self.allow_subclasses = allow_subclasses
        self.rtol, self.atol, self.equal_nan = rtol, atol, equal_nan
        self.check_device, self.check_dtype, self.check_stride = check_device, check_dtype, check_stride

    def compare(self, actual: Any, expected: Any, path: tuple[Any, ...]) -> None:
        """Raise :class:`NotCloseError` where the two differ."""
        if is_sequence(actual) and is_sequence(expected):
            if len(actual) != len(expected):
                raise NotCloseError(f"The length of the sequences mismatch: {len(actual)} != {len(expected)}", path)
            for index, (a, e) in enumerate(zip(actual, expected, strict=True)):
                self.compare(a, e, (*path, index))
        elif isinstance(actual, Mapping) and isinstance(expected, Mapping):
            self._mappings(actual, expected, path)
        elif actual is None or expected is None:
            if actual is not expected:
                raise NotCloseError(f"None mismatch: {actual} is not {expected}", path)
        elif isinstance(actual, bool | numpy.bool_) and isinstance(expected, bool | numpy.bool_):
            if bool(actual) is not bool(expected):
                raise NotCloseError(f"Booleans mismatch: {actual} is not {expected}", path)
        elif is_number(actual) and is_number(expected):
            self._numbers(actual, expected, path)
        else:
            self._tensors(*self._as_tensors(actual, expected), path)

    def _mappings(self, actual: Mapping[Any, Any], expected: Mapping[Any, Any], path: tuple[Any, ...]) -> None:
        missing = sorted(expected.keys() - actual.keys(), key=str)
        additional = sorted(actual.keys() - expected.keys(), key=str)
        if missing or additional:
            raise NotCloseError(
                "The keys of the mappings do not match:\n"
                f"Missing keys in the actual mapping: {missing}\n"
                f"Additional keys in the actual mapping: {additional}",
                path,
            )
        for key in actual:
            self.compare(actual[key], expected[key], (*path, key))

    def _tolerances(self, *dtypes: dtype.dtype) -> tuple[float, float]:
        if self.rtol is None or self.atol is None:
            return default_tolerances(*dtypes)
        return self.rtol, self.atol

    def _numbers(self, actual: Any, expected: Any, path: tuple[Any, ...]) -> None:
        if self.check_dtype and type(actual) is not type(expected):
            raise NotCloseError(f"The (d)types do not match: {type(actual)} != {type(expected)}.", path)
        kinds = [NUMBER_DTYPES[next(t for t in (int, float, complex) if isinstance(v, t))] for v in (actual, expected)]
        rtol, atol = self._tolerances(*kinds)
        if not numpy.isclose(actual, expected, rtol=rtol, atol=atol, equal_nan=self.equal_nan):
            raise NotCloseError(scalar_message(actual, expected, rtol, atol), path)

    def _as_tensors(self, actual: Any, expected: Any) -> tuple[Tensor, Tensor]:
        related = isinstance(actual, type(expected)) or isinstance(expected, type(actual))
        known = all(isinstance(v, Tensor) or device.is_array(v) for v in (actual, expected))
        if not (related and known) or (not self.allow_subclasses and type(actual) is not type(expected)):
            raise TypeError(
                f"No comparison pair was able to handle inputs of type {type(actual)} and {type(expected)}."
            )
        a, e = (v if isinstance(v, Tensor) else Tensor._wrap(v) for v in (actual, expected))
        return a, e

    def _tensors(self, actual: Tensor, expected: Tensor, path: tuple[Any, ...]) -> None:
        facts: list[tuple[str, Any, Any, bool]] = [("shape", actual.shape, expected.shape, True)]
        facts.append(("device", actual.device, expected.device, self.check_device))
        facts.append(("dtype", actual.dtype, expected.dtype, self.check_dtype))
        facts.append(("stride()", actual.stride(), expected.stride(), self.check_stride))
        for name, found, wanted, checked in facts:
            if checked and found != wanted:
                raise NotCloseError(f"The values for attribute '{name}' do not match: {found!r} != {wanted!r}.", path)
        rtol, atol = self._tolerances(actual.dtype, expected.dtype)
        kind = dtype.promote_numpy(actual.dtype.numpy, expected.dtype.numpy)
        a, e = (widened(cast(device.to_host(t._array), kind)) for t in (actual, expected))
        matches = numpy.isclose(a, e, rtol=rtol, atol=atol, equal_nan=self.equal_nan)
        if matches.all():
            return
        if a.ndim == 0:
            raise NotCloseError(scalar_message(a[()], e[()], rtol, atol), path)
        raise NotCloseError(tensor_message(a, e, matches, rtol, atol), path)


def is_sequence(value: Any) -> bool:
    """Whether `value` is compared item by item."""
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def is_number(value: Any) -> bool:
    """Whether `value` is a Python number."""
    return isinstance(value, (int, float, complex))


def title(kind: str, rtol: float, atol: float) -> str:
    """Return the first line of a message."""
    return f"{kind} are not {'equal' if rtol == atol == 0 else 'close'}!\n\n"


def allowed(tolerance: float, rtol: float, atol: float) -> str:
    """Return what a message says of a tolerance."""
    return "" if rtol == atol == 0 else f" (up to {tolerance} allowed)"


def scalar_message(actual: Any, expected: Any, rtol: float, atol: float) -> str:
    """Return the message for two numbers."""
    found, wanted = (v.item() if isinstance(v, numpy.generic) else v for v in (actual, expected))
    absolute = abs(found - wanted)
    relative = absolute / abs(wanted) if wanted else float("inf")
    return (
        f"{title('Scalars', rtol, atol)}Expected {wanted} but got {found}.\n"
        f"Absolute difference: {absolute}{allowed(atol, rtol, atol)}\n"
        f"Relative difference: {relative}{allowed(rtol, rtol, atol)}"
    )


def tensor_message(actual: Any, expected: Any, matches: Any, rtol: float, atol: float) -> str:
    """Return the message for two arrays: how many elements differ, and the greatest differences."""
    if actual.dtype.kind in "biu":
        actual, expected = actual.astype(numpy.int64), expected.astype(numpy.int64)
    wrong = int(actual.size - matches.sum())
    with numpy.errstate(all="ignore"):
        absolute = abs(actual - expected)
        relative = absolute / abs(expected)
    text = (
        f"{title('Tensor-likes', rtol, atol)}Mismatched elements: {wrong} / {actual.size} ({wrong / actual.size:.1%})\n"
    )
    for name, differences, tolerance in (("absolute", absolute, atol), ("relative", relative, rtol)):
        differences = numpy.where(matches, 0, differences)
        index = numpy.unravel_index(int(differences.argmax()), differences.shape)
        text += (
            f"Greatest {name} difference: {differences[index].item()} at index {tuple(int(i) for i in index)}"
            f"{allowed(tolerance, rtol, atol)}\n"
        )
    return text.removesuffix("\n")
