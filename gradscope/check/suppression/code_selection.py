"""Which codes are looked for: ``--select`` and ``--ignore``."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

from ..findings.finding_codes import CODES
from .notices import meant

__all__ = ["CodeSelection", "codes_of"]


def codes_of(words: Iterable[str]) -> tuple[str, ...]:
    """Return codes, and beginnings of codes, in upper case.

    Parameters
    ----------
    words : iterable of str
        ``'GS101'``, or ``'GS10'`` for all that begin so.

    Raises
    ------
    ValueError
        If no code begins with one of them.

    Examples
    --------
    >>> codes_of(["gs101", "GS"])
    ('GS101', 'GS')
    """
    found = tuple(word.strip().upper() for word in words)
    for word in found:
        if not word or not any(code.startswith(word) for code in CODES):
            raise ValueError(f"no code {word!r}: {meant(word, CODES)}")
    return found


class CodeSelection(Container[str]):
    """The codes that are selected and not ignored; the longer word wins, and of two that are equal `ignore`.

    A code that is opt-in is selected by its whole name alone.

    Parameters
    ----------
    select : sequence of str
        All codes but those, where it is empty.

    Examples
    --------
    >>> selection = CodeSelection(["GS106"], ["GS1"])
    >>> "GS106" in selection, "GS101" in selection
    (True, False)
    >>> "GS112" in CodeSelection(["GS"]), "GS112" in CodeSelection(["GS", "GS112"])
    (False, True)
    """

    def __init__(self, select: Sequence[str] = (), ignore: Sequence[str] = ()) -> None:
        self._select = codes_of(select) or ("",)
        self._ignore = codes_of(ignore)

    def __contains__(self, code: object) -> bool:
        name = str(code)
        if name in CODES and CODES[name].opt_in and name not in self._select:
            return False
        return _longest(self._select, name) > _longest(self._ignore, name)


def _longest(words: Sequence[str], code: str) -> int:
    return max((len(word) for word in words if code.startswith(word)), default=-1)
