"""Operators that have run, as a function mode sees them."""

from __future__ import annotations

from collections.abc import Iterator
from types import BuiltinFunctionType, MethodDescriptorType, MethodWrapperType, WrapperDescriptorType
from typing import Any

import torch

from ....runtime.call_sites import CallSite
from ...records.records import Location
from ..native_adapter import location_of

__all__ = ["COMPILED", "TorchOperatorCall", "grad_fn_of", "made_by", "operator_told", "operator_word", "tensors_in"]

_TENSOR = torch.Tensor
_NESTING = (tuple, list, dict)


class TorchOperatorCall:
    """An operator that has run.

    Parameters
    ----------
    name : str
        As :func:`operator_told` has it.
    outputs : tuple of Tensor
        As :func:`made_by` has them.
    numbers : range
        The sequence numbers of the nodes that it has made.
    """

    __slots__ = ("_site", "grad_enabled", "inputs", "name", "node", "outputs")

    def __init__(
        self, name: str, args: Any, kwargs: Any, outputs: tuple[torch.Tensor, ...], numbers: range, site: CallSite
    ) -> None:
        self.name = name
        found: list[torch.Tensor] = []
        for value in (*args, *kwargs.values()) if kwargs else args:
            if isinstance(value, _TENSOR):
                found.append(value)
            elif isinstance(value, _NESTING):
                found += tensors_in(value)
        self.inputs = tuple(found)
        self.outputs = outputs
        self.node = None
        for output in outputs if numbers else ():
            node = grad_fn_of(output)
            if node is not None and node._sequence_nr() in numbers:
                self.node = node
                break
        self.grad_enabled = torch.is_grad_enabled()
        self._site = site

    @property
    def location(self) -> Location | None:
        """The user's line that called it."""
        return location_of(self._site)


_modes_on = torch._C._len_torch_function_stack


def grad_fn_of(tensor: torch.Tensor) -> Any:
    """Return the node of a tensor; PyTorch refuses to tell that of a view made under no_grad whose base was written."""
    try:
        if type(tensor) is torch.Tensor and not _modes_on():
            return tensor.grad_fn
        with torch._C.DisableTorchFunction():  # else modes and subclasses of the program would be called for this
            return tensor.grad_fn
    except RuntimeError:
        return None


def operator_word(func: Any) -> str:
    """Return the bare name of a function of PyTorch: ``'mul'`` for ``Tensor.__mul__`` and ``torch.mul``."""
    name = getattr(func, "__name__", type(func).__name__)
    bare = name[2:-2] if name.startswith("__") and name.endswith("__") else name
    if bare.startswith("r") and bare[1:] in _REVERSED:
        bare = bare[1:]
    return {"truediv": "div", "matmul": "matmul", "getitem": "index"}.get(bare, bare)


_REVERSED = ("add", "sub", "mul", "truediv", "pow", "matmul")


# By the function; the program's own are not kept.
_told: dict[Any, str] = {}


def operator_told(func: Any) -> str:
    """Return the bare name of a function of which observers are told; empty of one that reads or sets a property.

    An OpOverload is what a dispatch mode calls below an operator that has been told of, or the engine.
    """
    try:
        return _told[func]
    except (KeyError, TypeError):  # it may have no hash
        pass
    if isinstance(func, torch._ops.OpOverload):
        return ""
    name = "" if getattr(func, "__name__", "") in _PROPERTY else operator_word(func)
    if type(func) in COMPILED or (getattr(func, "__module__", None) or "").startswith("torch."):
        _told[func] = name
    return name


_PROPERTY = ("__get__", "__set__", "__delete__")
COMPILED = (BuiltinFunctionType, MethodDescriptorType, WrapperDescriptorType, MethodWrapperType)
"""The kinds of functions that are no Python code."""


def made_by(name: str, args: Any, result: Any) -> tuple[torch.Tensor, ...]:
    """Return the tensors that a call has made or written: queries (``size``, ``is_contiguous``) have made none.

    Parameters
    ----------
    name : str
        The bare name of the function.
    """
    if type(result) is _TENSOR:
        return (result,)
    # ``x[i] = value`` returns nothing; what it makes is what it wrote.
    return tuple(tensors_in(args[0] if name == "setitem" else result))


def tensors_in(value: Any) -> Iterator[torch.Tensor]:
    """Yield the tensors in an argument or a result, however deep in lists, tuples and dictionaries."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from tensors_in(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from tensors_in(item)
