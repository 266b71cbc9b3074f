"""Devices and array modules: the one place that knows them, and the one that imports CuPy.

Operators take the array module as their first argument (``xp``); it comes from here, found by the type of the array.
"""

from __future__ import annotations

import ctypes
import threading
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy

from .bfloat16 import BFloat16Array, elsewhere_error, plain, write

__all__ = [
    "array_module",
    "copy_to",
    "device",
    "device_of",
    "device_of_type",
    "get_default_device",
    "register_backend",
    "set_default_device",
    "to_device",
    "to_host",
]

ndarray = numpy.ndarray


class device:  # noqa: N801 - PyTorch's name
    """A device: ``gs.device("cpu")``, ``gs.device("cuda")``, ``gs.device("cuda", 1)``.

    Parameters
    ----------
    type : str or device
        ``"cpu"``, ``"cuda"`` or ``"cuda:1"``.

    Raises
    ------
    RuntimeError
        If the string names no known device type.

    See Also
    --------
    set_default_device, Tensor.to

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.device("cpu").type
    'cpu'
    """

    __slots__ = ("index", "type")

    type: str
    index: int | None

    def __init__(self, type: str | device, index: int | None = None) -> None:
        text = str(type)
        kind, _, number = text.partition(":")
        if kind not in _backends or (number and not number.isdigit()):
            known = ", ".join(sorted(_backends))
            raise RuntimeError(f"Expected one of {known} device type at start of device string: {text}")
        self.type = kind
        self.index = int(number) if number else index

    def __enter__(self) -> device:
        """Let factories make their tensors here, where they are given no device."""
        _chosen.before.append(_chosen.device)
        _chosen.device = self
        return self

    def __exit__(self, *exc_info: object) -> None:
        _chosen.device = _chosen.before.pop()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, device) and (self.type, self.index or 0) == (other.type, other.index or 0)

    def __hash__(self) -> int:
        return hash((self.type, self.index or 0))

    def __repr__(self) -> str:
        index = "" if self.index is None else f", index={self.index}"
        return f"device(type={self.type!r}{index})"

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"


class _Chosen(threading.local):
    """The device of factories that are given none, on one thread; None is the CPU."""

    device: device | None = None

    def __init__(self) -> None:
        self.before: list[device | None] = []


_chosen = _Chosen()


def set_default_device(device: Any) -> None:
    """Set where factories make tensors that are given no device, on this thread; None is the CPU again.

    See Also
    --------
    get_default_device, set_default_dtype

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.set_default_device("cpu")
    >>> gs.get_default_device()
    device(type='cpu')
    >>> gs.set_default_device(None)
    """
    _chosen.device = None if device is None else _device(device)


def get_default_device() -> device:
    """Return where factories make tensors that are given no device.

    See Also
    --------
    set_default_device

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.get_default_device()
    device(type='cpu')
    """
    place = _chosen.device
    if place is None or place.type == "cpu" or place.index is not None:
        return CPU if place is None else place
    return device_of(module_for(place).empty(0))


def wanted(where: Any) -> Any:
    """Return the device that a factory was given, or else the default one; None is the CPU."""
    return _chosen.device if where is None else where


_device = device


