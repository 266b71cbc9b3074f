"""Writes numbers, byte counts, durations, shapes and lists of names for sentences."""

from __future__ import annotations

import math
from collections.abc import Sequence

__all__ = [
    "count", "format_bytes", "format_duration", "format_shape", "numbered", "numbered_rows",
    "repeated_factor", "several",
]  # fmt: skip

_LARGEST_LOG = 709.0
"""The largest logarithm of a float64."""


def count(number: int, one: str, several: str = "") -> str:
    """Return a number with its noun.

    Parameters
    ----------
    one, several : str
        `several` defaults to `one` with an s.

    Examples
    --------
    >>> count(1, "node"), count(2, "node")
    ('1 node', '2 nodes')
    """
    return f"{number:,} {one if number == 1 else several or one + 's'}"


def numbered(one: str, numbers: Sequence[int]) -> str:
    """Return some things of a kind by their numbers.

    Examples
    --------
    >>> numbered("rank", [1]), numbered("rank", [0, 2])
    ('rank 1', 'ranks 0, 2')
    """
    return f"{one}{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"


def numbered_rows(one: str, rows: Sequence[tuple[Sequence[int], str]]) -> list[str]:
    r"""Return a line for each row: some things of a kind by their numbers, and in a column what is said of them.

    Examples
    --------
    >>> print(*numbered_rows("rank", [([0, 2, 3], "waits"), ([1], "has ended")]), sep="\n")
      ranks 0, 2, 3  waits
      rank 1         has ended
    """
    labels = [numbered(one, numbers) for numbers, _ in rows]
    width = max([len(one) + 7, *(len(label) + 1 for label in labels)])
    return [f"  {label:<{width}} {text}" for label, (_, text) in zip(labels, rows)]


def format_bytes(number: int) -> str:
    """Return a size for people.

    Examples
    --------
    >>> format_bytes(512), format_bytes(1536), format_bytes(3 * 2**30)
    ('512 B', '1.5 KiB', '3.0 GiB')
    """
    size, unit = float(number), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if size < 1024:
            break
        size, unit = size / 1024, larger
    return f"{number} B" if unit == "B" else f"{size:.1f} {unit}"


def format_duration(nanoseconds: int) -> str:
    """Return a duration for people.

    Examples
    --------
    >>> format_duration(1_500_000), format_duration(12_340), format_duration(2_000_000_000)
    ('1.5 ms', '12.3 us', '2 s')
    """
    if nanoseconds >= 10**9:
        return f"{nanoseconds / 1e9:.3g} s"
    return f"{nanoseconds / 1e6:.3g} ms" if nanoseconds >= 10**6 else f"{nanoseconds / 1e3:.3g} us"


def format_shape(shape: tuple[int, ...] | None) -> str:
    """Return a shape as it is shown everywhere.

    Examples
    --------
    >>> format_shape((3, 4)), format_shape(()), format_shape(None)
    ('(3, 4)', '()', '?')
    """
    return "?" if shape is None else "(" + ", ".join(map(str, shape)) + ")"


def repeated_factor(logarithms: Sequence[float]) -> str:
    """Return how often something is multiplied, and by how much each time: the geometric mean of the factors.

    Examples
    --------
    >>> repeated_factor([math.log(0.5)]), repeated_factor([math.log(0.1), math.log(0.001)])
    ('once by 0.5', '2 times, each time by about 0.01')
    """
    mean = math.exp(min(_LARGEST_LOG, sum(logarithms) / len(logarithms)))
    return f"once by {mean:.2g}" if len(logarithms) == 1 else f"{len(logarithms)} times, each time by about {mean:.2g}"


def several(names: Sequence[str], most: int = 3) -> str:
    """Return names in a line, and how many more there are.

    Examples
    --------
    >>> several(["a", "b"]), several(["a", "b", "c", "d", "e"])
    ('a, b', 'a, b, c and 2 more')
    """
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
