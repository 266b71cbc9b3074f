"""Writing: the structure as a pickle, and each memory as raw bytes."""

from __future__ import annotations

import io
import os
import pickle
import sys
import zipfile
from collections import OrderedDict
from typing import IO, Any, ClassVar

import numpy

from ..nn.parameter import Parameter
from ..runtime.memory import device as devices
from ..runtime.memory import dtype as dtypes
from ..runtime.memory.storage import element_strides, geometry_of, is_dense, memory_of
from ..runtime.tensor.math_bits import plain_type, share_bits
from ..runtime.tensor.tensor import Size, Tensor
from .names import (
    DEVICE,
    DTYPES,
    PARAMETER,
    PARAMETER_WITH_STATE,
    SIZE,
    STORAGES,
    SUBCLASS,
    TENSOR,
    TENSOR_CLASS,
    Foreign,
)

__all__ = ["save"]

_ALIGNMENT = 64

# It is typed as Any, because its methods for kinds of objects are not declared.
_PicklerInPython: Any = pickle._Pickler


def save(obj: Any, f: Any, *, pickle_protocol: int = 2) -> None:
    """Write an object to a file: tensors, and whatever can be pickled, state dicts above all.

    Parameters
    ----------
    f : str, path or file
        A file is opened for writing bytes.

    Raises
    ------
    RuntimeError
        If the folder is not there, or tensors view the same memory as different dtypes.

    See Also
    --------
    load, nn.Module.state_dict

    Examples
    --------
    >>> import io
    >>> import gradscope as gs
    >>> model, file = gs.nn.Linear(2, 1), io.BytesIO()
    >>> gs.save(model.state_dict(), file)
    >>> _ = file.seek(0)
    >>> list(gs.load(file))
    ['weight', 'bias']
    """
    name = "archive"
    if isinstance(f, (str, os.PathLike)):
        path = os.fspath(f)
        folder = os.path.dirname(path)
        if folder and not os.path.isdir(folder):
            raise RuntimeError(f"Parent directory {folder} does not exist.\nMake it first: os.makedirs({folder!r}).")
        name = os.path.splitext(os.path.basename(path))[0] or name
    elif not hasattr(f, "write"):
        raise AttributeError(
            f"expected 'f' to be string, path, or a file-like object with a 'write' attribute\nIt is {f!r}."
        )
    # The structure is pickled first: when that fails, a file that is there stays as it was.
    pickled = io.BytesIO()
    pickler = _Pickler(pickled, pickle_protocol)
    pickler.dump(obj)
    with zipfile.ZipFile(f, "w") as archive:
        _write(archive, f"{name}/data.pkl", pickled.getvalue())
        _write(archive, f"{name}/byteorder", sys.byteorder.encode())
        for memory in pickler.memories.values():
            _write(archive, f"{name}/data/{memory.key}", memory.content())
        _write(archive, f"{name}/version", b"3\n")


def _write(archive: zipfile.ZipFile, name: str, content: Any) -> None:
    """Write a record whose first byte is aligned, so that it can be mapped into memory."""
    info = zipfile.ZipInfo(name)
    assert archive.fp is not None
    # Before the content come a header of 30 bytes, the name, and fields, one of them for sizes beyond 2 GiB.
    start = archive.fp.tell() + 30 + len(name.encode()) + 4 + (20 if len(content) * 1.05 > zipfile.ZIP64_LIMIT else 0)
    padding = -start % _ALIGNMENT
    info.extra = b"FB" + padding.to_bytes(2, "little") + b"Z" * padding
    archive.writestr(info, content)


class _SavedMemory:
    """Memory that is to be written.

    Attributes
    ----------
    array : array
        What owns the memory; kept, so that its id stays its own.
    kind : dtype
        What the tensors see in it.
    """

    def __init__(self, key: str, array: Any, kind: dtypes.dtype) -> None:
        self.key = key
        self.array = array
        self.kind = kind
        self.count = array.nbytes // kind.itemsize
        self.location = str(devices.device_of(array))

    def content(self) -> Any:
        """Return its bytes, in the order in which they lie."""
        flat = devices.to_host(self.array).ravel(order="K")
        content: Any = flat.view(numpy.uint8)
        return memoryview(content) if flat.size else b""


