"""Which cases of a parametrised test the README's command runs; the others are left to ``pytest -m slow``."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pytest

__all__ = ["quick"]


def quick(cases: Iterable[Any], usual: Collection[Any]) -> list[Any]:
    """Return cases for ``parametrize``: those that are not among the usual ones are marked as slow.

    Parameters
    ----------
    cases : iterable
        A case, or the values of one as a tuple.
    usual : collection
        Those that find most of what breaks.

    Examples
    --------
    >>> [len(case.marks) if hasattr(case, "marks") else case for case in quick("abc", {"a"})]
    ['a', 1, 1]
    """
    return [case if case in usual else _slow(case) for case in cases]


def _slow(case: Any) -> Any:
    values = case if isinstance(case, tuple) else (case,)
    return pytest.param(*values, marks=pytest.mark.slow)
