"""The two unpicklers, for a trusted source and for any, and the names that a pickle from anywhere may use."""

from __future__ import annotations

import io
import math
import pickle
import pickletools
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Any, ClassVar, NoReturn

from ..nn.parameter import Parameter, UninitializedBuffer, UninitializedParameter
from ..runtime import state as modes
from ..runtime.memory import device as devices
from ..runtime.memory import dtype as dtypes
from ..runtime.memory.storage import strided_view
from ..runtime.tensor.math_bits import mark
from ..runtime.tensor.tensor import Size, Tensor
from .names import DEVICE, DTYPES, PARAMETER, PARAMETER_WITH_STATE, SIZE, STORAGES, SUBCLASS, TENSOR, TENSOR_CLASS

__all__ = ["add_safe_globals", "clear_safe_globals", "get_safe_globals", "safe_globals"]


class Memory:
    """Memory that was read: a flat array, and the first tensor that views it."""

    __slots__ = ("array", "first")

    def __init__(self, array: Any) -> None:
        self.array = array
        self.first: Tensor | None = None


def _rebuild_tensor(
    memory: Memory, offset: int, size: Any, stride: Any, requires_grad: bool, hooks: Any = None, metadata: Any = None
) -> Tensor:
    if not isinstance(memory, Memory):
        raise pickle.UnpicklingError("a tensor in the pickle has no memory\nThe file is damaged.")
    last = offset + sum((count - 1) * step for count, step in zip(size, stride, strict=True))
    if min((offset, *size, *stride)) < 0 or (math.prod(size) and last >= memory.array.size):
        raise pickle.UnpicklingError(
            f"a tensor of size {list(size)}, stride {list(stride)} and offset {offset} does not lie within its memory "
            f"of {memory.array.size} elements\nThe file is damaged."
        )
    tensor = Tensor._wrap(strided_view(memory.array, (tuple(size), tuple(stride), offset)))
    if metadata:
        mark(tensor, *_bits(metadata, tensor.is_complex()))
    if memory.first is None:
        memory.first = tensor
    else:
        tensor._vc = memory.first._counter()
    return tensor.requires_grad_() if requires_grad else tensor


def _bits(metadata: Any, is_complex: bool) -> tuple[bool, bool]:
    """Return the conjugate and the negative bit that a tensor was saved with."""
    known = {"conj", "neg"} if is_complex else {"neg"}
    if not isinstance(metadata, dict) or not metadata.keys() <= known:
        raise pickle.UnpicklingError(f"a tensor in the pickle has metadata {metadata!r}, which is not known here")
    return bool(metadata.get("conj")), bool(metadata.get("neg"))


def _rebuild_parameter(data: Tensor, requires_grad: bool, hooks: Any, attributes: Any = None) -> Parameter:
    parameter = Parameter(data, requires_grad)
    parameter.__dict__.update(attributes or {})
    return parameter


def _rebuild_subclass(function: Any, kind: Any, args: Any, attributes: Any) -> Tensor:
    if function is not _rebuild_tensor or not issubclass(kind, Tensor) or not isinstance(attributes, dict):
        raise pickle.UnpicklingError(f"a tensor of type {kind} is saved in a way that is not known here")
    tensor = _rebuild_tensor(*args)
    if kind is not Tensor:
        flags = tensor._flags & modes.GRAD
        tensor = kind._sharing(tensor)
        tensor._flags |= flags
    tensor.__dict__.update(attributes)
    return tensor


def _encode(text: str, encoding: str) -> bytes:
    """Return bytes, which protocol 2 keeps as a text of as many letters."""
    if encoding not in ("latin1", "latin-1"):
        raise pickle.UnpicklingError(f"bytes in the pickle are encoded as {encoding!r}\nThe file is damaged.")
    return text.encode("latin1")


def _bytes(*parts: Any) -> bytes:
    """Return bytes of what a pickle holds; of a number, ``bytes`` would make as many zeros."""
    return bytes(*_no_number(parts))


