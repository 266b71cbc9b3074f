"""Element types under PyTorch's names, and PyTorch's type promotion."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import bfloat16 as brain

__all__ = [
    "bfloat16",
    "bool_",
    "complex64",
    "complex128",
    "default_dtype",
    "dtype",
    "finfo",
    "float16",
    "float32",
    "float64",
    "get_default_dtype",
    "iinfo",
    "int8",
    "int16",
    "int32",
    "int64",
    "promote_types",
    "scalar_type",
    "set_default_dtype",
    "to_dtype",
    "uint8",
]


class dtype:  # noqa: N801 - PyTorch's name
    """An element type, e.g. ``gs.float32``.

    Each is a singleton, compared by identity, and wraps the NumPy dtype in :attr:`numpy`.

    Attributes
    ----------
    itemsize : int
        Bytes an element.

    See Also
    --------
    finfo, iinfo, promote_types

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.float32.is_floating_point
    True
    """

    __slots__ = (
        "category",
        "is_complex",
        "is_floating_point",
        "is_signed",
        "itemsize",
        "kind",
        "legacy_name",
        "name",
        "numpy",
    )

    numpy: np.dtype

    def __init__(self, name: str, numpy_dtype: np.dtype | None, legacy_name: str) -> None:
        self.name = name
        self.legacy_name = legacy_name
        # It is NumPy's letter, so that a derivative may ask an array's dtype and a tensor's alike.
        self.kind = "f" if numpy_dtype is None else numpy_dtype.kind
        self.itemsize = 2 if numpy_dtype is None else numpy_dtype.itemsize
        self.is_floating_point = self.kind == "f"
        self.is_complex = self.kind == "c"
        self.is_signed = self.kind in "ifc"
        self.category = CATEGORY[self.kind]
        if numpy_dtype is not None:
            self.numpy = numpy_dtype

    def __getattr__(self, name: str) -> Any:
        """Return the NumPy dtype of bfloat16, which is made known when it is first asked for."""
        if name != "numpy":
            raise AttributeError(f"'dtype' object has no attribute {name!r}")
        self.numpy = brain.numpy_dtype()
        BY_NUMPY[self.numpy] = self
        return self.numpy

    def __repr__(self) -> str:
        return f"gradscope.{self.name}"

    def __reduce__(self) -> tuple[Any, ...]:
        return _by_name, (self.name,)

    def __copy__(self) -> dtype:
        return self

    def __deepcopy__(self, memo: dict) -> dtype:
        return self


# NumPy's letters for the kinds of dtypes that are real floats, and that have gradients. V is bfloat16: no tensor has
# another dtype of that kind.
FLOATING, INEXACT = "fV", "fcV"

# The types that count as numbers beside tensors.
NUMBERS = (bool, int, float, complex, np.number, np.bool_)

# PyTorch's promotion works by category first: bool < integral < floating < complex.
CATEGORY = {"b": 0, "u": 1, "i": 1, "f": 2, "V": 2, "c": 3}

float16 = dtype("float16", np.dtype(np.float16), "HalfTensor")
bfloat16 = dtype("bfloat16", None, "BFloat16Tensor")
float32 = dtype("float32", np.dtype(np.float32), "FloatTensor")
float64 = dtype("float64", np.dtype(np.float64), "DoubleTensor")
complex64 = dtype("complex64", np.dtype(np.complex64), "ComplexFloatTensor")
complex128 = dtype("complex128", np.dtype(np.complex128), "ComplexDoubleTensor")
uint8 = dtype("uint8", np.dtype(np.uint8), "ByteTensor")
int8 = dtype("int8", np.dtype(np.int8), "CharTensor")
int16 = dtype("int16", np.dtype(np.int16), "ShortTensor")
int32 = dtype("int32", np.dtype(np.int32), "IntTensor")
int64 = dtype("int64", np.dtype(np.int64), "LongTensor")
bool_ = dtype("bool", np.dtype(np.bool_), "BoolTensor")

ALL_DTYPES = (float16, bfloat16, float32, float64, complex64, complex128, uint8, int8, int16, int32, int64, bool_)


class _ByNumpy(dict[np.dtype, dtype]):
    """The dtypes by NumPy's; bfloat16 is found there as soon as an array of it has come up."""

    def __missing__(self, kind: Any) -> dtype:
        if kind not in self:
            raise KeyError(kind)
        return self[kind]

    def __contains__(self, kind: object) -> bool:
        if super().__contains__(kind):
            return True
        return getattr(kind, "name", None) == "bfloat16" and bfloat16.numpy == kind


BY_NUMPY: dict[np.dtype, dtype] = _ByNumpy({d.numpy: d for d in ALL_DTYPES if d is not bfloat16})


def scalar_type(kind: Any) -> str:
    """Return PyTorch's name of a NumPy dtype in its messages: ``'Float'``, ``'Long'``, ``'ComplexDouble'``."""
    return BY_NUMPY[kind].legacy_name.removesuffix("Tensor")


def _by_name(name: str) -> dtype:
    return next(d for d in ALL_DTYPES if d.name == name)


class _Defaults:
    """The default floating dtype, as a dtype and as NumPy's."""

    floating = float32
    numpy = float32.numpy
    numpy_complex = complex64.numpy


default_dtype = _Defaults


def get_default_dtype() -> dtype:
    """Return the dtype that factories give to Python floats (``gs.float32`` unless changed).

    See Also
    --------
    set_default_dtype

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.get_default_dtype()
    gradscope.float32
    """
    return _Defaults.floating


