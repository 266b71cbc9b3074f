"""Gradient norms by module and iteration, as a picture in SVG."""

from __future__ import annotations

import math
from typing import Any

import numpy

from ...debugging.prompt.plain_text import number
from ...output.markup import Markup, element
from ..file.recording_columns import Columns

__all__ = ["heat_map"]

_ROWS, _CELLS = 60, 100
_WIDTH, _HEIGHT, _LEFT, _TOP = 800, 16, 230, 18
# Dark blue over green to yellow: even steps for the eye, and for eyes that see no red.
_COLORS = ((68, 1, 84), (59, 82, 139), (33, 145, 140), (94, 201, 98), (253, 231, 37))


def heat_map(data: Columns) -> Markup:
    """Return gradient norms as a heat map: a row a parameter or module, a column an iteration.

    The color is the logarithm of the norm; red is NaN or Inf.

    Returns
    -------
    Markup
        A ``<figure>`` with an SVG in it.
    """
    names, table, bad = _norms(data)
    if not names:
        return element("p", None, "No gradient was recorded.")
    logs = numpy.log10(numpy.where(table > 0, table, numpy.nan))
    seen = logs[numpy.isfinite(logs)]
    low, high = (math.floor(seen.min()), math.ceil(seen.max())) if seen.size else (0, 1)
    high = max(high, low + 1)
    columns = table.shape[1]
    width = max(_WIDTH / columns, 4.0)
    total = _LEFT + width * columns + 10, _TOP + _HEIGHT * len(names) + 50
    parts = []
    for y, name in enumerate(names):
        top = _TOP + y * _HEIGHT
        parts.append(_text(_LEFT - 6, top + 12, _short(name), anchor="end"))
        for x in range(columns):
            if numpy.isnan(table[y, x]) and not bad[y, x]:
                continue
            color = "#d32f2f" if bad[y, x] else _color((logs[y, x] - low) / (high - low))
            told = f"{name}, {_iterations(data, x, columns)}: " + ("NaN or Inf" if bad[y, x] else number(table[y, x]))
            place = {"x": f"{_LEFT + x * width:.1f}", "y": top, "width": f"{width:.1f}", "height": _HEIGHT - 1}
            parts.append(element("rect", {**place, "fill": color}, element("title", None, told)))
    below = _TOP + _HEIGHT * len(names) + 12
    told = f"iterations {data.iteration.min()} to {data.iteration.max()}"
    parts.append(_text(f"{_LEFT + width * columns:.1f}", below + 10, told, anchor="end"))
    parts += _legend(below, low, high)
    size = {"width": f"{total[0]:.0f}", "height": total[1]}
    picture = element("svg", {"xmlns": "http://www.w3.org/2000/svg", **size, "role": "img"}, *parts)
    return element("figure", None, picture)


def _text(x: object, y: int, text: str, *, anchor: str = "start") -> Markup:
    return element("text", {"x": x, "y": y, **({"text-anchor": anchor} if anchor != "start" else {})}, text)


def _norms(data: Columns) -> tuple[list[str], Any, Any]:
    """Return names, the norm by name and column (NaN where there is none), and where it is NaN or Inf."""
    parameters = any(node.parameter for node in data.static.values())
    label = {number: node.parameter if parameters else node.module or node.name for number, node in data.static.items()}
    names: dict[str, int] = {}
    rows = numpy.array([names.setdefault(label[n], len(names)) if label[n] else -1 for n in data.node.tolist()], int)
    kept = (rows >= 0) & (rows < _ROWS)
    if not kept.any():
        return [], None, None
    at = _column(data)
    shape = min(len(names), _ROWS), int(at.max()) + 1
    norms = data.incoming["norm"][kept]
    places = rows[kept], at[kept]
    wrong = (data.incoming["nans"] + data.incoming["infs"])[kept] > 0
    largest = numpy.full(shape, -1.0)
    numpy.fmax.at(largest, places, norms)
    bad = numpy.zeros(shape, bool)
    numpy.logical_or.at(bad, places, wrong)
    return list(names)[: shape[0]], numpy.where(largest < 0, numpy.nan, largest), bad


def _column(data: Columns) -> Any:
    """Return the column of each node: its iteration, several to a column where there are many."""
    order = numpy.unique(data.iteration)
    places = numpy.searchsorted(order, data.iteration)
    return places if len(order) <= _CELLS else places * _CELLS // len(order)


def _iterations(data: Columns, column: int, columns: int) -> str:
    order = numpy.unique(data.iteration)
    if len(order) <= _CELLS:
        return f"iteration {order[column]}"
    inside = order[numpy.arange(len(order)) * _CELLS // len(order) == column]
    return f"iterations {inside[0]} to {inside[-1]}"


def _short(name: str) -> str:
    return name if len(name) <= 36 else "..." + name[-33:]


def _color(part: float) -> str:
    if math.isnan(part):
        return "#9e9e9e"  # a gradient of zeros has no logarithm
    place = min(max(part, 0.0), 1.0) * (len(_COLORS) - 1)
    at = min(int(place), len(_COLORS) - 2)
    mixed = (a + (b - a) * (place - at) for a, b in zip(_COLORS[at], _COLORS[at + 1]))
    return "#" + "".join(f"{round(v):02x}" for v in mixed)


def _legend(top: int, low: int, high: int) -> list[Markup]:
    steps = [
        element("rect", {"x": _LEFT + at * 6, "y": top, "width": 6, "height": 10, "fill": _color(at / 39)})
        for at in range(40)
    ]
    return [
        *steps,
        _text(_LEFT, top + 24, f"1e{low}"),
        _text(_LEFT + 240, top + 24, f"1e{high}", anchor="end"),
        _text(_LEFT + 256, top + 10, "norm; gray: all zeros; red: NaN or Inf"),
    ]
