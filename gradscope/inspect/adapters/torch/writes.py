"""Writes into tensors, as a dispatch mode sees them: the schema of each operator tells which arguments it writes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils import _python_dispatch as dispatch

from ....runtime.events import CallSite
from ...records import Location
from ..native import location_of
from .operators import tensors_in

__all__ = ["TorchWrite", "WriteMode"]


class TorchWrite:
    """A tensor that has been written in place."""

    site: CallSite | None = None

    def __init__(self, tensor: torch.Tensor, operator: str, version: int) -> None:
        self.tensor, self.operator, self.version = tensor, operator, version
        self.grad_enabled = torch.is_grad_enabled()

    @property
    def location(self) -> Location | None:
        """The user's line that wrote it."""
        return location_of(self.site)


class WriteMode(dispatch.TorchDispatchMode):
    """Tells of every write below autograd.

    Parameters
    ----------
    tell : callable
        Called with a :class:`TorchWrite`.
    """

    def __init__(self, tell: Callable[[TorchWrite], None]) -> None:
        super().__init__()
        self._tell = tell

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Carry out the operator, and tell what it has written."""
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        slots = written_slots(func)
        if slots:
            self._written(func, list(_at(slots, args, kwargs)))
        return result

    def _written(self, func: Any, tensors: list[torch.Tensor]) -> None:
        name = func._schema.name.rpartition("::")[2]
        uncounted = name.startswith(("_foreach_", "_fused_"))
        if uncounted:
            # A mode keeps PyTorch from counting these writes, which would hide them from its own version check.
            torch.autograd.graph.increment_version([t for t in tensors if not t.is_inference()])
        for tensor in tensors:
            if tensor.is_inference():
                continue
            # The others are counted when this returns.
            self._tell(TorchWrite(tensor, name, tensor._version + (not uncounted)))

    def take_off(self) -> None:
        """Leave the mode wherever it stands on this thread's stack."""
        above = []
        while dispatch._get_current_dispatch_mode() is not None:
            top = dispatch._pop_mode()
            if top is self:
                break
            above.append(top)
        for other in reversed(above):
            dispatch._push_mode(other)


@functools.lru_cache(maxsize=4096)
def written_slots(func: Any) -> tuple[tuple[int, str], ...]:
    """Return (place, name) of the arguments that an operator writes."""
    arguments = func._schema.arguments
    return tuple((i, a.name) for i, a in enumerate(arguments) if a.alias_info is not None and a.alias_info.is_write)


def _at(slots: tuple[tuple[int, str], ...], args: Any, kwargs: Any) -> Iterator[torch.Tensor]:
    for place, name in slots:
        yield from tensors_in(args[place] if place < len(args) else kwargs.get(name))
