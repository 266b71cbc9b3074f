"""The channels of images, as they lie in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy

from .. import forms
from .columns import Columns, channels_last
from .planes import Planes
from .row_blocks import is_worth_it

if TYPE_CHECKING:
    from ...ops.declaration.annotations import Array

__all__ = ["channels_of"]


def channels_of(*arrays: Array | None) -> Planes | Columns | None:
    """Return the channels of the first of the arrays, where they lie together and a kernel is for them; else None.

    Examples
    --------
    >>> type(channels_of(numpy.ones((512, 64)))).__name__, channels_of(numpy.ones((2, 64)))
    ('Columns', None)
    """
    first, *others = arrays
    if type(first) is not numpy.ndarray:
        return None
    if first.ndim > 2 and Planes.are_worth_it(first, *others):
        return Planes(first)
    if first.size < forms.LEAST:
        return None
    return Columns(first) if is_worth_it(channels_last(first), *others) else None
