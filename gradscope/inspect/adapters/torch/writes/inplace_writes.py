"""Writes into tensors, as a dispatch mode sees them: the schema of each operator tells which arguments it writes."""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch.utils import _python_dispatch as dispatch

from .....runtime.call_sites import CallSite
from ....records.records import Location
from ...native_adapter import location_of
from ..operator_calls import COMPILED, operator_word, tensors_in

__all__ = ["PURE", "SHARING", "TorchShare", "TorchWrite", "WriteMode", "called", "given_to_write", "may_write"]

SHARING: dict[Any, str] = {
    torch.Tensor.data.__get__: ".data",
    torch.Tensor.data.__set__: ".data =",
    torch.Tensor.numpy: "numpy()",
    torch.Tensor.__array__: "numpy()",
    torch.Tensor.__dlpack__: "__dlpack__()",
}
"""What hands out memory so that it can be written without a version being counted, as a function mode sees it."""


class TorchWrite:
    """A tensor that has been written in place."""

    __slots__ = ("grad_enabled", "operator", "site", "tensor", "version")

    def __init__(
        self, tensor: torch.Tensor, operator: str, version: int, grad_enabled: bool, site: CallSite | None = None
    ) -> None:
        self.tensor, self.operator, self.version = tensor, operator, version
        self.grad_enabled, self.site = grad_enabled, site

    @property
    def requires_grad(self) -> bool:
        """Whether the tensor does."""
        with torch._C.DisableTorchFunction():
            return self.tensor.requires_grad

    @property
    def location(self) -> Location | None:
        """The user's line that wrote it."""
        return location_of(self.site)


class TorchShare:
    """The memory of a tensor handed to where writes count no version of its own."""

    def __init__(self, tensor: torch.Tensor, storage: torch.UntypedStorage, how: str, site: CallSite) -> None:
        self.tensor, self.how = tensor, how
        # PyTorch gives a storage one object in Python, which lives as long as the storage.
        self.memory = weakref.ref(storage)
        self._site = site

    @property
    def location(self) -> Location | None:
        """The user's line that asked for it."""
        return location_of(self._site)


class WriteMode(dispatch.TorchDispatchMode):
    """Tells of every write below autograd.

    Parameters
    ----------
    tell : callable
        Called with a :class:`TorchWrite`.
    failed : callable
        Called with an error of its own.

    Attributes
    ----------
    announce : callable or None
        Called with each tensor that is about to be written, where somebody wants to know.
    """

    def __init__(self, tell: Callable[[TorchWrite], None], failed: Callable[[Exception], None]) -> None:
        super().__init__()
        self._tell = tell
        self._failed = failed
        self.announce: Callable[[torch.Tensor], None] | None = None

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Carry out the operator, and tell what it has written."""
        kwargs = kwargs or {}
        # Function modes are above autograd: inside a backward they would be told of this call of the engine's.
        with torch._C.DisableTorchFunction():
            slots: tuple[tuple[int, str], ...] = ()
            try:
                slots = written_slots(func)
                if slots and self.announce is not None:
                    for tensor in _at(slots, args, kwargs):
                        self.announce(tensor)
            except Exception as error:
                self._failed(error)
            try:
                result = func(*args, **kwargs)
            except RuntimeError:
                tensors = _unwrapped(func, args)
                if tensors is None:
                    raise
                result = func(*tensors, **kwargs)
            try:
                if slots:
                    self._written(func, list(_at(slots, args, kwargs)))
            except Exception as error:
                self._failed(error)
        return result

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # PyTorch would wrap each call twice to keep torch.compile out, which a mode keeps out by being on.
        return False

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        """Whether what torch.compile has compiled runs as it is: the mode hears of what is around it."""
        return True

    def _written(self, func: Any, tensors: list[torch.Tensor]) -> None:
        name = func._schema.name.rpartition("::")[2]
        uncounted = name.startswith(("_foreach_", "_fused_"))
        if uncounted:
            # A mode keeps PyTorch from counting these writes, which would hide them from its own version check.
            for tensor in tensors:
                if not tensor.is_inference():
                    torch.autograd.graph.increment_version(tensor)
        for tensor in tensors:
            if tensor.is_inference():
                continue
            # The others are counted when this returns.
            self._tell(TorchWrite(tensor, name, tensor._version + (not uncounted), torch.is_grad_enabled()))

    def take_off(self) -> None:
        """Leave the mode wherever it stands on this thread's stack."""
        above = []
        while (top := dispatch._get_current_dispatch_mode()) is not None:
            if top is self:
                self.__exit__(None, None, None)
                break
            above.append(dispatch._pop_mode())
        for other in reversed(above):
            dispatch._push_mode(other)


# What decides whether a call writes, by the function: the places and names of arguments; None where it is not known.
_deciding: dict[Any, tuple[tuple[int, str], ...] | None] = {}
PURE: set[Any] = set()
"""Functions of PyTorch's that write nothing, but to what stands at ``out=``, and hand out no memory, once met."""
_SETTERS = ("__set__", "__delete__")
_TOLD_TO_WRITE = ("inplace", "max_norm", "out")
_STATISTICS = "running_mean"


