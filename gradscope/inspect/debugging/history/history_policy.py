"""How much of the past a session keeps: bytes of gradients, nodes, saved tensors."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["HistoryPolicy"]


@dataclass(frozen=True, slots=True)
class HistoryPolicy:
    """How much of the past to keep.

    Attributes
    ----------
    max_bytes : int
        For the values of gradients. The newest are kept; of older ones the summaries.
    max_nodes : int
        Nodes of backwards that have ended; the oldest backwards go, but for the last.
    keep_saved : bool
        Whether nodes that have run keep their saved tensors until their backward ends, so that they can be looked at
        and run again in a what-if. It takes the memory of ``retain_graph=True``. PyTorch must know before a backward
        begins: where the session begins to record in the middle of one, its nodes keep nothing.
    always : bool
        Record while the program runs free too, so that :meth:`Debugger.back` can go everywhere; otherwise from the
        first stop or breakpoint on.

    See Also
    --------
    Debugger

    Examples
    --------
    >>> import gradscope as gs
    >>> import gradscope.inspect as gi
    >>> gi.HistoryPolicy(max_nodes=1000).max_nodes
    1000
    """

    max_bytes: int = 256 * 2**20
    max_nodes: int = 200_000
    keep_saved: bool = True
    always: bool = False
