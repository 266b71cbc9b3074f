"""A recording as one HTML page that needs nothing else: what was recorded, and where to look first."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy

from ...debugging.prompt.plain_text import number, place_of
from ...output.markup import Markup, element, policy, render
from ...records.records import NodeRecord, operator_name
from ..file.reader import Recording
from ..file.record_decoder import StaticNode
from ..file.recording_columns import Columns, columns
from ..file.recording_records import BackwardRecord
from .heatmap import heat_map
from .series_view import SHOWN, series_row

__all__ = ["html_report"]

_WORST = 15
_FIRST = 20
_SERIES = 100

_STYLE = Markup("""
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
""")


@dataclass(frozen=True, slots=True)
class _Section:
    """A heading with a table below it.

    Attributes
    ----------
    rows : sequence of sequence of str
        Their cells are text, or Markup.
    numbers : tuple of int
        The columns of numbers.
    none : str
        What stands there where there are no rows.
    note : str
        What stands below the table.
    """

    title: str
    heads: tuple[str, ...]
    rows: Sequence[Sequence[str]]
    numbers: tuple[int, ...] = ()
    none: str = "None."
    note: str = ""


def html_report(recording: Recording, *, title: str = "") -> str:
    """Return a report as HTML.

    An overview, gradient norms by module and iteration as a heat map, the nodes with the largest gradients, where NaN
    and Inf came up first, and saved tensors that had been modified.

    Parameters
    ----------
    title : str
        The script's name by default.

    Raises
    ------
    RecordingError
        If the recording is damaged.
    """
    data = columns(recording)
    runs = recording.runs
    return render(
        "recording/reports/report.html",
        title=title or (runs[-1].title if runs else recording.path),
        policy=policy(style=_STYLE),
        style=_STYLE,
        overview=_overview(recording),
        total=f"Nodes ran for {float(data.duration.sum()) / 1e9:.3g} s in all.",
        picture=heat_map(data),
        sections=[
            _bad(recording),
            _series(recording),
            _worst(data, "The largest gradients", descending=True),
            _worst(data, "The smallest gradients of parameters", descending=False),
            _violations(recording),
            _events(recording),
        ],
    )


def _overview(recording: Recording) -> tuple[Sequence[str], Sequence[Sequence[str]], Sequence[int]]:
    """Return the headings, the rows and the columns of numbers of the table of runs."""
    tasks: dict[int, list[BackwardRecord]] = defaultdict(list)
    for task in recording.tasks():
        tasks[task.run].append(task)
    rows = []
    for run in recording.runs:
        own = tasks[run.id]
        failed = sum(task.state == "failed" for task in own)
        began = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(run.started / 1e9))
        state = run.state if run.state != "running" else "running, or killed"
        rows.append([
            run.name, began, state,
            str(len({task.iteration for task in own})), str(len(own)), str(sum(task.count for task in own)),
            element("span", {"class": "bad"}, str(failed)) if failed else "0",
        ])  # fmt: skip
    return ("run", "began", "state", "iterations", "backwards", "nodes", "failed"), rows, (3, 4, 5, 6)


def _owner(node: StaticNode | NodeRecord) -> Markup:
    return element("code", None, node.parameter or node.module)


def _named(name: str, place: str) -> Markup:
    """Return a node's name, and below it the line that made it."""
    below = (element("br"), element("span", {"class": "place"}, place)) if place else ()
    return Markup().join([element("span", None, name), *below])


def _bad(recording: Recording) -> _Section:
    tasks = [task for task in recording.tasks() if task.bad is not None]
    rows = []
    for task in tasks[:_FIRST]:
        node = task.nodes[task.bad or 0]
        incoming = _counts(node.grad_outputs)
        produced = _counts(node.grad_inputs)
        what = "produced them" if not incoming and produced else "was given them"
        rows.append([
            str(task.iteration), str(node.index), _named(node.name, place_of(node.location)), _owner(node), what,
            produced or incoming,
        ])  # fmt: skip
    return _Section(
        "NaN and Inf: where they came up first",
        ("iteration", "node", "operator", "module", "this node", "elements"),
        rows,
        (0, 1),
        note=f"{len(tasks)} backwards in all." if len(tasks) > _FIRST else "",
    )


def _counts(group: Any) -> str:
    nans = sum(summary.nans for summary in group or () if summary is not None)
    infs = sum(summary.infs for summary in group or () if summary is not None)
    return ", ".join(text for text in (f"{nans} NaN" if nans else "", f"{infs} Inf" if infs else "") if text)


def _worst(data: Columns, title: str, *, descending: bool) -> _Section:
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
        name = _named(operator_name(node.name), place_of(node.location))
        rows.append([number(float(norms[at])), name, _owner(node), iteration, index, zeros])
    heads = "norm", "operator", "module", "iteration", "node", "zeros"
    return _Section(title, heads, rows, (0, 3, 4, 5), none="None recorded.")


def _series(recording: Recording) -> _Section:
    """Return how gradients went over the whole of the newest run, those of which there is something to say first."""
    runs = recording.runs
    series = recording.series(runs[-1].id if runs else None)
    newest = max((one.last for one in series), default=0)
    rows = [(element("code", None, one.name or one.kind), *series_row(one, newest)) for one in series]
    rows.sort(key=lambda row: not row[-1])
    note = f"The first {_SERIES} of {len(rows)}; gradscope view --series has all." if len(rows) > _SERIES else ""
    heads = "gradient of", *SHOWN
    return _Section("Over the whole run", heads, rows[:_SERIES], (2, 3, 4, 5), none="None recorded.", note=note)


def _violations(recording: Recording) -> _Section:
    rows = [
        [
            str(v.iteration), v.operator or "", element("code", None, v.saved_name or ""),
            f"{v.saved_version} \u2192 {v.current_version}", v.message.partition("\n")[0],
        ]
        for v in recording.violations()
    ]  # fmt: skip
    heads = "iteration", "needed by", "saved as", "version", "error"
    return _Section("Saved tensors that had been modified", heads, rows)


def _events(recording: Recording) -> _Section:
    rows = [
        [f"{event.time / 1e9:.3f} s", "" if event.iteration is None else str(event.iteration), event.kind, event.text]
        for event in recording.events()
    ]
    return _Section("Events", ("time", "iteration", "kind", ""), rows, (0,))