class Backend:
    """The operations that the runtime asks of an array module beyond NumPy's function names."""

    compiles_cuda = False
    """Whether the module has CuPy's ``ElementwiseKernel`` and ``RawKernel``, of which kernels can be made."""

    def __init__(self, type_name: str, module: Any) -> None:
        self.type_name = type_name
        self.module = module

    def index_of(self, array: Any) -> int | None:
        """Return the ordinal of the device that holds `array`."""
        return None

    def need_current(self, index: int | None) -> None:
        """Raise if the device of this ordinal is not where arrays are made."""

    def on(self, index: int | None) -> AbstractContextManager[Any]:
        """Make the device of this ordinal the current one while a block runs."""
        return nullcontext()

    def from_host(self, array: numpy.ndarray, index: int | None) -> Any:
        """Copy a host array to this device."""
        return array.copy()

    def to_host(self, array: Any) -> numpy.ndarray:
        """Copy (or return) `array` as a host array."""
        return array

    def address(self, array: Any) -> int:
        """Return the address of the first element."""
        return array.__array_interface__["data"][0]

    def part(self, owner: Any, start: int, shape: Any, kind: numpy.dtype, strides: Any) -> Any:
        """Return an array in the memory of `owner`, from byte `start` on; strides in bytes. Host arrays have their own.

        Raises
        ------
        NotImplementedError
            If arrays of the module cannot be laid into memory.
        """
        raise NotImplementedError(f"no '{self.type_name}' array can be laid into the memory of another one")

    def owner_of(self, array: Any) -> Any:
        """Return the owner into whose memory :meth:`part` has laid `array`, which has no base; else `array` itself."""
        return array

    def foreign(self, array: Any, count: int) -> Any:
        """Return the `count` elements from the first of another program's array on as an owner of that memory."""
        elements = numpy.lib.stride_tricks.as_strided(array.view(ndarray), (count,), (array.itemsize,))
        return numpy.frombuffer(elements.view("uint8").data, array.dtype)  # its base is a memoryview, which is no array

    def is_foreign(self, owner: Any) -> bool:
        """Whether :meth:`foreign` has made `owner`: its memory is not the runtime's to grow."""
        return owner.base is not None

    def special_function(self, name: str) -> Any:
        """Return the special function `name` (``"erf"``) for arrays of the module.

        Raises
        ------
        NotImplementedError
            If there is none.
        """
        import scipy.special  # at first use: it takes longer to import than all of gradscope

        return getattr(scipy.special, name)

    def linalg_function(self, name: str) -> Any:
        """Return the function `name` of linear algebra that is not in the module's own ``linalg``.

        Host arrays have LAPACK itself (:mod:`gradscope.runtime.ops.linalg.lapack`).

        Raises
        ------
        NotImplementedError
            If there is none.
        """
        raise NotImplementedError(
            f"{name}() is not implemented for '{self.type_name}' tensors\nMove the tensor to the CPU: tensor.cpu()."
        )


class _Foreign:
    """Holds another program's array whose memory a tensor has."""

    __slots__ = ("array",)

    def __init__(self, array: Any) -> None:
        self.array = array


