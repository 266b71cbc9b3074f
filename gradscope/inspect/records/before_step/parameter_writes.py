"""Which parameters are written between the steps of an optimizer, by others than it: told by their versions."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any, NamedTuple

from ...adapters import Adapter

__all__ = ["ParameterWrites", "Written"]


class Written(NamedTuple):
    """The places of tensors that were written between two steps of an optimizer.

    Attributes
    ----------
    before, after : tuple of int
        Before the first forward after the earlier step, and after it began.
    """

    before: tuple[int, ...] = ()
    after: tuple[int, ...] = ()


class _Held:
    """The tensors of an optimizer, as its newest step left them."""

    __slots__ = ("before", "forward", "tensors", "version", "versions")

    def __init__(self, adapter: Adapter, tensors: Sequence[Any]) -> None:
        self.tensors = [weakref.ref(tensor) for tensor in tensors]
        self.version = adapter.version
        self.versions = [self.version(tensor) for tensor in tensors]
        self.before: set[int] = set()
        self.forward = False

    def changed(self) -> set[int]:
        """Return the ids of the tensors that have been written since this was asked last."""
        found = set()
        for place, reference in enumerate(self.tensors):
            tensor = reference()
            version = None if tensor is None else self.version(tensor)
            if version != self.versions[place]:
                self.versions[place] = version
                found.add(id(tensor))
        return found


class ParameterWrites:
    """Follows the versions of parameters, a few times a step.

    Examples
    --------
    >>> import gradscope as gs
    >>> from gradscope.inspect.adapters import adapter_for
    >>> a, b = gs.ones(2), gs.ones(2)
    >>> writes = ParameterWrites()
    >>> writes.stepped(0, adapter_for(a), [a, b])
    >>> _ = a.mul_(2)
    >>> writes.forward_begins()
    >>> _ = b.mul_(2)
    >>> writes.before_step(0, [a, b])
    Written(before=(0,), after=(1,))
    """

    def __init__(self) -> None:
        self._held: dict[int, _Held] = {}

    def stepped(self, optimizer: int, adapter: Adapter, tensors: Sequence[Any]) -> None:
        """Note what a step of an optimizer, known by a number, has left."""
        self._held[optimizer] = _Held(adapter, tensors)

    def forward_begins(self) -> None:
        """Note that the program calls a module; after the first call since a step that costs nothing."""
        for held in self._held.values():
            if not held.forward:
                held.forward, held.before = True, held.changed()

    def before_step(self, optimizer: int, tensors: Sequence[Any]) -> Written:
        """Return which of some tensors were written since the newest step of an optimizer."""
        held = self._held.get(optimizer)
        if held is None:
            return Written()
        after = held.changed()
        before, after = (held.before, after) if held.forward else (after, set())
        if not (before or after):
            return Written()
        places = {id(tensor): place for place, tensor in enumerate(tensors)}
        return Written(*(tuple(sorted(places[one] for one in found if one in places)) for found in (before, after)))
