"""Reading: the records of an archive, and the objects in its pickle."""

from __future__ import annotations

import io
import os
import pickle
import sys
import zipfile
from typing import IO, Any

import numpy

from ..runtime.memory import device as devices
from ..runtime.memory import dtype as dtypes
from ..runtime.memory.bfloat16 import marked
from ..runtime.memory.storage import Storage
from .unpickler import Memory, SafeUnpickler, Unpickler
from .untrusted_archive import damaged, open_archive

__all__ = ["load"]


def load(
    f: Any,
    map_location: Any = None,
    *,
    weights_only: bool | None = True,
    mmap: bool | None = False,
    max_bytes: int | None = None,
) -> Any:
    """Read an object that :func:`save`, or PyTorch's ``torch.save``, has written.

    Parameters
    ----------
    map_location : device, str, dict or callable, optional
        Where tensors go: a device for all of them; for each device that was saved another one; or
        ``function(storage, location)``, which returns the storage to take, or None.
    weights_only : bool
        Read only tensors, containers, numbers, texts, dtypes, and what :func:`add_safe_globals` names. Otherwise the
        file may run any code: for files from a source that you trust.
    mmap : bool
        Map the file into memory instead of reading it: pages are read as they are used. What is written into the
        tensors stays in this process.
    max_bytes : int, optional
        How many bytes the file may unpack to; 16 times what it takes, and 64 MiB, by default. What :func:`save` and
        ``torch.save`` write is not compressed, and takes no more than the file.

    Raises
    ------
    pickle.UnpicklingError
        If the file refers to something that is not allowed, or is no checkpoint.
    RuntimeError
        If the file is damaged, would unpack to more than it may, or a device that it names is not there.

    See Also
    --------
    save, nn.Module.load_state_dict

    Examples
    --------
    >>> import gradscope as gs
    >>> import io
    >>> file = io.BytesIO()
    >>> gs.save({"w": gs.ones(2)}, file)
    >>> _ = file.seek(0)
    >>> gs.load(file)
    {'w': tensor([1., 1.])}
    """
    if isinstance(f, (str, os.PathLike)):
        with open(f, "rb") as file:
            return _load(file, os.fspath(f), map_location, weights_only is not False, bool(mmap), max_bytes)
    if mmap:
        raise ValueError("f must be a file path in order to use the mmap argument")
    if not (hasattr(f, "read") and hasattr(f, "seek")):
        raise AttributeError(
            f"'{type(f).__name__}' object has no attribute 'seek'. You can only load from a file that is seekable."
            "\nPass a path, or read the data into an io.BytesIO."
        )
    return _load(f, None, map_location, weights_only is not False, False, max_bytes)


def _load(file: IO[bytes], path: Any, map_location: Any, safe: bool, mapped: bool, max_bytes: int | None) -> Any:
    name = str(path if path is not None else getattr(file, "name", "the file"))
    archive = open_archive(file, name, max_bytes)
    with archive:
        reader = _Reader(archive, name, map_location, path if mapped else None)
        pickled = reader.record("data.pkl")
        if not safe:
            return Unpickler(io.BytesIO(pickled), reader.memory).load()
        try:
            return SafeUnpickler(io.BytesIO(pickled), reader.memory).load()
        except (pickle.UnpicklingError, RuntimeError):
            raise
        except Exception as error:
            raise pickle.UnpicklingError(
                f"Weights only load failed: the pickle in {name} is damaged ({type(error).__name__}: {error})\n"
                "Copy or download the file again."
            ) from None


