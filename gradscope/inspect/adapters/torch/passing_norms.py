"""What is asked of each node while a program runs free: the norm of what it is given, and whether all of it is finite.

Nobody may be looking, so each gradient is read once, and where it lies. What one node has made is what the next is
given, and about half of all nodes make nothing: they hand on the memory that they were given under another shape.
"""

from __future__ import annotations

import ctypes
import math
import weakref
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeAlias

import numpy
import torch

from ...records.tensor_statistics import combined_norm, is_finite, makes_bad, quick_norm_of_row
from ..recent_norms import MOST_RECENT, RecentNorms
from .numpy_conversion import norm_at, reader, to_host

__all__ = ["PassingNorms", "are_small_and_finite"]

_TENSOR = torch.Tensor
_PLAIN = {torch.Tensor, torch.nn.Parameter}
_FEW = 16
_DTYPES: dict[torch.dtype, numpy.dtype[Any]] = {
    torch.float32: numpy.dtype(numpy.float32),
    torch.float64: numpy.dtype(numpy.float64),
}
_SIZES = {dtype: kind.itemsize for dtype, kind in _DTYPES.items()}
_NUMBERS = {
    (dtype, count): (number * count).from_address
    for dtype, number in ((torch.float32, ctypes.c_float), (torch.float64, ctypes.c_double))
    for count in range(1, _FEW + 1)
}

_Place: TypeAlias = tuple[int, int, torch.dtype, int]
"""Where the numbers of a gradient lie without a gap: address, how many, dtype, and the version of the memory."""

_Known: TypeAlias = tuple[float | None, _Place | None, int]
"""The norm of a gradient, its place, and the version of the memory that has that norm."""

_NOTHING: _Known = (None, None, -1)


def _none() -> None:
    return None


class PassingNorms:
    """Looks at what the nodes of a backward were given and have made, as `Adapter.passing_norms` does.

    Parameters
    ----------
    quiet : callable
        Returns a context in which nothing is recorded and nobody is told.

    Examples
    --------
    >>> from contextlib import nullcontext
    >>> look, grad = PassingNorms(nullcontext), torch.tensor([3.0, 4.0])
    >>> look([grad], [grad * 2]), look([grad], [grad / 0])
    ((5.0, True), (5.0, False))
    """

    __slots__ = ("_few", "_few_norm", "_few_version", "_quiet", "_recent")

    def __init__(self, quiet: Callable[[], AbstractContextManager[Any]]) -> None:
        self._quiet = quiet
        self._recent: RecentNorms[_Known] = RecentNorms()
        # The latest gradient of a few numbers: to remember one alone is quicker.
        self._few: Callable[[], Any] = _none
        self._few_norm: float | None = None
        self._few_version = 0

    def __call__(self, given: Sequence[Any], made: Sequence[Any]) -> tuple[float | None, bool]:
        """Return the norm of what a node was given, and whether it has made no NaN and no infinity."""
        with torch._C.DisableTorchFunction():
            if len(given) == 1:
                known = self._known_of(given[0])
                norm = known[0]
            else:
                known = _NOTHING
                norm = combined_norm([self._known_of(grad)[0] for grad in given])
            finite = True
            if made:  # the node of a leaf makes nothing
                self._few = _none
            for tensor in made:
                if tensor is not None:
                    now = self._read(tensor, known)[0]
                    if now is not None and not now < math.inf:
                        finite = False
        if finite:
            return norm, True
        if is_finite(norm):
            return norm, False
        with self._quiet():
            return norm, not makes_bad(*([to_host(t) for t in grads if t is not None] for grads in (given, made)))

    def _known_of(self, tensor: Any) -> _Known:
        """Return what is known of a gradient that has arrived: as a rule, of one made a moment ago."""
        if tensor is None:
            return _NOTHING
        entry = self._recent.get(id(tensor))
        if entry is not None:
            known = entry[1]
            if known[2] == tensor._version and entry[0]() is tensor:
                return known
        if tensor is self._few() and tensor._version == self._few_version:
            return self._few_norm, None, self._few_version
        return self._read(tensor)

    def _read(self, tensor: Any, given: _Known = _NOTHING) -> _Known:
        """Return the norm of a gradient and its place, and keep them for the node that is given it next.

        Parameters
        ----------
        given : tuple
            What is known of the only gradient that the node was given which has made this one: nearly half of all nodes
            hand it on.
        """
        if type(tensor) is not _TENSOR:
            return self._read_elsewhere(tensor), None, -1
        try:
            address, count, dtype, version = tensor.data_ptr(), tensor.numel(), tensor.dtype, tensor._version
            there = address and (tensor.is_contiguous() or _has_no_gap(tensor, count))
        except RuntimeError:  # it is sparse, one of inference mode, or inside of a functorch transform
            there = False
        if not there:  # zeros without memory have no address
            return self._read_elsewhere(tensor), None, -1
        place = address, count, dtype, version
        if place == given[1] and given[0] is not None:  # it was handed on
            known = given
        elif dtype not in _SIZES or not tensor.is_cpu:
            return self._read_elsewhere(tensor), place, version
        else:
            if count <= _FEW:
                norm = math.hypot(*_NUMBERS[dtype, count](address)[:])
                if norm < math.inf:
                    self._few, self._few_norm, self._few_version = weakref.ref(tensor), norm, version
                    return norm, place, version
            row = numpy.frombuffer(reader(count * _SIZES[dtype])(address), _DTYPES[dtype])
            known = quick_norm_of_row(row), place, version
        recent = self._recent
        recent[id(tensor)] = weakref.ref(tensor), known
        if len(recent) > MOST_RECENT:
            recent.forget()
        return known

    def _read_elsewhere(self, tensor: Any) -> float | None:
        """Return the norm of a gradient of any kind, on any device."""
        if tensor.is_cpu:
            norm = norm_at(tensor)
        else:
            with self._quiet():
                norm = norm_at(tensor)
        if norm is not None and type(tensor) is _TENSOR and not tensor.is_inference():
            self._recent.note(tensor, (norm, None, tensor._version))
        return norm


def are_small_and_finite(tensors: Sequence[Any]) -> bool:
    """Whether tensors, of which some may be None, are few numbers each on the host, none of them NaN or infinite.

    They are read where they lie; the caller has put modes aside.

    Examples
    --------
    >>> are_small_and_finite([torch.ones(3), None]), are_small_and_finite([torch.tensor(torch.inf)])
    (True, False)
    """
    try:
        for tensor in tensors:
            if tensor is None:
                continue
            if type(tensor) not in _PLAIN:
                return False
            read = _NUMBERS.get((tensor.dtype, tensor.numel()))
            if read is None or not tensor.is_cpu or not tensor.is_contiguous():
                return False
            address = tensor.data_ptr()
            if not address or not math.hypot(*read(address)[:]) < math.inf:
                return False
    except (AttributeError, NotImplementedError, RuntimeError):  # it is sparse, or inside of a transform
        return False
    return True


def _has_no_gap(tensor: torch.Tensor, count: int) -> bool:
    """Whether the numbers of a gradient that are not in order lie in a memory without a gap.

    Only strides that somebody has chosen by number cover a memory without reaching all of it.
    """
    return sum([(size - 1) * step for size, step in zip(tensor.shape, tensor.stride())]) + 1 == count