def _bytearray(*parts: Any) -> bytearray:
    return bytearray(*_no_number(parts))


def _no_number(parts: tuple[Any, ...]) -> tuple[Any, ...]:
    if not all(isinstance(part, (str, bytes, list)) for part in parts):
        raise pickle.UnpicklingError(f"bytes in the pickle are made of {parts!r:.80}\nThe file is damaged.")
    return parts


KNOWN: dict[str, Any] = {
    **{name.path: d for d, name in DTYPES.items()},
    **{name.path: d for d, name in STORAGES.items()},
    "torch.UntypedStorage": dtypes.uint8,
    "torch.storage.UntypedStorage": dtypes.uint8,
    TENSOR.path: _rebuild_tensor,
    PARAMETER.path: _rebuild_parameter,
    PARAMETER_WITH_STATE.path: _rebuild_parameter,
    SUBCLASS.path: _rebuild_subclass,
    TENSOR_CLASS.path: Tensor,
    SIZE.path: Size,
    DEVICE.path: devices.device,
    "torch.nn.parameter.UninitializedParameter": UninitializedParameter,
    "torch.nn.parameter.UninitializedBuffer": UninitializedBuffer,
}

_PLAIN: dict[str, Any] = {
    "collections.OrderedDict": OrderedDict,
    "collections.Counter": Counter,
    "_codecs.encode": _encode,
    "gradscope.nn.parameter.UninitializedParameter": UninitializedParameter,
    "gradscope.nn.parameter.UninitializedBuffer": UninitializedBuffer,
    **{
        f"{module}.{name}": kind
        for module in ("builtins", "__builtin__")
        for name, kind in (("set", set), ("complex", complex), ("bytes", _bytes), ("bytearray", _bytearray))
    },
}

_CALLED = (
    _rebuild_tensor, _rebuild_parameter, _rebuild_subclass, _encode, Size, devices.device, OrderedDict, Counter, set,
    complex, _bytes, _bytearray, UninitializedParameter, UninitializedBuffer,
)  # fmt: skip
"""What a pickle may call, of all that it may name."""

_safe: dict[str, Any] = {}


def add_safe_globals(safe_globals: list[Any]) -> None:
    """Let :func:`load` with ``weights_only=True`` read and call these classes and functions.

    Parameters
    ----------
    safe_globals : list
        Classes and functions, or pairs of one and the dotted name under which files have it.

    See Also
    --------
    safe_globals : for a block.
    get_safe_globals : what has been added.
    clear_safe_globals : takes it back.

    Examples
    --------
    >>> import gradscope as gs
    >>> from fractions import Fraction
    >>> gs.serialization.add_safe_globals([Fraction])
    >>> gs.serialization.get_safe_globals()
    [<class 'fractions.Fraction'>]
    >>> gs.serialization.clear_safe_globals()
    """
    for entry in safe_globals:
        named, path = entry if isinstance(entry, tuple) else (entry, _path_of(entry))
        _safe[path] = named


def _path_of(named: Any) -> str:
    try:
        return f"{named.__module__}.{named.__qualname__}"
    except AttributeError:
        raise TypeError(
            f"a class or function is wanted, got {named!r}\nadd_safe_globals() takes a list of them."
        ) from None


def get_safe_globals() -> list[Any]:
    """Return what :func:`add_safe_globals` has added.

    See Also
    --------
    safe_globals

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.serialization.get_safe_globals()
    []
    """
    return list(_safe.values())


def clear_safe_globals() -> None:
    """Take back all that :func:`add_safe_globals` has added.

    See Also
    --------
    add_safe_globals : adds.

    Examples
    --------
    >>> import gradscope as gs
    >>> from fractions import Fraction
    >>> gs.serialization.add_safe_globals([Fraction])
    >>> gs.serialization.clear_safe_globals()
    >>> gs.serialization.get_safe_globals()
    []
    """
    _safe.clear()


