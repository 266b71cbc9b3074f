"""Operators that have run, as a function mode sees them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from ....runtime.events import CallSite
from ...records.records import Location
from ..native_adapter import location_of

__all__ = ["TorchOperatorCall", "grad_fn_of", "is_operator", "tensors_in"]


class TorchOperatorCall:
    """An operator that has run.

    Parameters
    ----------
    func : callable
        PyTorch's function.
    numbers : range
        The sequence numbers of the nodes that it has made.
    """

    def __init__(self, func: Any, args: Any, kwargs: Any, result: Any, numbers: range, site: CallSite) -> None:
        self.name = operator_word(func)
        self.inputs = tuple(tensors_in((args, list((kwargs or {}).values()))))
        # ``x[i] = value`` returns nothing; what it makes is what it wrote.
        self.outputs = tuple(tensors_in(args[0] if self.name == "setitem" else result))
        nodes = [node for node in map(grad_fn_of, self.outputs) if node is not None]
        self.node = next((node for node in nodes if node._sequence_nr() in numbers), None)
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


def is_operator(func: Any, result: Any) -> bool:
    """Whether a call made or wrote tensors: property reads and queries (``shape``, ``size``, ``grad``) did not.

    An OpOverload is what a dispatch mode calls below an operator that has been told of, or the engine.
    """
    if getattr(func, "__name__", "") == "__setitem__":
        return True
    if isinstance(func, torch._ops.OpOverload) or getattr(func, "__name__", "") in ("__get__", "__set__", "__delete__"):
        return False
    return any(True for _ in tensors_in(result))


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
