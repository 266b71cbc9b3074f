"""The picture of a graph before it is drawn: boxes of text, and arrows between them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...debugging.prompt.plain_text import place_of, short_path
from ...output.number_format import format_shape
from ...records.records import InnerOperator, TensorSpec
from ..graph_statistics import format_bytes
from ..quotient import incoming_norm, mark_of

if TYPE_CHECKING:
    from ..graph_model import BackwardGraph

__all__ = ["Arrow", "Box", "Picture", "PictureTooLargeError", "make_picture"]

_MOST_BOXES = 3_000
_LONGEST_LINE = 44
_INSIDE = 20  # calls inside of a compiled region that a tooltip lists


class PictureTooLargeError(ValueError):
    """A graph has more boxes than a picture can show."""


@dataclass(frozen=True, slots=True)
class Box:
    """A node in a picture.

    Attributes
    ----------
    lines : tuple of str
        Smaller text below the title.
    kind : str
        ``'node'``, ``'root'`` (gradients enter here), ``'leaf'`` (AccumulateGrad), or how it was folded: ``'module'``,
        ``'blocks'``, ``'chain'``, ``'order'``.
    mark : str
        What is wrong: ``'nonfinite'``, ``'modified'``, ``'failed'`` or ``''``.
    tooltip : str
        All that there is to say, several lines.
    """

    title: str
    lines: tuple[str, ...]
    kind: str
    mark: str
    tooltip: str


@dataclass(frozen=True, slots=True)
class Arrow:
    """One or more edges from box `source` to box `target`, by their place in the picture."""

    source: int
    target: int
    count: int
    tooltip: str


@dataclass(frozen=True, slots=True)
class Picture:
    """Boxes in the engine's order, and arrows the way of the gradients."""

    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]


def make_picture(graph: BackwardGraph, *, most: int = _MOST_BOXES) -> Picture:
    """Return the picture of a graph.

    Parameters
    ----------
    most : int
        How many boxes may be drawn.

    Raises
    ------
    PictureTooLargeError
        If the graph has more nodes.

    Examples
    --------
    >>> import gradscope as gs
    >>> import gradscope.inspect as gi
    >>> w = gs.ones(2, requires_grad=True)
    >>> picture = make_picture(gi.graph((w * w).sum(), params={"w": w}))
    >>> [(box.title, box.lines, box.kind) for box in picture.boxes]
    [('Sum', ('float32 ()',), 'root'), ('Mul', ('float32 (2)',), 'node'), ('w', ('float32 (2)',), 'leaf')]
    >>> [(arrow.source, arrow.target, arrow.count) for arrow in picture.arrows]
    [(0, 1, 1), (1, 2, 2)]
    """
    if len(graph) > most:
        raise PictureTooLargeError(
            f"a picture of {len(graph):,} nodes cannot be looked at (at most {most:,})\n"
            "Fold the graph, take a part of it, or write it as JSON or GraphML."
        )
    places = {key: place for place, key in enumerate(graph)}
    roots = set(graph.graph.get("roots", ()))
    arrows = []
    for source, into in graph.adjacency():
        for target, parallel in into.items():
            count = sum(data.get("count", 1) for data in parallel.values())
            arrows.append(Arrow(places[source], places[target], count, _edge_text(parallel, count)))
    return Picture(tuple(_box(data, key in roots) for key, data in graph.nodes(data=True)), tuple(arrows))


def _edge_text(parallel: Mapping[int, Mapping[str, Any]], count: int) -> str:
    if count > len(parallel):
        return f"{count} edges"
    return "\n".join(f"gradient {data['output_nr']} → input {data['input_nr']}" for data in parallel.values())


# --- boxes ---


def _box(data: Mapping[str, Any], root: bool) -> Box:
    if "members" in data:
        return Box(_clipped(data["name"]), _group_lines(data), data["kind"], mark_of(data), group_text(data))
    leaf = data["name"] == "AccumulateGrad"
    lines = [] if leaf or not data["module"] else [_module_line(data["module"])]
    if data["outputs"]:
        lines.append(_outputs_line(data["outputs"]))
    norm = incoming_norm(data)
    if norm is not None:
        lines.append(f"gradient norm {norm:.3g}")
    if data["location"] is not None and not leaf:
        lines.append(f"{_short(data['location'].filename)}:{data['location'].lineno}")
    kind = "leaf" if leaf else "root" if root else "node"
    title = (data["parameter"] if leaf else "") or data["operator"]
    return Box(_clipped(title), tuple(map(_clipped, lines)), kind, mark_of(data), node_text(data))