def set_default_dtype(d: dtype) -> None:
    """Set the dtype that factories give to Python floats.

    Raises
    ------
    TypeError
        If `d` is not a floating-point dtype.

    See Also
    --------
    get_default_dtype, set_default_device

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.set_default_dtype(gs.float64)
    >>> gs.tensor([1.0]).dtype
    gradscope.float64
    >>> gs.set_default_dtype(gs.float32)
    """
    if not isinstance(d, dtype) or not d.is_floating_point:
        raise TypeError(f"only floating-point types are supported as the default type, got {d!r}")
    _Defaults.floating = d
    _Defaults.numpy = d.numpy
    _Defaults.numpy_complex = complex128.numpy if d is float64 else complex64.numpy


def to_dtype(value: Any) -> dtype:
    """Return the :class:`dtype` named by a dtype, a NumPy dtype or a Python type; ``float`` is double, as in both.

    Raises
    ------
    TypeError
        If there is no such element type.
    """
    if isinstance(value, dtype):
        return value
    try:
        return BY_NUMPY[np.dtype(value)]
    except (KeyError, TypeError):
        names = ", ".join(d.name for d in ALL_DTYPES)
        raise TypeError(f"unsupported dtype {value!r}\nUse one of: {names}.") from None


def promote_types(a: dtype, b: dtype) -> dtype:
    """Return the smallest dtype that both promote to, by PyTorch's table.

    See Also
    --------
    result_type, can_cast

    Examples
    --------
    >>> promote_types(int64, float16)
    gradscope.float16
    """
    return BY_NUMPY[promote_numpy(a.numpy, b.numpy)]


def promote_numpy(a: np.dtype, b: np.dtype) -> np.dtype:
    """Promote two NumPy dtypes as PyTorch does: an integer never widens a float."""
    if a is b:
        return a
    ka, kb = CATEGORY[a.kind], CATEGORY[b.kind]
    if ka == kb and a.itemsize == b.itemsize and a.kind != b.kind and brain.KIND in (a.kind, b.kind):
        return float32.numpy  # neither of the two half precisions holds the other
    if ka == kb or 3 in (ka, kb):
        if ka != kb and min(ka, kb) < 2:
            return a if ka > kb else b
        return np.promote_types(a, b)
    return a if ka > kb else b


def result_numpy(operands: list[Any]) -> np.dtype:
    """Return the dtype of an operation on arrays and Python numbers, by PyTorch's rules.

    Arrays with dimensions outrank 0-d arrays, which outrank Python numbers; a lower rank changes the dtype only when
    its category (bool, integral, floating, complex) is higher.
    """
    ranks: list[np.dtype | None] = [None, None, None]
    for operand in operands:
        if hasattr(operand, "ndim"):
            rank, kind = (0 if operand.ndim else 1), operand.dtype
        else:
            rank, kind = 2, scalar_dtype(operand)
        before = ranks[rank]
        ranks[rank] = kind if before is None else promote_numpy(before, kind)
    result: np.dtype | None = None
    for kind in ranks:
        result = kind if result is None else outranked(result, kind)
    assert result is not None
    return result


def outranked(high: np.dtype, low: np.dtype | None) -> np.dtype:
    """Return the dtype of operands of a higher rank beside those of a lower one, if there are any."""
    if low is None or CATEGORY[low.kind] <= CATEGORY[high.kind]:
        return high
    if low.kind == "c" and high.kind in FLOATING:
        # The precision is that of the higher rank.
        return complex128.numpy if high.itemsize == 8 else complex64.numpy
    return promote_numpy(high, low)


def scalar_dtype(number: Any) -> np.dtype:
    """Return the NumPy dtype PyTorch gives a Python number."""
    if isinstance(number, bool | np.bool_):
        return bool_.numpy
    if isinstance(number, int | np.integer):
        return int64.numpy
    if isinstance(number, float | np.floating):
        return _Defaults.numpy
    return _Defaults.numpy_complex


class finfo:  # noqa: N801 - PyTorch's name
    """Limits of a floating-point dtype (``eps``, ``max``, ``min``, ``tiny``, ``smallest_normal``, ``bits``).

    See Also
    --------
    iinfo, get_default_dtype

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.finfo(gs.float32).bits
    32
    """

    def __init__(self, type: dtype | None = None) -> None:
        kind = (type or get_default_dtype()).numpy
        if kind.char == brain.CHAR:
            self._of_bfloat16()
            return
        info = np.finfo(kind)
        self.bits = info.bits
        self.eps, self.max, self.min = float(info.eps), float(info.max), float(info.min)
        self.tiny = self.smallest_normal = float(info.tiny)
        self.resolution = float(f"1e-{info.precision}")
        self.dtype = str(info.dtype)

    def _of_bfloat16(self) -> None:
        """Fill in what 8 bits of exponent and 7 of fraction make."""
        self.bits, self.dtype = 16, "bfloat16"
        self.eps, self.max = 2.0**-7, (2 - 2.0**-7) * 2.0**127
        self.min = -self.max
        self.tiny = self.smallest_normal = 2.0**-126
        self.resolution = 0.01


class iinfo:  # noqa: N801 - PyTorch's name
    """Limits of an integer dtype (``max``, ``min``, ``bits``).

    See Also
    --------
    finfo

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.iinfo(gs.int8).max
    127
    """

    def __init__(self, type: dtype) -> None:
        info = np.iinfo(type.numpy)
        self.bits, self.max, self.min = info.bits, int(info.max), int(info.min)
        self.dtype = str(info.dtype)
