"""What a GradScaler will do about a gradient that is not finite: leave the step out, and lower its scale."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from ...adapters import Adapter
from ...records.records import NodeRecord

__all__ = ["left_out_step"]

_NORMAL = "That is normal now and then, until the scale fits; at every step it is not."
_IN_VAIN = "It leaves out every such step: its scale is not what makes this."


def left_out_step(adapter: Adapter, nodes: Sequence[NodeRecord], *, overflow: bool) -> str:
    """Return that a GradScaler will leave the step out after this backward; empty where none has scaled its loss.

    Parameters
    ----------
    nodes : sequence of NodeRecord
        Those that have run, from the loss on.
    overflow : bool
        Whether the gradient has become too large for its dtype, which a lower scale mends.

    Returns
    -------
    str
        Two lines.
    """
    for scale, backoff in adapter.loss_scales():
        if any(_scales(node, after, scale) for node, after in pairwise(nodes)):
            lowered = "halves its scale" if backoff == 0.5 else f"multiplies its scale by {backoff:g}"
            head = f"A GradScaler has scaled this loss by {scale:g}: it leaves the step out after this, and {lowered}."
            return f"{head}\n{_NORMAL if overflow else _IN_VAIN}"
    return ""


def _scales(node: NodeRecord, after: NodeRecord, scale: float) -> bool:
    """Whether a node has multiplied the gradient by the scale, by what came into it and into the next."""
    if node.operator != "Mul" or not node.norm or after.norm is None:
        return False
    return math.isclose(after.norm, node.norm * scale, rel_tol=1e-5)
