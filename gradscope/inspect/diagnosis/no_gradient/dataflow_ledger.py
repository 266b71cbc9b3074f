"""The ledger: a block in which it is written down which tensor is computed from which."""

from __future__ import annotations

from typing import Any

from ...adapters import Adapter, Observer, adapter_for
from ...records.module_tracking import remember
from .dataflow import DataflowObserver

__all__ = ["Ledger", "ledger", "recorder_for"]

# The ledger that is open, or was open last: an explanation reads it when it is given none.
_latest: Ledger | None = None


class Ledger:
    """Context manager: while its block runs, write down which tensor is computed from which.

    Parameters
    ----------
    adapter : Adapter, optional
        Of one framework only; all by default.
    limit : int
        How many operators to remember.

    Attributes
    ----------
    recorder : DataflowObserver
        What was written down.

    See Also
    --------
    why_no_grad : Reads it.

    Examples
    --------
    >>> import gradscope as gs
    >>> import gradscope.inspect as gi
    >>> x = gs.nn.Parameter(gs.ones(2))
    >>> with gi.ledger() as ledger:
    ...     loss = x.detach().sum()
    >>> ledger.recorder.backwards
    0
    """

    def __init__(self, *, adapter: Adapter | None = None, limit: int = 100_000) -> None:
        if limit < 1:
            raise ValueError(f"limit must be at least 1, got {limit}\nIt is how many operators the ledger remembers.")
        self.recorder = DataflowObserver(adapter or adapter_for(), limit)
        self._observation: Any = None

    def __enter__(self) -> Ledger:
        return self.open(self.recorder)

    def open(self, observer: Observer, *, writes: bool = False) -> Ledger:
        """Begin to write down what happens.

        Parameters
        ----------
        observer : Observer
            The recorder, or who passes on to it what it is told.
        writes : bool
            Whether the observer is told of writes, too.
        """
        global _latest
        if self._observation is not None:
            raise RuntimeError(
                "this ledger is open already\nUse one `with gradscope.inspect.ledger():` for the whole block."
            )
        adapter = self.recorder.adapter
        self._observation = adapter.observe(observer, forward=True, backward=True, operators=True, writes=writes)
        _latest = self
        remember(self.recorder)
        return self

    @property
    def is_open(self) -> bool:
        """Whether it writes down what happens."""
        return self._observation is not None

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        observation, self._observation = self._observation, None
        if observation is not None:
            observation.close()


def ledger(*, adapter: Adapter | None = None, limit: int = 100_000) -> Ledger:
    """Return a context manager that writes down which tensor is computed from which, and on which line.

    It records modules and lines as :func:`track` does, and besides what the backward graph does not know: operators
    that were not recorded. It keeps no tensor alive. :func:`why_no_grad`, :func:`second_backward` and :func:`memory`
    read the ledger that is open or was open last.

    Parameters
    ----------
    adapter : Adapter, optional
        Of one framework only; all by default.
    limit : int
        How many operators to remember.

    See Also
    --------
    why_no_grad

    Examples
    --------
    >>> import gradscope as gs
    >>> import gradscope.inspect as gi
    >>> w = gs.ones(3, requires_grad=True)
    >>> with gi.ledger():
    ...     loss = (w.detach() * 2).sum()
    >>> gi.why_no_grad(w, loss).reason.value
    'detached'
    """
    return Ledger(adapter=adapter, limit=limit)


def recorder_for(given: Ledger | None = None) -> DataflowObserver | None:
    """Return what the given ledger, or the latest, has written down.

    Returns
    -------
    DataflowObserver or None
        None when no ledger was ever open.
    """
    chosen = given or _latest
    return None if chosen is None else chosen.recorder
