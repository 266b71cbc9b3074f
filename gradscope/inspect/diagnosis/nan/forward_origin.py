"""Where the forward pass has a NaN or an infinity from that a node has saved, seen in what other nodes have saved."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

__all__ = ["ForwardOrigin", "forward_origin"]


@dataclass(frozen=True, slots=True)
class ForwardOrigin:
    """The beginning of what is not finite in a forward pass.

    Attributes
    ----------
    leaves : tuple of int
        The places of the leaves that are not finite themselves; where there are any, all else comes of them.
    index : int
        The place of the earliest operator that has saved something not finite.
    saved : str
        Under which name.
    """

    leaves: tuple[int, ...]
    index: int
    saved: str


def forward_origin(
    start: int, targets: Sequence[Sequence[int]], bad_saved: Callable[[int], str], is_bad_leaf: Callable[[int], bool]
) -> ForwardOrigin | None:
    """Return where a NaN or an infinity in what a node has saved begins; None where nothing saved below has one.

    Parameters
    ----------
    start : int
        The node.
    targets : sequence of sequence of int
        For each node in execution order the nodes that its gradients go to: those that have made its inputs.
    bad_saved : callable
        Returns the name of what a node has saved that is not finite; empty where all is.
    is_bad_leaf : callable
        Whether a node is that of a leaf which is not finite.

    Examples
    --------
    >>> forward_origin(0, [[1], [2], []], {0: "self", 1: "result", 2: ""}.__getitem__, lambda index: False)
    ForwardOrigin(leaves=(), index=1, saved='result')
    """
    below = {start}
    for index in range(start, len(targets)):
        if index in below:
            below.update(targets[index])
    leaves = tuple(index for index in sorted(below) if is_bad_leaf(index))
    names = {index: name for index in sorted(below) if (name := bad_saved(index))}
    if not names:
        return None
    # What runs last in the backward has run first in the forward pass.
    earliest = max(names)
    return ForwardOrigin(leaves, earliest, names[earliest])
