"""Frozen records by the hundred thousand: an ``__init__`` in a third of the time that ``dataclass`` writes one for."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any, TypeVar

__all__ = ["quickly_made"]

T = TypeVar("T")


def quickly_made(record: type[T]) -> type[T]:
    """Return a frozen dataclass with slots whose objects are made quickly.

    A frozen object cannot be assigned to, and ``dataclass`` goes by a function for each of its fields. While it is made
    it is of a class with the same slots that is not frozen.

    Parameters
    ----------
    record : type
        Its fields have plain defaults, or none.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @quickly_made
    ... @dataclass(frozen=True, slots=True)
    ... class Point:
    ...     x: float
    ...     y: float = 0.0
    >>> Point(1.0)
    Point(x=1.0, y=0.0)
    >>> Point(1.0).y = 2.0
    Traceback (most recent call last):
        ...
    dataclasses.FrozenInstanceError: cannot assign to field 'y'
    """
    written: Any = record.__init__
    names = [place.name for place in fields(record)]  # type: ignore[arg-type]
    twin = type(record.__name__, (), {"__slots__": tuple(names)})
    scope: dict[str, Any] = {"become": object.__setattr__, "record": record, "twin": twin, "written": written}
    scope |= {f"default_{p.name}": p.default for p in fields(record) if p.default is not MISSING}  # type: ignore[arg-type]
    given = [f"{name}=default_{name}" if f"default_{name}" in scope else name for name in names]
    lines = [
        f"def __init__(self, {', '.join(given)}):",
        f"    if type(self) is not record: return written(self, {', '.join(names)})",
        "    become(self, '__class__', twin)",
        *(f"    self.{name} = {name}" for name in names),
        "    self.__class__ = record",
    ]
    exec("\n".join(lines), scope)
    init = scope["__init__"]
    for what in ("__annotations__", "__doc__", "__module__", "__qualname__"):
        setattr(init, what, getattr(written, what))
    record.__init__ = init  # type: ignore[method-assign]
    return record