@contextmanager
def safe_globals(safe_globals: list[Any]) -> Iterator[None]:
    """Have :func:`add_safe_globals` hold for the length of a block.

    See Also
    --------
    get_safe_globals, load

    Examples
    --------
    >>> import gradscope as gs
    >>> class Point:
    ...     pass
    >>> with gs.serialization.safe_globals([Point]):
    ...     print(len(gs.serialization.get_safe_globals()))
    1
    """
    before = dict(_safe)
    add_safe_globals(safe_globals)
    try:
        yield
    finally:
        _safe.clear()
        _safe.update(before)


# It is typed as Any, because its methods for the instructions are not declared.
_UnpicklerInPython: Any = pickle._Unpickler


_KEYS = 16
"""How often what is hashed may be looked at, in times of the pickle's bytes: one key has parts that stand elsewhere."""


class Unpickler(pickle.Unpickler):
    """Reads anything; what is PyTorch's own is read as ours, where there is such a thing."""

    def __init__(self, file: IO[bytes], memory: Callable[[Any], Memory]) -> None:
        super().__init__(file)
        self._memory = memory

    def persistent_load(self, pid: Any) -> Memory:
        """Return memory."""
        return self._memory(pid)

    def find_class(self, module: str, name: str) -> Any:
        """Return what the pickle names."""
        path = f"{module}.{name}"
        if path in KNOWN:
            return KNOWN[path]
        if module.partition(".")[0] == "torch":
            raise pickle.UnpicklingError(
                f"the file holds {path}, an object of PyTorch itself\nIn PyTorch, save the state_dict() instead."
            )
        return super().find_class(module, name)