class CudaBackend(Backend):
    """CuPy, imported when CUDA is first asked for."""

    compiles_cuda = True

    def __init__(self) -> None:
        super().__init__("cuda", None)

    def load(self) -> CudaBackend:
        """Import CuPy and look for a device.

        Raises
        ------
        RuntimeError
            If CuPy is not installed or finds no device.
        """
        if self.module is not None:
            return self
        try:
            import cupy  # optional dependency
        except ImportError:
            raise RuntimeError(
                "CUDA is not available: gradscope needs CuPy for device='cuda'.\n"
                "Install it with: pip install 'gradscope-debugger[cuda12]' (or [cuda13], after your driver)."
            ) from None
        try:
            count = cupy.cuda.runtime.getDeviceCount()
        except cupy.cuda.runtime.CUDARuntimeError as error:
            raise RuntimeError(
                f"CUDA is not available: CuPy found no device ({error}).\n"
                "Check the driver with nvidia-smi, or use device='cpu'."
            ) from None
        if count == 0:
            raise RuntimeError("CUDA is not available: CuPy found no device.\nUse device='cpu'.")
        self.module = cupy
        _know(cupy.ndarray, self)
        return self

    def index_of(self, array: Any) -> int:
        return array.device.id

    def need_current(self, index: int | None) -> None:
        if index is None:
            return
        self.need_ordinal(index)
        current = self.module.cuda.Device().id
        if index != current:
            raise RuntimeError(
                f"gradscope computes on the current CUDA device, which is cuda:{current}, not on cuda:{index}.\n"
                f"Choose it: gradscope.cuda.set_device({index}), or `with gradscope.cuda.device({index}):`."
            )

    def need_ordinal(self, index: int) -> None:
        """Raise if there is no such device."""
        count = self.module.cuda.runtime.getDeviceCount()
        if index >= count:
            raise RuntimeError(f"CUDA error: invalid device ordinal\nThere is no cuda:{index}: CuPy finds {count}.")

    def on(self, index: int | None) -> AbstractContextManager[Any]:
        return nullcontext() if index is None else self.module.cuda.Device(index)

    def from_host(self, array: numpy.ndarray, index: int | None) -> Any:
        if type(array) is BFloat16Array:
            raise elsewhere_error()
        with self.on(index):
            return self.module.asarray(array)

    def to_host(self, array: Any) -> numpy.ndarray:
        return self.module.asnumpy(array)

    def address(self, array: Any) -> int:
        return array.data.ptr

    # CuPy gives no base to an array that is made at an address, but the memory that it is given has an owner. A view of
    # the array has it as its base: nobody takes that for an array of its own.

    def part(self, owner: Any, start: int, shape: Any, kind: numpy.dtype, strides: Any) -> Any:
        return self._laid(owner, start, shape, kind, strides, kept=owner).view()

    def owner_of(self, array: Any) -> Any:
        owner = getattr(array.data.mem, "_owner", None)
        return owner if type(owner) is type(array) else array

    def foreign(self, array: Any, count: int) -> Any:
        return self._laid(array, 0, (count,), array.dtype, (array.itemsize,), kept=_Foreign(array))

    def is_foreign(self, owner: Any) -> bool:
        return type(getattr(owner.data.mem, "_owner", None)) is _Foreign

    def _laid(self, array: Any, start: int, shape: Any, kind: numpy.dtype, strides: Any, kept: Any) -> Any:
        """Return an array that begins `start` bytes after another one, and keeps alive what owns the memory."""
        cuda, whole = self.module.cuda, array.data.mem
        memory = cuda.UnownedMemory(whole.ptr, whole.size, kept, whole.device_id)
        at = cuda.MemoryPointer(memory, array.data.ptr - whole.ptr + start)
        return self.module.ndarray(shape, kind, at, strides)

    def special_function(self, name: str) -> Any:
        import cupyx.scipy.special  # optional dependency

        return self.need_function(cupyx.scipy.special, name)

    def linalg_function(self, name: str) -> Any:
        import cupyx.scipy.linalg  # optional dependency

        return self.need_function(cupyx.scipy.linalg, name)

    def need_function(self, module: Any, name: str) -> Any:
        """Return a function of one of CuPy's modules, or raise NotImplementedError."""
        found = getattr(module, name, None)
        if found is None:
            raise NotImplementedError(
                f"{name}() is not implemented for 'cuda' tensors: CuPy has no such function.\n"
                "Move the tensor to the CPU: tensor.cpu()."
            )
        return found


_cpu = Backend("cpu", numpy)
_cuda = CudaBackend()
_backends: dict[str, Backend] = {"cpu": _cpu, "cuda": _cuda}
_by_type: dict[type, Backend] = {ndarray: _cpu, BFloat16Array: _cpu}
_modules: dict[type, Any] = {ndarray: numpy, BFloat16Array: numpy}
CPU = device("cpu")


def register_backend(backend: Backend, array_type: type) -> None:
    """Make another array module known, under ``device(backend.type_name)``.

    The tests use this for a strict stand-in that refuses host copies.
    """
    _backends[backend.type_name] = backend
    _know(array_type, backend)


# Whether there may be arrays of another module than NumPy.
elsewhere: bool = False


def _know(array_type: type, backend: Backend) -> None:
    global elsewhere
    elsewhere = True
    _by_type[array_type] = backend
    _modules[array_type] = backend.module


def array_module(array: Any) -> Any:
    """Return the module whose functions work on `array` (``numpy``, ``cupy``)."""
    try:
        return _modules[type(array)]
    except KeyError:
        return numpy


def module_of(kind: type) -> Any:
    """Return the module that makes arrays of a type."""
    return _modules[kind]


def is_array(value: Any) -> bool:
    """Whether `value` is an array of a known module."""
    return type(value) in _modules


