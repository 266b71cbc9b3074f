"""What the gradients of a backward show to be wrong, with the lines to look at, while it runs and when recorded."""

from __future__ import annotations

from collections.abc import Sequence

from ...records.records import BackwardFinding, NodeRecord
from ..finding_limits import Limits

__all__ = ["MOST_NODES", "trend_findings"]

MOST_NODES = 20_000
"""Nodes of a backward up to which it is searched: beyond, a stop would take seconds."""

_CALLED = {"nan": "a NaN", "inf": "an infinity"}


def trend_findings(nodes: Sequence[NodeRecord], limits: Limits, most: int = MOST_NODES) -> list[BackwardFinding]:
    """Return what the gradients of a backward show, as far as it has run; nothing of one with more nodes."""
    # What is below loads when it is asked for: a debugger starts without it.
    from .norm_trend import norm_trouble

    if len(nodes) > most:
        return []
    found = []
    for trouble in norm_trouble(nodes, limits):
        node = nodes[trouble.index]
        inner = next((one for one in node.inside if one.bad), None) if trouble.kind in ("nan", "inf") else None
        title, text, location = trouble.title, trouble.text, node.location
        if inner is not None:
            title = f"{inner.operator}, inside of {node.name}, makes {_CALLED[trouble.kind]} of a finite gradient"
            text, location = inner.why or text, inner.location or location
        if trouble.stop:
            text = f"{text}\n`break {trouble.stop}` stops at the first.".lstrip()
        severity = "error" if trouble.kind in ("nan", "inf") else "warning"
        found.append(BackwardFinding(trouble.kind, severity, title, text, location, trouble.index, trouble.parameters))
    return found
