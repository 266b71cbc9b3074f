"""A recording as one HTML page that needs nothing else: what was recorded, and where to look first."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence
from html import escape
from typing import Any

import numpy

from ..lines.render import number, place_of
from ..records import operator_name
from .columns import Columns, columns
from .facts import TaskRecord
from .heatmap import heat_map
from .reader import Recording
from .revival import StaticNode

__all__ = ["html_report"]

_WORST = 15
_FIRST = 20

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 1100px; margin: 2em auto; padding: 0 1em; color: #1c1f24; }
h1 { font-size: 1.5em; } h2 { font-size: 1.15em; margin-top: 2em; }
table { border-collapse: collapse; width: 100%; } th { text-align: left; font-weight: 600; }
td, th { padding: .25em .6em; border-bottom: 1px solid #e3e6ea; vertical-align: top; }
th.n, td.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
code, .place { font: 13px/1.5 ui-monospace, monospace; } .place { color: #59636e; } .bad { color: #b3261e; }
figure { margin: 0; overflow-x: auto; } svg text { font: 11px system-ui, sans-serif; fill: currentColor; }
@media (prefers-color-scheme: dark) {
  body { background: #15181c; color: #dfe3e8; } td, th { border-color: #2c3138; } .place { color: #98a2ad; }
  .bad { color: #ff8a80; }
}
"""


def html_report(recording: Recording, *, title: str = "") -> str:
    """Return a report as HTML.

    An overview, gradient norms by module and iteration as a heat map, the nodes with the largest gradients, where NaN
    and Inf came up first, and saved tensors that had been modified.

    Parameters
    ----------
    recording : Recording
    title : str
        The script's name by default.

    Returns
    -------
    str

    Raises
    ------
    RecordingError
        If the recording is damaged.
    """
    data = columns(recording)
    runs = recording.runs
    heading = escape(title or (runs[-1].title if runs else recording.path))
    parts = [
        f"<h1>{heading}: its gradients</h1>",
        _overview(recording, data),
        "<h2>Gradient norms</h2>",
        heat_map(data),
        "<h2>NaN and Inf: where they came up first</h2>",
        _bad(recording),
        "<h2>The largest gradients</h2>",
        _worst(data, descending=True),
        "<h2>The smallest gradients of parameters</h2>",
        _worst(data, descending=False),
        "<h2>Saved tensors that had been modified</h2>",
        _violations(recording),
        "<h2>Events</h2>",
        _events(recording),
    ]
    body = "\n".join(parts)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{heading}</title><style>{_STYLE}</style></head>\n<body>\n{body}\n</body></html>\n"
    )


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]], numbers: Sequence[int] = ()) -> str:
    """Return a table; the cells are HTML already."""
    kinds = [" class=n" if at in numbers else "" for at in range(len(heads))]
    lines = ["<table><tr>" + "".join(f"<th{kind}>{head}</th>" for kind, head in zip(kinds, heads)) + "</tr>"]
    for row in rows:
        cells = "".join(f"<td{kind}>{cell}</td>" for kind, cell in zip(kinds, row))
        lines.append(f"<tr>{cells}</tr>")
    return "\n".join([*lines, "</table>"])


def _overview(recording: Recording, data: Columns) -> str:
    tasks: dict[int, list[TaskRecord]] = defaultdict(list)
    for task in recording.tasks():
        tasks[task.run].append(task)
    rows = []
    for run in recording.runs:
        own = tasks[run.id]
        failed = sum(task.state == "failed" for task in own)
        began = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(run.started / 1e9))
        state = run.state if run.state != "running" else "running, or killed"
        rows.append([
            f"{escape(run.title)}{f' rank {escape(run.rank)}' if run.rank else ''}", began, state,
            str(len({task.iteration for task in own})), str(len(own)), str(sum(task.count for task in own)),
            f"<span class=bad>{failed}</span>" if failed else "0",
        ])  # fmt: skip
    total = float(data.duration.sum()) / 1e9
    heads = ("run", "began", "state", "iterations", "backwards", "nodes", "failed")
    return _table(heads, rows, (3, 4, 5, 6)) + f"<p>Nodes ran for {total:.3g} s in all.</p>"


def _owner(node: StaticNode) -> str:
    return f"<code>{escape(node.parameter or node.module)}</code>"


def _name(node: StaticNode) -> str:
    place = f"<br><span class=place>{escape(place_of(node.location))}</span>" if node.location is not None else ""
    return f"{escape(operator_name(node.name))}{place}"


def _bad(recording: Recording) -> str:
    tasks = [task for task in recording.tasks() if task.bad is not None]
    if not tasks:
        return "<p>None.</p>"
    rows = []
    for task in tasks[:_FIRST]:
        node = task.nodes[task.bad or 0]
        incoming = _counts(node.grad_outputs)
        produced = _counts(node.grad_inputs)
        what = "produced them" if not incoming and produced else "was given them"
        rows.append([
            str(task.iteration), str(node.index), f"{escape(node.name)}<br><span class=place>"
            f"{escape(place_of(node.location))}</span>", f"<code>{escape(node.parameter or node.module)}</code>",
            what, escape(produced or incoming),
        ])  # fmt: skip
    more = f"<p>{len(tasks)} backwards in all.</p>" if len(tasks) > _FIRST else ""
    return _table(("iteration", "node", "operator", "module", "this node", "elements"), rows, (0, 1)) + more


def _counts(group: Any) -> str:
    nans = sum(summary.nans for summary in group or () if summary is not None)
    infs = sum(summary.infs for summary in group or () if summary is not None)
    return ", ".join(text for text in (f"{nans} NaN" if nans else "", f"{infs} Inf" if infs else "") if text)


def _worst(data: Columns, *, descending: bool) -> str:
    """Return the nodes with the largest (or, of parameters, smallest) norm over all iterations."""
    norms = data.incoming["norm"]
    chosen = numpy.flatnonzero(numpy.isfinite(norms))
    if not descending:
        leaves = [number for number, node in data.static.items() if node.parameter]
        chosen = chosen[numpy.isin(data.node[chosen], leaves)]
    order = chosen[numpy.argsort(norms[chosen], kind="stable")]
    rows: list[list[str]] = []
    seen = set()
    for at in (order[::-1] if descending else order).tolist():
        if len(rows) == _WORST:
            break
        node = data.static[int(data.node[at])]
        kind = node.name, node.module, node.parameter, node.location
        if kind in seen:
            continue
        seen.add(kind)
        iteration, index = str(data.iteration[at]), str(data.index[at])
        zeros = str(data.incoming["zeros"][at])
        rows.append([number(float(norms[at])), _name(node), _owner(node), iteration, index, zeros])
    if not rows:
        return "<p>None recorded.</p>"
    return _table(("norm", "operator", "module", "iteration", "node", "zeros"), rows, (0, 3, 4, 5))


def _violations(recording: Recording) -> str:
    rows = [
        [
            str(v.iteration), escape(v.operator or ""), f"<code>{escape(v.saved_name or '')}</code>",
            f"{v.saved_version} &rarr; {v.current_version}", escape(v.message.partition(chr(10))[0]),
        ]
        for v in recording.violations()
    ]  # fmt: skip
    return _table(("iteration", "needed by", "saved as", "version", "error"), rows) if rows else "<p>None.</p>"


def _events(recording: Recording) -> str:
    rows = [
        [f"{event.time / 1e9:.3f} s", "" if event.iteration is None else str(event.iteration), escape(event.kind),
         escape(event.text)]
        for event in recording.events()
    ]  # fmt: skip
    return _table(("time", "iteration", "kind", ""), rows, (0,)) if rows else "<p>None.</p>"
