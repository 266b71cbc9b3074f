"""A strict stand-in for an array module that is not NumPy: what runs on it runs on CuPy's side of the contract.

A :class:`StrictArray` wraps an ndarray and refuses what a GPU array refuses, or does only by a silent copy to the host:
NumPy's functions, mixing with ndarrays, and conversions to Python numbers. :data:`strict` is its module: NumPy's
functions under NumPy's names, less those that CuPy 13 lacks. Where CuPy is installed its own signatures and dtypes are
asked as well (:mod:`tests.cupy_contract`). Importing this file registers both with the runtime as the device type
``"strict"``.
"""

from __future__ import annotations

import types
from typing import Any

import numpy

from gradscope.runtime.memory.device import Backend, register_backend
from gradscope.runtime.memory.storage import flat_memory
from gradscope.runtime.ops.linalg.lapack import solve_triangles
from tests import cupy_contract

__all__ = ["HostAccessError", "StrictArray", "strict", "to_strict"]

# numpy.<name> without a cupy.<name> (CuPy 13.6), as far as array code might want them.
_MISSING = """
    acos acosh apply_over_axes asin asinh asmatrix astype atan atan2 atanh bitwise_count bitwise_invert
    bitwise_left_shift bitwise_right_shift block bool concat cumulative_prod cumulative_sum einsum_path errstate
    geomspace histogram_bin_edges insert isdtype long longdouble matrix matrix_transpose matvec memmap nanpercentile
    nanquantile ndenumerate nditer permute_dims pow put_along_axis seterr spacing trapezoid unique_all unique_counts
    unique_inverse unique_values unstack vecdot vecmat vectorize
"""
MISSING = frozenset(_MISSING.split())
_BINARY = "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift"
_UNARY = "eq ne lt le gt ge neg pos abs invert"
# Methods that both array classes have.
_METHODS = """
    all any argmax argmin argpartition astype clip conj conjugate copy cumprod cumsum diagonal dot fill flatten
    max mean min nonzero partition prod put ravel repeat reshape round searchsorted sort squeeze std sum swapaxes take
    trace transpose var view
"""
# The reductions that CuPy's ufuncs have, and the dtypes for which they have at() (CuPy 13).
REDUCING = frozenset(["add", "multiply"])
_ORDERED = ["int32", "uint32", "uint64", "float32", "float64"]
_BITS = ["int32", "int64", "uint32", "uint64"]
SCATTERING = {
    "add": [*_ORDERED, "float16"], "subtract": ["int32", "uint32"], "maximum": _ORDERED, "minimum": _ORDERED,
    "bitwise_and": _BITS, "bitwise_or": _BITS, "bitwise_xor": _BITS,
}  # fmt: skip
UPLOADS = frozenset(["array", "asarray"])


class HostAccessError(TypeError):
    """An array was used where only a host array works."""


class StrictArray:
    """An ndarray behind a door."""

    __slots__ = ("__weakref__", "_data", "base")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, data: numpy.ndarray, base: StrictArray | None = None) -> None:
        self._data = data
        self.base = base

    # --- refusals ---

    def _refuse(self, what: str) -> Any:
        raise HostAccessError(f"{what} of a strict array: it would need a copy to the host")

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        self._refuse("__array__")

    def __array_function__(self, function: Any, *args: Any) -> Any:
        self._refuse(f"numpy.{function.__name__}()")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        # `numpy.float64(2) * array` arrives here; a NumPy scalar is a number, not an array.
        numbers = [isinstance(i, numpy.generic) for i in inputs]
        arrays = [isinstance(i, StrictArray) for i in inputs]
        if method == "__call__" and not kwargs and any(numbers) and sum(numbers) + sum(arrays) == len(inputs):
            return call(ufunc, inputs, {})
        return self._refuse(f"numpy.{ufunc.__name__}()")

    def __bool__(self) -> bool:
        return self._refuse("bool()")

    def __float__(self) -> float:
        return self._refuse("float()")

    def __int__(self) -> int:
        return self._refuse("int()")

    def __complex__(self) -> complex:
        return self._refuse("complex()")

    def __index__(self) -> int:
        return self._refuse("index()")

    def item(self) -> Any:
        return self._refuse("item()")

    def tolist(self) -> Any:
        return self._refuse("tolist()")

    # --- facts ---

    shape = property(lambda self: self._data.shape, lambda self, shape: setattr(self._data, "shape", shape))
    dtype = property(lambda self: self._data.dtype)
    ndim = property(lambda self: self._data.ndim)
    size = property(lambda self: self._data.size)
    strides = property(lambda self: self._data.strides)
    itemsize = property(lambda self: self._data.itemsize)
    nbytes = property(lambda self: self._data.nbytes)
    T = property(lambda self: wrap(self._data.T, (self,)))
    real = property(lambda self: wrap(self._data.real, (self,)))
    imag = property(lambda self: wrap(self._data.imag, (self,)))

    @property
    def flags(self) -> Any:
        flags = self._data.flags
        names = ("c_contiguous", "f_contiguous", "owndata", "forc", "fnc")
        return types.SimpleNamespace(**{name: getattr(flags, name) for name in names})

    def __len__(self) -> int:
        return len(self._data)

    def __repr__(self) -> str:
        return f"<strict array {self.dtype} {list(self.shape)}>"

    # --- indexing ---

    def __getitem__(self, key: Any) -> StrictArray:
        key = bare_key(key)
        # A 0-d result stays an array that shares the memory, as on a GPU.
        if not any(k is Ellipsis for k in key):
            key = (*key, Ellipsis)
        return wrap(self._data[key], (self,))

    def __setitem__(self, key: Any, value: Any) -> None:
        self._data[bare_key(key)] = bare(value)


