"""The formats that a graph is written in: each stands in one file, which registers its writer.

All files of the folder are imported when the first graph is written; no list names them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from ...discovery import import_all

if TYPE_CHECKING:
    from ..graph_model import BackwardGraph

__all__ = ["Format", "formats", "graph_format"]

Writer = TypeVar("Writer", bound=Callable[..., str])


@dataclass(frozen=True, slots=True)
class Format:
    """A format.

    Attributes
    ----------
    name : str
        What ``format=`` and ``--format`` call it.
    endings : tuple of str
        Of the files that are in it, such as ``'.gv'``; that of its name is one.
    picture : bool
        Whether it draws every node, so that a large graph is folded first.
    place : int
        Where it stands among the formats that are listed.
    write : callable
        Returns a graph as text.
    """

    name: str
    endings: tuple[str, ...]
    picture: bool
    place: int
    write: Callable[[BackwardGraph], str]


_FORMATS: dict[str, Format] = {}
_LAST = 100


def graph_format(name: str, *endings: str, picture: bool = False, place: int = _LAST) -> Callable[[Writer], Writer]:
    """Return a decorator that registers the writer of a format.

    Parameters
    ----------
    *endings : str
        Of files, besides that of the name.
    place : int, optional
        Where it is listed; the last by default.

    Raises
    ------
    ValueError
        If there is a format of that name.

    Examples
    --------
    >>> formats()["dot"].endings
    ('.dot', '.gv')
    """

    def register(write: Writer) -> Writer:
        if name in _FORMATS:
            raise ValueError(f"there is a format {name!r} already, {_FORMATS[name].write.__module__}")
        _FORMATS[name] = Format(name, (f".{name}", *endings), picture, place, write)
        return write

    return register


def formats() -> dict[str, Format]:
    """Return all formats by name, in the order of their places."""
    import_all(__package__)
    return {found.name: found for found in sorted(_FORMATS.values(), key=lambda found: (found.place, found.name))}