def may_write(func: Any, args: Sequence[Any], kwargs: Any) -> bool:
    """Whether a call may write tensors that were there before: true of all that is not known not to.

    Parameters
    ----------
    func : callable
        As a function mode is given it.

    Examples
    --------
    >>> x = torch.ones(2)
    >>> may_write(torch.sin, (x,), None), may_write(torch.sin, (x,), {"out": x}), may_write(torch.sin_, (x,), None)
    (False, True, True)
    >>> relu = torch.nn.functional.relu
    >>> may_write(relu, (x,), {"inplace": False}), may_write(relu, (x,), {"inplace": True})
    (False, True)
    """
    if kwargs and kwargs.get("out") is not None:
        return True
    if isinstance(func, torch._ops.OpOverload):
        return bool(written_slots(func))
    try:
        deciding = _deciding[func]
    except (KeyError, TypeError):  # it may have no hash
        deciding = _look_up(func)
    if not deciding:
        return deciding is None
    given = kwargs or {}
    return any(args[place] if place < len(args) else given.get(name) for place, name in deciding)


def _look_up(func: Any) -> tuple[tuple[int, str], ...] | None:
    name = getattr(func, "__name__", "")
    known: tuple[tuple[int, str], ...] | None
    if type(func) in COMPILED:
        pure = name == "__get__" or (name not in _SETTERS and _is_pure(operator_word(func)))
        known = () if pure else None
    elif getattr(func, "__module__", "") in ("torch._tensor", "torch.functional"):
        known = () if _is_pure(operator_word(func)) else None
    elif getattr(func, "__module__", "") == torch.nn.functional.__name__:
        known = _told_to_write(func)
    else:  # it may be the program's own, of which nothing is kept
        return None
    _deciding[func] = known
    if known == () and func not in SHARING:
        PURE.add(func)
    return known


def _is_pure(operator: str) -> bool:
    """Whether no overload of an operator of PyTorch's own writes an argument, but for what stands at ``out=``."""
    schemas = torch._C._jit_get_schemas_for_operator(f"aten::{operator}")
    arguments = [argument for schema in schemas for argument in schema.arguments]
    return bool(schemas) and not any(
        argument.name == _STATISTICS
        or (not argument.kwarg_only and argument.alias_info is not None and argument.alias_info.is_write)
        for argument in arguments
    )


def _told_to_write(func: Any) -> tuple[tuple[int, str], ...] | None:
    """Return the arguments that tell a function of ``torch.nn.functional`` to write; None where it does by itself."""
    names = list(inspect.signature(func).parameters)
    if func.__name__.endswith("_") or _STATISTICS in names:
        return None
    return tuple([(names.index(name), name) for name in _TOLD_TO_WRITE if name in names])


def called(func: Any) -> str:
    """Return how a call that writes is named: an augmented assignment is that of its method.

    Parameters
    ----------
    func : callable
        As a function mode is given it.

    Examples
    --------
    >>> called(torch.Tensor.__iadd__), called(torch.Tensor.mul_)
    ('add_', 'mul_')
    """
    name: str = getattr(func, "__name__", "")
    return f"{name[3:-2]}_" if name.startswith("__i") and name.endswith("__") else name


def given_to_write(func: Any, args: Sequence[Any], kwargs: Any) -> Iterator[torch.Tensor]:
    """Yield what a call writes besides its first argument: what stands at ``out=``, and lists of ``_foreach``.

    Parameters
    ----------
    func : callable
        As a function mode is given it.
    """
    given = [] if not kwargs or kwargs.get("out") is None else [kwargs["out"]]
    if args and isinstance(args[0], (list, tuple)):
        name: str = getattr(func, "__name__", "")
        if "_foreach_" in name and name.endswith("_"):
            given.append(args[0])
    return tensors_in(given)


# The key is the operator's identity, since its hash is a Python function; the operator is kept, so the identity is
# nobody else's.
_slots: dict[int, tuple[Any, tuple[tuple[int, str], ...]]] = {}


def written_slots(func: Any) -> tuple[tuple[int, str], ...]:
    """Return (place, name) of the arguments that an operator writes."""
    known = _slots.get(id(func))
    if known is None:
        arguments = enumerate(func._schema.arguments)
        written = tuple((i, a.name) for i, a in arguments if a.alias_info is not None and a.alias_info.is_write)
        known = _slots[id(func)] = func, written
    return known[1]


def _unwrapped(func: Any, args: Sequence[Any]) -> list[Any] | None:
    """Return arguments with tensors where PyTorch has handed numbers to a mode for them; None if there are none.

    It does so with what it has made of a number itself, as the constants of a graph that torch.jit.trace() prints, and
    takes the number for a tensor in few operators.
    """
    places = [i for i, a in enumerate(func._schema.arguments[: len(args)]) if str(a.type) == "Tensor"]
    wrapped = {i for i in places if isinstance(args[i], (bool, int, float, complex))}
    return [torch.tensor(a) if i in wrapped else a for i, a in enumerate(args)] if wrapped else None


def _at(slots: tuple[tuple[int, str], ...], args: Any, kwargs: Any) -> Iterator[torch.Tensor]:
    for place, name in slots:
        yield from tensors_in(args[place] if place < len(args) else kwargs.get(name))
