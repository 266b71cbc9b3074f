"""Warnings at the program's own line, however many of gradscope's functions stand between."""

from __future__ import annotations

import contextlib
import os
import sys
import warnings
from pathlib import Path

__all__ = ["warn"]

# Code of operators that is made as they are first used has a name instead of a file.
_BETWEEN = (f"{Path(__file__).parents[1]}{os.sep}", "<gradscope ", contextlib.__file__)


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line of the innermost function that is not gradscope's.

    Examples
    --------
    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     warn("careful")
    >>> str(caught[0].message), caught[0].filename == __file__
    ('careful', False)
    """
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_BETWEEN):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
