"""Sizes and ages as a person types them: ``--budget 200MB``, ``--age 7d``."""

from __future__ import annotations

import re

__all__ = ["parse_age", "parse_bytes"]

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "ki": 2**10, "mi": 2**20, "gi": 2**30}
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}


def parse_bytes(size: int | str) -> int:
    """Return a size in bytes.

    Raises
    ------
    ValueError
        If it is not a size.

    Examples
    --------
    >>> parse_bytes("200MB"), parse_bytes("1.5GiB"), parse_bytes(4096)
    (200000000, 1610612736, 4096)
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmg]?i?)b?\s*", str(size).lower())
    if found is None or found[2] not in _UNITS:
        raise ValueError(f"{size!r} is not a size in bytes; write 4096, '200MB' or '1.5GiB'")
    return int(float(found[1]) * _UNITS[found[2]])


def parse_age(age: float | str) -> float:
    """Return an age in seconds.

    Raises
    ------
    ValueError
        If it is none.

    Examples
    --------
    >>> parse_age("7d"), parse_age("1.5h"), parse_age("90 s"), parse_age(60)
    (604800.0, 5400.0, 90.0, 60.0)
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([smhd]?)\s*", str(age).lower())
    if found is None or not float(found[1]):
        raise ValueError(f"{age!r} is no age; write 90s, 30m, '12h' or '7d'")
    return float(found[1]) * _SECONDS[found[2]]
