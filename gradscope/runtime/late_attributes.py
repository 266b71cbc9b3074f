"""Attributes of a class that are defined in a module of a floor above, which is imported when one is first used.

What every tensor and every node has, and few programs use, so costs an import only those that use it.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["ATTACHED", "attach"]

ATTACHED: dict[type, list[str]] = {}
"""The names of the attributes that a class has got here."""


class LateAttribute:
    """Stands for an attribute until somebody uses it, then puts the definition in its own place.

    Parameters
    ----------
    owner : type
        The class that has the attribute.
    definitions : str
        The class that defines it, ``"module.Class"``.
    """

    __slots__ = ("definitions", "name", "owner")

    def __init__(self, owner: type, definitions: str, name: str) -> None:
        self.owner, self.definitions, self.name = owner, definitions, name

    def _load(self) -> None:
        module, _, kind = self.definitions.rpartition(".")
        setattr(self.owner, self.name, vars(getattr(import_module(module), kind))[self.name])

    def __get__(self, instance: Any, owner: type) -> Any:
        self._load()
        return getattr(owner if instance is None else instance, self.name)

    def __set__(self, instance: Any, value: Any) -> None:
        self._load()
        setattr(instance, self.name, value)


def attach(owner: type, definitions: str, *names: str) -> None:
    """Give a class attributes that the class `definitions`, ``"module.Class"``, defines under the same names.

    Examples
    --------
    >>> class Point: ...
    >>> attach(Point, "fractions.Fraction", "limit_denominator")
    >>> Point.limit_denominator.__qualname__
    'Fraction.limit_denominator'
    """
    for name in names:
        setattr(owner, name, LateAttribute(owner, definitions, name))
    ATTACHED.setdefault(owner, []).extend(names)