def _module_line(path: str) -> str:
    return f"module {path}" if path.isdigit() else path  # a bare number would say nothing


def _outputs_line(outputs: tuple[TensorSpec | None, ...]) -> str:
    first, more = specs_text(outputs[:1]), len(outputs) - 1
    if more and all(spec == outputs[0] for spec in outputs):
        return f"{len(outputs)} × {first}"
    return first if not more else f"{first}, and {more} more"


def _short(filename: str) -> str:
    """Return a path that is below the current directory, and of others the name; the tooltip has the rest."""
    path = short_path(filename)
    return os.path.basename(path) if os.path.isabs(path) or path.startswith(os.pardir) else path


def _group_lines(data: Mapping[str, Any]) -> tuple[str, ...]:
    parts = [f"{data['count']:,} nodes"]
    if data["parameters"]:
        parts.append(f"{data['parameters']:,} parameter" + "s" * (data["parameters"] != 1))
    lines = [" · ".join(parts)]
    if data["saved_bytes"]:
        lines.append(f"{format_bytes(data['saved_bytes'])} saved")
    return tuple(lines)


def _clipped(text: str) -> str:
    return text if len(text) <= _LONGEST_LINE else f"{text[: _LONGEST_LINE // 2 - 1]}…{text[-_LONGEST_LINE // 2 :]}"


# --- all there is to say ---


def specs_text(specs: tuple[TensorSpec | None, ...]) -> str:
    """Return shapes, dtypes and (beyond the CPU) devices in one line.

    Examples
    --------
    >>> specs_text((TensorSpec((2, 3), "float32", "cpu"), None))
    'float32 (2, 3), none'
    """
    return ", ".join(
        "none" if s is None else f"{s.dtype} {format_shape(s.shape)}" + (f" {s.device}" if s.device != "cpu" else "")
        for s in specs
    )


def node_text(data: Mapping[str, Any]) -> str:
    """Return all that is known of a node, several lines.

    Parameters
    ----------
    data : mapping
        The node's attributes.
    """
    lines = [f"{data['name']} (node {data['index']})"]
    lines += [f"{word} {data[word]}" for word in ("parameter", "module") if data[word]]
    if data["location"] is not None:
        lines.append(place_of(data["location"]))
    if data["outputs"]:
        lines.append(f"gradient in: {specs_text(data['outputs'])}")
    if data["inputs"]:
        lines.append(f"gradients out: {specs_text(data['inputs'])}")
    for saved in data["saved"]:
        shape = "" if saved.shape is None else f" {saved.dtype} {format_shape(saved.shape)}"
        versions = f", version {saved.saved_version} → {saved.current_version}" if saved.state == "modified" else ""
        lines.append(f"saved {saved.name}:{shape} {format_bytes(saved.nbytes)}, {saved.state}{versions}")
    for word, name in (("in", "grad_outputs"), ("out", "grad_inputs")):
        for number, summary in enumerate(data.get(name) or ()):
            if summary is not None:
                bad = f", {summary.nans} NaN, {summary.infs} Inf" if summary.nans or summary.infs else ""
                lines.append(f"gradient {word} [{number}]: norm {summary.norm:.4g}{bad}")
    if "blind" in data:
        lines.append(f"not looked into: {data['blind']}")
    inside = data.get("inside", ())
    lines += [f"inside: {inner_text(one)}" for one in inside[:_INSIDE]]
    if len(inside) > _INSIDE:
        lines.append(f"and {len(inside) - _INSIDE} more calls inside")
    if data.get("seconds") is not None:
        lines.append(f"took {data['seconds'] * 1e3:.3g} ms")
    return "\n".join(lines)


def inner_text(one: InnerOperator) -> str:
    """Return a call inside of a compiled region in a few words.

    Examples
    --------
    >>> inner_text(InnerOperator("sqrt", ("div",), "head"))
    'sqrt of head'
    """
    owner = f" of {one.module}" if one.module else ""
    return f"{one.operator}{owner}" + (f", {place_of(one.location)}" if one.location is not None else "")


def group_text(data: Mapping[str, Any]) -> str:
    """Return all that is known of a group of nodes, several lines.

    Parameters
    ----------
    data : mapping
        The group's attributes.
    """
    operators = [f"{name} ×{count}" for name, count in list(data["operators"].items())[:8]]
    more = f", and {len(data['operators']) - 8} more" if len(data["operators"]) > 8 else ""
    return "\n".join([data["name"], *_group_lines(data), ", ".join(operators) + more])