def bare(value: Any) -> Any:
    """Return the ndarray(s) behind a value; refuse an ndarray that does not come from here."""
    if isinstance(value, StrictArray):
        return value._data
    if isinstance(value, numpy.ndarray):
        raise HostAccessError("a host array was mixed with strict arrays")
    if isinstance(value, (list, tuple)):
        return type(value)(bare(item) for item in value)
    return value


def bare_key(key: Any) -> Any:
    """Return an index as a tuple for the ndarray."""
    key = key if isinstance(key, tuple) else (key,)
    return tuple(bare(item) for item in key)


def memory_root(array: numpy.ndarray) -> Any:
    """Return the object that owns the memory of an ndarray."""
    root: Any = array
    while getattr(root, "base", None) is not None:
        root = root.base
    return root


def wrap(result: Any, sources: Any) -> Any:
    """Wrap the arrays in a result; one that shares memory with a source is a view of it."""
    if isinstance(result, numpy.ndarray):
        base = None
        if result.base is not None:
            root = memory_root(result)
            base = next((s for s in sources if isinstance(s, StrictArray) and memory_root(s._data) is root), None)
        while base is not None and base.base is not None:
            base = base.base
        return StrictArray(result, base)
    if isinstance(result, numpy.generic):
        return StrictArray(numpy.asarray(result))
    if isinstance(result, (list, tuple)):
        items = [wrap(item, sources) for item in result]
        return type(result)(*items) if hasattr(result, "_fields") else type(result)(items)
    return result


def flat(values: Any) -> list[Any]:
    """Return the strict arrays among nested arguments."""
    found = []
    for value in values:
        if isinstance(value, StrictArray):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            found.extend(flat(value))
    return found


def call(function: Any, args: Any, kwargs: Any) -> Any:
    """Call a NumPy function on the arrays behind strict ones."""
    out = kwargs.get("out")
    result = function(*(bare(a) for a in args), **{k: bare(v) for k, v in kwargs.items()})
    return out if isinstance(out, StrictArray) else wrap(result, flat(args))


def add_operators() -> None:
    """Give StrictArray the arithmetic of ndarray, in-place forms too, and its methods that CuPy has."""
    names = _BINARY.split()
    binary = [f"__{p}{n}__" for n in names for p in ("", "r")]
    unary = [f"__{n}__" for n in _UNARY.split()]

    def delegate(name: str) -> Any:
        def method(self: StrictArray, *args: Any, **kwargs: Any) -> Any:
            for argument in args:
                if isinstance(argument, numpy.ndarray):
                    raise HostAccessError(f"{name} of a strict array and a host array")
            if not name.startswith("__"):
                cupy_contract.check_method(name, args, kwargs)
            result = getattr(self._data, name)(*map(bare, args), **{k: bare(v) for k, v in kwargs.items()})
            return result if result is NotImplemented else wrap(result, (self, *args))

        return method

    def inplace(name: str) -> Any:
        def method(self: StrictArray, other: Any) -> StrictArray:
            getattr(self._data, name)(bare(other))
            return self

        return method

    for name in [*binary, *unary, *_METHODS.split()]:
        setattr(StrictArray, name, delegate(name))
    for name in names:
        setattr(StrictArray, f"__i{name}__", inplace(f"__i{name}__"))