class SafeUnpickler(_UnpicklerInPython):
    """Reads what is harmless: it names, calls and sets attributes of nothing that is not listed.

    The unpickler that is written in C does not say what it calls, nor whose attributes it sets.
    """

    dispatch: ClassVar[dict[int, Callable[..., None]]] = dict(_UnpicklerInPython.dispatch)

    def __init__(self, file: io.BytesIO, memory: Callable[[Any], Memory]) -> None:
        super().__init__(file)
        self._pickled = file.getvalue()
        self._memory = memory
        self._user = set(map(id, _safe.values()))
        self._hashed = _KEYS * (len(self._pickled) + 1)

    def persistent_load(self, pid: Any) -> Memory:
        """Return memory."""
        return self._memory(pid)

    def find_class(self, module: str, name: str) -> Any:
        """Return what the pickle names, if it is allowed."""
        path = f"{module}.{name}"
        for table in (KNOWN, _PLAIN, _safe):
            if path in table:
                return table[path]
        raise _refused(path, self._pickled)

    def _may_call(self, function: Any) -> bool:
        return id(function) in self._user or any(function is known for known in _CALLED)

    def load_reduce(self) -> None:
        """Call what is allowed to be called."""
        args, function = self.stack.pop(), self.stack[-1]
        if not self._may_call(function):
            raise pickle.UnpicklingError(f"Weights only load failed: the pickle calls {function!r}\nIt may be harmful.")
        if function in (set, Counter, OrderedDict):
            self._afford(args)
        self.stack[-1] = function(*args)

    def load_newobj(self) -> None:
        """Make an instance of a class that is allowed."""
        args, kind = self.stack.pop(), self.stack.pop()
        if not (isinstance(kind, type) and self._may_call(kind)):
            raise pickle.UnpicklingError(f"Weights only load failed: the pickle makes {kind!r}\nIt may be harmful.")
        self.append(kind.__new__(kind, *args))

    def load_build(self) -> None:
        """Set attributes of an instance whose class is allowed."""
        attributes, instance = self.stack[-1], self.stack[-2]
        if type(instance) is OrderedDict and isinstance(attributes, dict):
            self.stack.pop()
            instance.__dict__.update(attributes)
        elif id(type(instance)) in self._user:
            super().load_build()
        else:
            raise pickle.UnpicklingError(
                f"Weights only load failed: the pickle sets attributes of {type(instance)}\nIt may be harmful."
            )

    def load_setitem(self) -> None:
        """Put one item into a dictionary."""
        value, key = self.stack.pop(), self.stack.pop()
        self._set_items([key, value])

    def load_setitems(self) -> None:
        """Put items into a dictionary."""
        self._set_items(self.pop_mark())

    def load_dict(self) -> None:
        """Make a dictionary of items."""
        items = self.pop_mark()
        self.append({})
        self._set_items(items)

    def load_additems(self) -> None:
        """Put items into a set."""
        items = self.pop_mark()
        if type(self.stack[-1]) is not set:
            self._load_refused()
        self._afford(items)
        self.stack[-1].update(items)

    def load_frozenset(self) -> None:
        """Make a set that cannot be changed."""
        items = self.pop_mark()
        self._afford(items)
        self.append(frozenset(items))

    def load_bytearray8(self) -> None:
        """Read bytes, of which there are as many as the pickle has."""
        count = int.from_bytes(self.read(8), "little")
        if count > len(self._pickled):
            raise pickle.UnpicklingError(f"the pickle claims to hold {count} bytes\nThe file is damaged.")
        self.append(bytearray(self.read(count)))

    def _set_items(self, items: list[Any]) -> None:
        table = self.stack[-1]
        if not isinstance(table, dict):
            self._load_refused()
        self._afford(items[::2])
        for at in range(0, len(items), 2):
            table[items[at]] = items[at + 1]

    def _afford(self, keys: Any) -> None:
        """Raise where it would take for ever to hash keys: tuples that hold one tuple twice, and so on, many deep."""
        inside = [iter(keys)]
        while inside:
            for key in inside[-1]:
                self._hashed -= 1
                if self._hashed < 0:
                    raise pickle.UnpicklingError("keys in the pickle are without end\nIt is made to harm, or damaged.")
                if isinstance(key, (tuple, list)):
                    inside.append(iter(key))
                    break
            else:
                inside.pop()

    def _load_refused(self) -> NoReturn:
        raise pickle.UnpicklingError(
            "Weights only load failed: the pickle has an instruction that no state dict needs\nIt may be harmful."
        )

    dispatch[pickle.REDUCE[0]] = load_reduce
    dispatch[pickle.SETITEM[0]] = load_setitem
    dispatch[pickle.SETITEMS[0]] = load_setitems
    dispatch[pickle.DICT[0]] = load_dict
    dispatch[pickle.ADDITEMS[0]] = load_additems
    dispatch[pickle.FROZENSET[0]] = load_frozenset
    dispatch[pickle.BYTEARRAY8[0]] = load_bytearray8
    dispatch[pickle.NEWOBJ[0]] = load_newobj
    dispatch[pickle.BUILD[0]] = load_build
    for _code in (
        pickle.PERSID, pickle.INST, pickle.OBJ, pickle.EXT1, pickle.EXT2, pickle.EXT4, pickle.NEWOBJ_EX,
        pickle.NEXT_BUFFER, pickle.READONLY_BUFFER,
    ):  # fmt: skip
        dispatch[_code[0]] = _load_refused
    del _code


def _refused(path: str, pickled: bytes) -> pickle.UnpicklingError:
    """Return the error for a name that is not allowed; it tells the others too."""
    named = [str(arg).replace(" ", ".") for code, arg, _ in pickletools.genops(pickled) if code.name == "GLOBAL"]
    others = sorted({name for name in named if not any(name in table for table in (KNOWN, _PLAIN, _safe))} - {path})
    also = f" (and {', '.join(others)})" if others else ""
    if path.startswith("torch."):
        advice = "It is an object of PyTorch itself: in PyTorch, save the state_dict() instead."
    else:
        advice = (
            "If you trust the source of the file, allow it by gradscope.serialization.add_safe_globals([...]), or pass "
            "weights_only=False, with which the file may run any code."
        )
    return pickle.UnpicklingError(
        f"Weights only load failed. The file refers to {path}{also}, which is not allowed by default.\n{advice}"
    )