class _Reader:
    """The records of an archive, each memory of it read once."""

    def __init__(self, archive: zipfile.ZipFile, name: str, map_location: Any, mapped: Any) -> None:
        self._archive = archive
        self._name = name
        self._map_location = map_location
        self._mapped = mapped
        self._memories: dict[str, Memory] = {}
        names = archive.namelist()
        found = [record for record in names if record.endswith("/data.pkl") and record.count("/") == 1]
        if len(found) != 1:
            raise RuntimeError(f"{name} is a zip file, but no checkpoint\nIt has no record data.pkl.")
        self._root = found[0].removesuffix("data.pkl")
        if f"{self._root}constants.pkl" in names:
            raise RuntimeError(f"{name} is a TorchScript archive\nSave the state_dict() of the module in PyTorch.")
        order = self.record("byteorder").decode() if f"{self._root}byteorder" in names else "little"
        self._swapped = order != sys.byteorder

    def record(self, name: str) -> bytes:
        """Return the bytes of a record."""
        try:
            return self._archive.read(self._root + name)
        except Exception:  # the entry is missing or has a wrong checksum, or a damaged header raises anything
            raise damaged(self._name, f"record {name} is missing or damaged") from None

    def memory(self, reference: Any) -> Memory:
        """Return the memory that the pickle refers to."""
        kind, key, location, count = _reference(reference)
        memory = self._memories.get(key)
        if memory is None:
            self._check_size(key, count * kind.itemsize)
            array = self._mapped_array(key, kind) if self._mapped is not None else self._array(key, kind)
            if self._swapped:
                array = array.byteswap()
            memory = self._memories[key] = Memory(_moved(marked(array), location, self._map_location))
        return memory

    def _check_size(self, key: str, wanted: int) -> None:
        """Raise, before anything is unpacked, unless a record is as large as the pickle says that its memory is."""
        try:
            size = self._archive.getinfo(f"{self._root}data/{key}").file_size
        except KeyError:
            raise damaged(self._name, f"record data/{key} is missing") from None
        if size != wanted:
            raise damaged(self._name, f"record data/{key} has {size} bytes, not the {wanted} that the pickle tells of")

    def _array(self, key: str, kind: dtypes.dtype) -> Any:
        # This is a copy, because tensors are written into.
        return numpy.frombuffer(self.record(f"data/{key}"), dtype=kind.numpy).copy()

    def _mapped_array(self, key: str, kind: dtypes.dtype) -> Any:
        info = self._archive.getinfo(f"{self._root}data/{key}")
        if not info.file_size or info.compress_type != zipfile.ZIP_STORED:
            return self._array(key, kind)
        assert self._archive.fp is not None
        self._archive.fp.seek(info.header_offset + 26)
        lengths = self._archive.fp.read(4)
        start = info.header_offset + 30 + int.from_bytes(lengths[:2], "little") + int.from_bytes(lengths[2:], "little")
        count = info.file_size // kind.itemsize
        return numpy.memmap(self._mapped, kind.numpy, "c", start, (count,)).view(numpy.ndarray)


def _reference(reference: Any) -> tuple[dtypes.dtype, str, str, int]:
    """Return dtype, number, place and count of elements of the memory that a pickle refers to."""
    if isinstance(reference, tuple) and len(reference) == 5:
        word, kind, key, location, count = reference
        types = tuple(map(type, (kind, key, location, count)))
        if word == "storage" and types == (dtypes.dtype, str, str, int):
            return kind, key, location, count
    raise pickle.UnpicklingError(f"the pickle refers to memory by {reference!r}\nThe file is damaged.")


def _moved(array: Any, location: str, map_location: Any) -> Any:
    """Return memory on the device that it was saved from, or that `map_location` says."""
    if callable(map_location):
        storage = map_location(Storage(array), location)
        if storage is not None:
            return storage._array
    elif isinstance(map_location, dict):
        location = str(map_location.get(location, location))
    elif map_location is not None:
        location = str(devices.device("cuda", map_location) if isinstance(map_location, int) else map_location)
    try:
        return devices.to_device(array, location)
    except RuntimeError as error:
        if location.startswith("cuda"):
            raise RuntimeError(
                "Attempting to deserialize object on a CUDA device but CUDA is not available. If you are running on a "
                "CPU-only machine, please use gradscope.load with map_location=gradscope.device('cpu') to map your "
                f"storages to the CPU.\n{error}"
            ) from None
        raise RuntimeError(
            f"don't know how to restore data location of storage (tagged with {location})\nPass map_location='cpu'."
        ) from None