add_operators()


class StrictUfunc:
    """A ufunc of the strict module."""

    def __init__(self, ufunc: numpy.ufunc) -> None:
        self._ufunc = ufunc
        self.__name__ = ufunc.__name__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        cupy_contract.check_ufunc(self.__name__, args, kwargs)
        return call(self._ufunc, args, kwargs)

    def reduce(self, array: Any, axis: Any = 0, dtype: Any = None, out: Any = None, keepdims: bool = False) -> Any:
        if self.__name__ not in REDUCING:
            raise NotImplementedError(f"cupy.{self.__name__}.reduce does not exist: use the array's method")
        return call(self._ufunc.reduce, (array,), {"axis": axis, "dtype": dtype, "out": out, "keepdims": keepdims})

    def at(self, array: StrictArray, indices: Any, values: Any = None) -> None:
        if self.__name__ not in SCATTERING:
            raise NotImplementedError(f"cupy.{self.__name__}.at does not exist")
        if array.dtype.name not in SCATTERING[self.__name__]:
            raise TypeError(f"cupy.{self.__name__}.at only supports {', '.join(SCATTERING[self.__name__])}")
        self._ufunc.at(bare(array), bare(indices), bare(values))


class StrictModule(types.ModuleType):
    """NumPy's names, for strict arrays."""

    def __init__(self, name: str, source: Any) -> None:
        super().__init__(name)
        self._source = source

    def __getattr__(self, name: str) -> Any:
        path = f"{self.__name__}.{name}".partition(".")[2]
        if name in MISSING or cupy_contract.lacks(path):
            raise AttributeError(f"{name}: CuPy has no such function; use one that both modules have")
        found = getattr(self._source, name)
        if isinstance(found, numpy.ufunc):
            found = StrictUfunc(found)
        elif isinstance(found, types.ModuleType):
            found = StrictModule(f"{self.__name__}.{name}", found)
        elif callable(found) and not isinstance(found, type):
            found = self._function(path, found)
        setattr(self, name, found)
        return found

    def _function(self, path: str, function: Any) -> Any:
        def strict_function(*args: Any, **kwargs: Any) -> Any:
            cupy_contract.check_function(path, args, kwargs)
            if path in UPLOADS and isinstance(args[0], numpy.ndarray):
                return StrictArray(numpy.array(args[0], **kwargs))
            return call(function, args, kwargs)

        strict_function.__name__ = path
        return strict_function


class StrictBackend(Backend):
    """Moves arrays to and from the strict module, explicitly, and has the special functions that CuPy has too."""

    def from_host(self, array: numpy.ndarray, index: int | None) -> StrictArray:
        return StrictArray(array.copy(order="K"))

    def to_host(self, array: StrictArray) -> numpy.ndarray:
        return array._data.copy(order="K")

    def address(self, array: StrictArray) -> int:
        return array._data.__array_interface__["data"][0]

    def part(self, owner: StrictArray, start: int, shape: Any, kind: numpy.dtype, strides: Any) -> StrictArray:
        return StrictArray(numpy.ndarray(shape, kind, flat_memory(owner._data), start, strides), owner)

    def foreign(self, array: StrictArray, count: int) -> StrictArray:
        return StrictArray(super().foreign(array._data, count))

    def is_foreign(self, owner: StrictArray) -> bool:
        return isinstance(memory_root(owner._data), memoryview)

    def special_function(self, name: str) -> Any:
        cupy_contract.check_special(name)
        function = super().special_function(name)
        return lambda *arrays: call(function, arrays, {})

    def linalg_function(self, name: str) -> Any:
        cupy_contract.check_linalg(name)
        return {"solve_triangular": solve_triangular}[name]


def solve_triangular(a: StrictArray, b: StrictArray, *, lower: bool, unit_diagonal: bool) -> Any:
    """Do what ``cupyx.scipy.linalg.solve_triangular`` does, which takes batches and divides by zeros."""
    return call(solve_triangles, (a, b, not lower, unit_diagonal), {})


strict = StrictModule("strict", numpy)
register_backend(StrictBackend("strict", strict), StrictArray)


def to_strict(array: numpy.ndarray) -> StrictArray:
    """Return a copy of a host array, with its layout, as a strict array."""
    return StrictArray(array.copy(order="K"))
