"""The formats of a report: each stands in one file, which registers its writer.

All files of the folder are imported when the first report is written; no list names them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from ...inspect.discovery import import_all
from ..check_report import Report

__all__ = ["ReportFormat", "format_named", "formats", "report_format"]

Writer = TypeVar("Writer", bound=Callable[..., str])

_LAST = 100


@dataclass(frozen=True, slots=True)
class ReportFormat:
    """A format.

    Attributes
    ----------
    name : str
        What ``--format`` calls it.
    alone : bool
        Whether standard output must hold nothing else: what the script prints then goes to standard error.
    place : int
        Where it stands among the formats that are listed.
    write : callable
        Returns a report as text.
    """

    name: str
    alone: bool
    place: int
    write: Callable[[Report], str]


_FORMATS: dict[str, ReportFormat] = {}


def report_format(name: str, *, alone: bool = False, place: int = _LAST) -> Callable[[Writer], Writer]:
    """Return a decorator that registers the writer of a format.

    Parameters
    ----------
    alone : bool
        As of :class:`ReportFormat`.
    place : int, optional
        Where it is listed; the last by default.

    Raises
    ------
    ValueError
        If there is a format of that name.

    Examples
    --------
    >>> list(formats())
    ['text', 'concise', 'json', 'sarif', 'github', 'junit']
    """

    def register(write: Writer) -> Writer:
        if name in _FORMATS:
            raise ValueError(f"there is a format {name!r} already, {_FORMATS[name].write.__module__}")
        _FORMATS[name] = ReportFormat(name, alone, place, write)
        return write

    return register


def formats() -> dict[str, ReportFormat]:
    """Return all formats by name, in the order of their places.

    See Also
    --------
    format_named

    Examples
    --------
    >>> from gradscope.check import formats
    >>> list(formats())
    ['text', 'concise', 'json', 'sarif', 'github', 'junit']
    """
    import_all(__package__)
    return {found.name: found for found in sorted(_FORMATS.values(), key=lambda found: (found.place, found.name))}


def format_named(name: str) -> ReportFormat:
    """Return the format of a name.

    Raises
    ------
    ValueError
        If there is none.

    See Also
    --------
    formats, make_report

    Examples
    --------
    >>> format_named("sarif").alone
    True
    """
    known = formats()
    if name not in known:
        raise ValueError(f"there is no format {name!r}; there are {', '.join(known)}")
    return known[name]