class _Pickler(_PicklerInPython):
    """Pickles tensors and dtypes under PyTorch's names, and memory by number.

    The pickler that is written in C looks for each name it writes, and PyTorch may not be there.
    """

    dispatch: ClassVar[dict[Any, Any]] = dict(_PicklerInPython.dispatch)

    def __init__(self, file: IO[bytes], protocol: int) -> None:
        super().__init__(file, protocol)
        self.memories: dict[int, _SavedMemory] = {}

    def persistent_id(self, obj: Any) -> Any:
        """Return how memory is referred to."""
        if not isinstance(obj, _SavedMemory):
            return None
        return ("storage", STORAGES[obj.kind], obj.key, obj.location, obj.count)

    def _save_foreign(self, obj: Foreign) -> None:
        module, _, name = obj.path.rpartition(".")
        self.write(pickle.GLOBAL + f"{module}\n{name}\n".encode())
        self.memoize(obj)

    dispatch[Foreign] = _save_foreign

    def _save_dtype(self, obj: dtypes.dtype) -> None:
        self.save(DTYPES[obj])

    dispatch[dtypes.dtype] = _save_dtype

    def reducer_override(self, obj: Any) -> Any:
        """Return how a tensor, a size or a device is made again."""
        if isinstance(obj, Tensor):
            return self._reduced(obj) if type(obj).__reduce_ex__ is Tensor.__reduce_ex__ else NotImplemented
        if type(obj) is Size:
            return SIZE, (tuple(obj),)
        if type(obj) is devices.device:
            return DEVICE, (obj.type,) if obj.index is None else (obj.type, obj.index)
        if type(obj) is OrderedDict and "__orig_class__" in obj.__dict__:
            # A table of hooks; which type its maker has declared is of no use in a file.
            attributes = {name: value for name, value in obj.__dict__.items() if name != "__orig_class__"}
            return OrderedDict, (), attributes or None, None, iter(obj.items())
        return NotImplemented

    def _reduced(self, tensor: Tensor) -> tuple[Any, ...]:
        attributes = tensor.__dict__ or None
        memory, offset, strides = self._place(tensor._memory)
        # In the place of hooks, which are not saved, PyTorch has an ordered dict without entries.
        plain: Any = (memory, offset, tuple(tensor.shape), strides, tensor.requires_grad, OrderedDict())
        bits = {name: True for name, is_set in (("conj", tensor._conjugated), ("neg", tensor._negated)) if is_set}
        if bits:
            plain = (*plain, bits)
        kind = plain_type(tensor)
        if kind is Parameter:
            data = share_bits(Tensor._wrap(tensor._memory), tensor)
            if attributes is None:
                return PARAMETER, (data, tensor.requires_grad, OrderedDict())
            return PARAMETER_WITH_STATE, (data, tensor.requires_grad, OrderedDict(), dict(attributes))
        if kind is Tensor and attributes is None:
            return TENSOR, plain
        return SUBCLASS, (TENSOR, TENSOR_CLASS if kind is Tensor else kind, plain, dict(attributes or {}))

    def _place(self, array: Any) -> tuple[_SavedMemory, int, tuple[int, ...]]:
        """Return the memory of `array`, its offset and strides there, in elements."""
        kind, owner = dtypes.BY_NUMPY[array.dtype], memory_of(array)
        size = kind.itemsize
        apart = 0 if array.size == 0 else devices.address(array) - devices.address(owner)
        if not is_dense(owner) or owner.nbytes % size or apart % size or any(step % size for step in array.strides):
            # A tensor that cannot be described as elements of one memory is saved by itself.
            array = owner = array.copy()
        memory = self.memories.get(id(owner))
        if memory is None:
            memory = self.memories[id(owner)] = _SavedMemory(str(len(self.memories)), owner, kind)
        if memory.kind is not kind:
            raise RuntimeError(
                "Cannot save multiple tensors or storages that view the same data as different types\n"
                f"They see {memory.kind.name} and {kind.name}: clone() one of them."
            )
        return memory, geometry_of(array, owner)[2], element_strides(array)