def backend_of(array: Any) -> Backend:
    """Return the backend that holds `array`."""
    return _by_type.get(type(array), _cpu)


def device_of(array: Any) -> device:
    """Return the :class:`device` that holds `array`."""
    if type(array) is ndarray:
        return CPU
    backend = backend_of(array)
    return device(backend.type_name, backend.index_of(array))


def device_of_type(kind: type) -> device:
    """Return the device of arrays of a type, without an ordinal; that of NumPy's numbers, no arrays, is the CPU."""
    return device(_by_type.get(kind, _cpu).type_name)


def resolve(where: str | device | int | None) -> tuple[Backend, int | None]:
    """Return the loaded backend and ordinal of a device given in any of PyTorch's forms.

    Raises
    ------
    RuntimeError
        If the device is not there, or not the current one.
    """
    if where is None:
        return _cpu, None
    target = device("cuda", where) if isinstance(where, int) else device(where)
    backend = loaded(target.type)
    backend.need_current(target.index)
    return backend, target.index


def loaded(type_name: str) -> Any:
    """Return the backend of a type of device, with its module imported."""
    backend = _backends[type_name]
    return backend.load() if isinstance(backend, CudaBackend) else backend


def module_for(where: str | device | int | None) -> Any:
    """Return the array module of a device.

    Raises
    ------
    RuntimeError
        If the device is not there.
    """
    return resolve(where)[0].module


def to_host(array: Any) -> numpy.ndarray:
    """Return `array` as a NumPy array (itself when it is one)."""
    return backend_of(array).to_host(array)


def to_device(array: Any, where: str | device | int | None) -> Any:
    """Return `array` on a device: itself when it is there already, else a copy."""
    backend, index = resolve(where)
    source = backend_of(array)
    if source is backend and (index is None or source.index_of(array) in (None, index)):
        return array
    return backend.from_host(source.to_host(array), index)


def copy_to(target: Any, source: Any) -> None:
    """Write `source` (broadcast, any dtype, any device) into the array `target`."""
    if type(source) is not type(target) and is_array(source) and backend_of(source) is not backend_of(target):
        source = backend_of(target).from_host(to_host(source), backend_of(target).index_of(target))
    if getattr(source, "dtype", None) is not None and source.dtype.kind == "c" and target.dtype.kind != "c":
        source = source != 0 if target.dtype.kind == "b" else source.real
    if type(target) is BFloat16Array:
        write(target, source)
    else:
        target[...] = plain(source)


def own(array: Any) -> Any:
    """Return `array`, or a copy where NumPy may not write it: what parts of it are taken from is the caller's."""
    return array if getattr(array.flags, "writeable", True) else array.copy()  # CuPy has no such flag


_pointer_at = ctypes.c_void_p.from_address
_DATA = object.__basicsize__


def address(array: Any) -> int:
    """Return the address of the first element of `array`.

    It is the first field of NumPy's C structure, after the head of every Python object: that is read in a seventh of
    the time of ``__array_interface__``, a dictionary.
    """
    if type(array) is not ndarray:
        return backend_of(array).address(array)
    return _pointer_at(id(array) + _DATA).value or 0


def special_function(array: Any, name: str) -> Any:
    """Return the special function `name` for `array`: SciPy's, or CuPy's of the same name."""
    return backend_of(array).special_function(name)


def linalg_function(array: Any, name: str) -> Any:
    """Return the function `name` of ``cupyx.scipy.linalg``, or of another module that holds `array`."""
    return backend_of(array).linalg_function(name)


def current() -> AbstractContextManager[Any]:
    """Return the context in which another thread computes on the device that is the current one of this thread."""
    module = _cuda.module
    return nullcontext() if module is None else _cuda.on(module.cuda.Device().id)


def cuda_is_available() -> bool:
    """Whether CuPy is installed and finds a device."""
    try:
        _cuda.load()
    except RuntimeError:
        return False
    return True


def cuda_device_count() -> int:
    """Return how many CUDA devices CuPy finds (0 without CuPy)."""
    return _cuda.load().module.cuda.runtime.getDeviceCount() if cuda_is_available() else 0
