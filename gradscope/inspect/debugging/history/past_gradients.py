"""Gradients of the past, kept as values as long as a budget allows and as numbers afterwards."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy

from ...adapters import Adapter
from ...records.records import TensorSpec, TensorSummary
from ...records.tensor_statistics import combined_norm, norm_of, summarize

__all__ = ["GradientCopies", "ValueStore"]


class GradientCopies:
    """The incoming or the produced gradients of a node, copied to the host.

    Copying costs a fraction of summarizing, so the summaries are made when somebody asks, or when the copies go.

    Parameters
    ----------
    name : str
        ``'grad_outputs'`` or ``'grad_inputs'``.
    """

    __slots__ = ("_arrays", "_name", "_norm", "_specs", "_summaries", "nbytes")

    def __init__(self, adapter: Adapter, grads: Sequence[Any], name: str) -> None:
        arrays = [None if g is None else numpy.array(adapter.to_host(g)) for g in grads]
        self._name = name
        self._specs: tuple[TensorSpec | None, ...] = tuple(None if g is None else adapter.spec(g) for g in grads)
        self._arrays: list[numpy.ndarray | None] | None = arrays
        self._summaries: tuple[TensorSummary | None, ...] | None = None
        self._norm: float | None = None
        self.nbytes = sum(a.nbytes for a in arrays if a is not None)

    @property
    def dropped(self) -> bool:
        """Whether the values have been let go."""
        return self._arrays is None

    @property
    def known(self) -> tuple[TensorSummary | None, ...] | None:
        """The summaries if they have been made."""
        return self._summaries

    @property
    def summaries(self) -> tuple[TensorSummary | None, ...]:
        """The summaries, None for an undefined gradient."""
        arrays = self._arrays
        if self._summaries is None and arrays is not None:
            self._summaries = tuple(self._summary(index, array) for index, array in enumerate(arrays))
        return self._summaries or ()

    @property
    def norm(self) -> float | None:
        """The 2-norm over all of them; None where all are undefined."""
        if self._norm is None:
            arrays, summaries = self._arrays, self._summaries
            if summaries is None and arrays is not None:
                norms = [_norm(array, spec) for array, spec in zip(arrays, self._specs)]
            else:
                norms = [s.norm if s is not None and s.has_values else None for s in self.summaries]
            self._norm = combined_norm(norms)
        return self._norm

    def _summary(self, index: int, array: numpy.ndarray | None) -> TensorSummary | None:
        spec = self._specs[index]
        if array is None or spec is None:
            return None
        shape = array.shape if _has_values(array, spec) else spec.shape
        return summarize(array, f"{self._name}[{index}]", dtype=spec.dtype, device=spec.device, shape=shape)

    def tensors(self, adapter: Adapter) -> list[Any] | None:
        """Return the gradients as new tensors, None once the values have gone, or where one never had any.

        A gradient inside of vmap has the dimensions that vmap hides as well, which its spec does not tell.
        """
        if self._arrays is None:
            return None
        pairs = [None if a is None or s is None else (a, s) for a, s in zip(self._arrays, self._specs)]
        if not all(_has_values(*pair) for pair in pairs if pair is not None):
            return None
        return [
            None if pair is None else adapter.tensor_like(pair[0], replace(pair[1], shape=pair[0].shape))
            for pair in pairs
        ]

    def drop(self) -> None:
        """Let the values go and keep the numbers."""
        if self._arrays is not None:
            self._summaries = self.summaries
            self._arrays = None


class ValueStore:
    """Which groups still have their values: the newest, up to a number of bytes.

    Parameters
    ----------
    budget : int
        Bytes.

    Examples
    --------
    >>> import gradscope as gs
    >>> from gradscope.inspect.adapters import NativeAdapter
    >>> store, adapter = ValueStore(20), NativeAdapter()
    >>> groups = [GradientCopies(adapter, [gs.full((4,), float(k))], "grad_outputs") for k in range(2)]
    >>> for group in groups:
    ...     store.keep(group)
    >>> [group.tensors(adapter) for group in groups], groups[0].summaries[0].norm
    ([None, [tensor([1., 1., 1., 1.])]], 0.0)
    """

    def __init__(self, budget: int) -> None:
        self.budget = budget
        self.nbytes = 0
        self._groups: deque[GradientCopies] = deque()

    def keep(self, group: GradientCopies) -> None:
        """Count a group, and let the oldest go where it is too much."""
        self._groups.append(group)
        self.nbytes += group.nbytes
        while self.nbytes > self.budget and self._groups:
            oldest = self._groups.popleft()
            self.nbytes -= oldest.nbytes
            oldest.drop()


def _norm(array: numpy.ndarray | None, spec: TensorSpec | None) -> float | None:
    """Return the 2-norm of a gradient; None of an undefined one, and of one without values."""
    if array is None or spec is None or not _has_values(array, spec):
        return None
    return norm_of(array)


def _has_values(array: numpy.ndarray, spec: TensorSpec) -> bool:
    """Whether a gradient had values to copy: one on the meta device has none."""
    return bool(array.size) or 0 in spec.shape
