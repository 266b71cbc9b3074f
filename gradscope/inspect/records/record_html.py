"""Records in a notebook: a node, the nodes of a backward, a tensor in numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ..output.markup import Markup, element
from ..output.notebook_html import MOST_IN_A_TABLE, histogram, page, table
from ..output.number_format import format_duration, format_shape
from ..source.source_paths import shown_path

if TYPE_CHECKING:
    from .records import InnerOperator, Location, NodeRecord, SavedRecord, TensorSummary

__all__ = ["bad_html", "first_nodes_html", "line_html", "node_html", "nodes_html", "summary_html"]

_MARKS = {"done": "✓", "current": "▶", "pending": "", "failed": "✗", "skipped": "–"}
_TENSOR_COLUMNS = ("tensor", "shape", "dtype", "#norm", "#min", "#max", "#mean", "#std", "#zeros", "bad", "magnitudes")
_NODE_COLUMNS = ("", "#", "node", "of", "#norm of gradient", "", "#time", "line")
_INSIDE_COLUMNS = ("call", "of", "#norm in", "#norm out", "#NaN/Inf", "line")
_INSIDE = "Inside of what torch.compile has compiled, in the order of the backward"
_LONGEST_BAR = 80  # pixels
_BAD = "#d32f2f"


def summary_html(summary: TensorSummary) -> str:
    """Return a tensor in numbers as a table of one row."""
    return page(table(_TENSOR_COLUMNS, [_tensor_row(summary.name or "tensor", summary)]))


def node_html(node: NodeRecord) -> str:
    """Return all that is known of a node: its gradients and what it has saved, a row for each."""
    title = element("b", None, f"node {node.index}: {node.name}" if node.index >= 0 else node.name)
    words = [node.parameter or node.module, node.state, "edited" if node.edited else "", _lasted(node)]
    facts = element("p", None, title, " · ".join(["", *filter(None, words)]))
    rows = [*_gradient_rows("gradient in", node.grad_outputs), *_gradient_rows("gradient out", node.grad_inputs)]
    rows += [_saved_row(saved) for saved in node.saved]
    tensors = table((*_TENSOR_COLUMNS, "version"), rows) if rows else ""
    inside = table(_INSIDE_COLUMNS, map(_inside_row, node.inside), caption=_INSIDE) if node.inside else ""
    return page(facts, line_html(node.location), tensors, inside)


def nodes_html(nodes: Sequence[NodeRecord], *, caption: str = "") -> str:
    """Return nodes in their order as a table, the norms of their gradients as bars on a logarithmic scale."""
    norms = [node.norm for node in nodes]
    rows = [
        (
            _MARKS[node.state],
            str(node.index),
            node.name,
            node.parameter or node.module,
            _number(node.norm),
            norm_bar(node.norm, norms),
            _lasted(node),
            line_html(node.location),
        )
        for node in nodes
    ]
    return page(table(_NODE_COLUMNS, rows, caption=caption))


def first_nodes_html(nodes: Sequence[NodeRecord]) -> str:
    """Return the nodes of a backward as a table, the first of them where there are many."""
    shown = nodes[:MOST_IN_A_TABLE]
    of = f", the first {len(shown):,} of them" if len(shown) < len(nodes) else ""
    return nodes_html(shown, caption=f"{len(nodes):,} nodes{of}")


def norm_bar(norm: float | None, among: Iterable[float | None]) -> Markup:
    """Return a bar for a norm, its length by the logarithm between the least and the largest of some norms."""
    if norm is None:
        return Markup()
    if not math.isfinite(norm):
        return bad_html("not finite")
    logs = [math.log10(other) for other in among if other is not None and 0 < other < math.inf]
    if not norm or not logs:
        return Markup()
    low = min(logs) - 1  # so that the least is seen
    length = _LONGEST_BAR * (math.log10(norm) - low) / (max(logs) - low)
    style = "display: inline-block; height: 0.7em; background: currentColor; opacity: 0.5"
    return element("span", {"style": f"{style}; width: {length:.0f}px"}, "")


def bad_html(text: str) -> Markup:
    """Return text in the colour of what is wrong, which light and dark pages both show."""
    return element("span", {"style": f"color: {_BAD}"}, text)


def _gradient_rows(name: str, group: Sequence[TensorSummary | None] | None) -> Iterable[tuple[str, ...]]:
    for number, summary in enumerate(group or ()):
        if summary is None:
            yield (f"{name} [{number}]", "undefined", *[""] * (len(_TENSOR_COLUMNS) - 1))
        else:
            yield (*_tensor_row(f"{name} [{number}]", summary), "")


def _tensor_row(name: str, summary: TensorSummary) -> tuple[str, ...]:
    numbers = [_number(value) for value in (summary.norm, summary.min, summary.max, summary.mean, summary.std)]
    bad = [f"{count:,} {what}" for count, what in ((summary.nans, "NaN"), (summary.infs, "Inf")) if count]
    told = bad_html(", ".join(bad)) if bad else ""
    shape = format_shape(summary.shape)
    return (name, shape, summary.dtype, *numbers, f"{summary.zeros:,}", told, histogram(summary.histogram))


def _inside_row(one: InnerOperator) -> tuple[str, ...]:
    told = bad_html(f"{one.bad:,}") if one.bad else ""
    return (one.operator, one.module, _number(one.given), _number(one.made), told, line_html(one.location))


def _saved_row(saved: SavedRecord) -> tuple[str, ...]:
    name = f"saved {saved.name}"
    if saved.summary is not None:
        return (*_tensor_row(name, saved.summary), _version(saved))
    shape = format_shape(saved.shape) if saved.shape is not None else ""
    return (name, shape, saved.dtype, *[""] * (len(_TENSOR_COLUMNS) - 3), _version(saved))


def _version(saved: SavedRecord) -> str:
    if saved.state == "released":
        return "released"
    if saved.saved_version is None:
        return "packed by a hook"
    if saved.state == "modified":
        told = f"saved at version {saved.saved_version}, now at {saved.current_version}: modified"
        return bad_html(told)
    return str(saved.saved_version)


def line_html(location: Location | None) -> str:
    """Return a line of the program: where it is, and its code; empty where it is not known."""
    if location is None:
        return Markup()
    return element(
        "span", None, f"{shown_path(location.filename)}:{location.lineno} ", element("code", None, location.source)
    )


def _lasted(node: NodeRecord) -> str:
    return "" if node.duration is None else format_duration(node.duration)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"
