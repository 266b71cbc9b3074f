"""Records as plain text: what line mode prints, and what a log keeps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...output.number_format import format_shape
from ...output.sparkline import sparkline
from ...output.terminal_text import one_line
from ...records.records import InnerOperator, Location, NodeRecord, SavedRecord, TensorSummary, WriteRecord
from ...source.source_paths import relative_path
from ..session.node_sequence import NodeList
from ..session.session_records import BackwardFinding, FrameRecord, ParameterRecord, WatchRecord

__all__ = [
    "finding_text",
    "frames_text",
    "graph_text",
    "inside_lines",
    "list_text",
    "node_text",
    "parameters_text",
    "place_of",
    "saved_line",
    "short_path",
    "title_of",
    "watch_line",
    "write_line",
]

_LATEST = 40
"""Backwards in a line that shows norms over time."""

_MARKS = {"done": "+", "current": ">", "pending": " ", "failed": "!", "skipped": "-"}


def short_path(filename: str) -> str:
    """Return a path relative to the directory in which the program was started, where that is shorter."""
    relative = relative_path(filename)
    return relative if len(relative) < len(filename) else filename


def place_of(location: Location | None) -> str:
    """Return a location as ``file:line  source``, or an empty string.

    Examples
    --------
    >>> place_of(Location("train.py", 31, "main", "loss = f(x)"))
    'train.py:31  loss = f(x)'
    """
    return "" if location is None else f"{short_path(location.filename)}:{location.lineno}  {location.source}".rstrip()


def title_of(record: NodeRecord, total: int) -> str:
    """Return a node in one line.

    Parameters
    ----------
    total : int
        How many nodes the backward has.

    Examples
    --------
    >>> title_of(NodeRecord(3, 9, "AccumulateGrad", "AccumulateGrad", 1, "fc1", "fc1.weight", None, ()), 12)
    'node 3 of 12: AccumulateGrad  fc1.weight'
    """
    owner = record.parameter or record.module
    return f"node {record.index} of {total}: {record.name}" + (f"  {owner}" if owner else "")


def number(value: float | None) -> str:
    """Return a number as statistics show it."""
    return "-" if value is None else f"{value:.4g}"


def summary_line(summary: TensorSummary | None) -> str:
    """Return a tensor's statistics in one line.

    Examples
    --------
    >>> from gradscope.inspect import summarize
    >>> summary_line(summarize([3.0, 4.0, 0.0]))
    'float64 (3)  norm 5  min 0  max 4  mean 2.333  std 1.7  zeros 1  [3, 4, 0]'
    >>> summary_line(summarize([3.0, float("nan")]))
    'float64 (2)  norm nan  finite 1 of 2  min 3  max 3  mean 3  std 0  nans 1  [3, nan]'
    """
    if summary is None:
        return "undefined"
    form = f"{summary.dtype} {format_shape(summary.shape)}" + (f" {summary.device}" if summary.device != "cpu" else "")
    if not summary.has_values:
        return f"{form}  no values"
    parts = [
        form,
        f"norm {number(summary.norm)}",
        *filter(None, [_finite_part(summary)]),
        *(f"{name} {number(getattr(summary, name))}" for name in ("min", "max", "mean", "std")),
        *(f"{name} {getattr(summary, name)}" for name in ("zeros", "nans", "infs") if getattr(summary, name)),
    ]
    return "  ".join([*parts, summary.preview])


def _finite_part(summary: TensorSummary) -> str:
    """Return how many elements the least, largest and average are of; empty where they are of all."""
    left_out = summary.nans + summary.infs
    return f"finite {summary.numel - left_out} of {summary.numel}" if left_out else ""


def saved_line(saved: SavedRecord) -> str:
    """Return a saved tensor in one line.

    Examples
    --------
    >>> saved_line(SavedRecord("mat1", (2, 3), "float32", 24, 0, 1, "modified"))
    'mat1  float32 (2, 3)  saved at version 0, now at 1: MODIFIED'
    """
    if saved.state == "released":
        shape = f"  {saved.dtype} {format_shape(saved.shape)}" if saved.shape is not None else ""
        kept = "" if saved.summary is None else f", kept here:  {summary_line(saved.summary).partition('  ')[2]}"
        return f"{saved.name}{shape}  released{kept}"
    if saved.saved_version is None:
        version = "packed by a hook: no version"
    elif saved.state == "modified":
        version = f"saved at version {saved.saved_version}, now at {saved.current_version}: MODIFIED"
    else:
        version = f"version {saved.saved_version} ok"
    line = f"{saved.name}  {saved.dtype} {format_shape(saved.shape)}  {version}"
    if saved.summary is not None:
        line += "  " + summary_line(saved.summary).partition("  ")[2]
    return line


def node_text(record: NodeRecord, nodes: Sequence[NodeRecord]) -> str:
    """Return all that is known of a node, as ``print`` shows it.

    Parameters
    ----------
    nodes : sequence of NodeRecord
        The nodes of its backward, to name where its gradients go.
    """
    lines = [title_of(record, len(nodes)) + f"  ({record.state})"]
    lines.append(f"  made at        {_made_at(record)}")
    if record.module:
        lines.append(f"  module         {record.module}")
    lines += _block("gradients in", _gradients(record.grad_outputs, "not seen"))
    waiting = "not computed yet" if record.state in ("pending", "current") else "not seen"
    targets = _targets(record, nodes)
    produced = _gradients(record.grad_inputs, waiting)
    if record.grad_inputs is not None:
        produced = [f"{text}  {target}" for text, target in zip(produced, targets)] or [
            "none: a leaf keeps its gradient"
        ]
    else:
        produced += targets
    lines += _block("gradients out", produced)
    lines += _block("saved", [line for saved in record.saved for line in _saved_lines(saved)] or ["nothing"])
    lines += _block("compiled", inside_lines(record.inside))
    return "\n".join(lines)


def inside_lines(inside: Sequence[InnerOperator]) -> list[str]:
    """Return what is inside of a compiled region as a table, in the order of the backward.

    Examples
    --------
    >>> line = Location("a.py", 3, "f", "x.sqrt()")
    >>> inside_lines([InnerOperator("sqrt", ("div",), "head", line, 0.0, float("nan"), 2)])
    ['sqrt  head  norm 0 -> nan  2 NaN or Inf  a.py:3  x.sqrt()']
    """
    rows = [
        (
            one.operator,
            one.module,
            "" if one.made is None else f"norm {number(one.given)} -> {number(one.made)}",
            f"{one.bad} NaN or Inf" if one.bad else "",
            place_of(one.location),
        )
        for one in inside
    ]
    widths = [max((len(cell) for cell in column), default=0) for column in zip(*rows)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths) if width).rstrip() for row in rows]


def _saved_lines(saved: SavedRecord) -> list[str]:
    return [saved_line(saved), *(f"  {write_line(write)}" for write in saved.writes)]


def _made_at(record: NodeRecord) -> str:
    if record.location is not None:
        return f"{place_of(record.location)}  (in {record.location.function})"
    return "not recorded" if record.name != "AccumulateGrad" else "a leaf: not made by an operator"


def _block(name: str, entries: list[str]) -> list[str]:
    return [f"  {name if not i else '':<14} {entry}" for i, entry in enumerate(entries)]


def _gradients(group: Iterable[TensorSummary | None] | None, missing: str) -> list[str]:
    if group is None:
        return [missing]
    return [f"[{i}] {summary_line(summary)}" for i, summary in enumerate(group)]


def _targets(record: NodeRecord, nodes: Sequence[NodeRecord]) -> list[str]:
    found = []
    for nr, edge in enumerate(record.edges):
        target = _node_of(edge.target_key, nodes)
        if target is None:
            found.append(f"[{nr}] -> nowhere")
        else:
            found.append(f"[{nr}] -> node {target.index} {target.name} input {edge.input_nr}")
    return [text.partition("] ")[2] if record.grad_inputs is not None else text for text in found]


def _node_of(key: int | None, nodes: Sequence[NodeRecord]) -> NodeRecord | None:
    if isinstance(nodes, NodeList):
        position = None if key is None else nodes.position(key)
        return None if position is None else nodes[position]
    return next((node for node in nodes if node.key == key), None)


def list_text(nodes: Sequence[NodeRecord], looked_at: int = -1) -> str:
    """Return nodes as a table in the engine's order.

    Parameters
    ----------
    looked_at : int
        The number of one that has run and is marked with ``<``.

    Examples
    --------
    >>> node = NodeRecord(0, 9, "SumBackward0", "Sum", 1, "", "", Location("a.py", 3, "f", "x.sum()"), (), "current")
    >>> print(list_text([node]))
    >    0  SumBackward0  a.py:3  x.sum()
    """
    rows = []
    for node in nodes:
        mark = "<" if node.index == looked_at else _MARKS[node.state]
        grad = node.grad_outputs[0] if node.grad_outputs else None
        rows.append(
            (
                f"{mark} {node.index:>4}",
                node.name,
                node.parameter or node.module,
                f"norm {number(grad.norm)}" if grad is not None else "",
                place_of(node.location),
            )
        )
    widths = [max((len(cell) for cell in column), default=0) for column in zip(*rows)]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths) if width).rstrip() for row in rows)


def graph_text(nodes: Sequence[NodeRecord]) -> str:
    """Return the graph as text: every node in the engine's order, and to which its gradients go."""
    index = {node.key: node.index for node in nodes}
    rows = []
    for node in nodes:
        targets = [str(index[e.target_key]) for e in node.edges if e.target_key in index]
        owner = node.parameter or node.module
        row = f"{_MARKS[node.state]} {node.index:>4}  {node.name}{f'  {owner}' if owner else ''}"
        rows.append(row + (f"  -> {', '.join(targets)}" if targets else ""))
    return "\n".join(rows)


def write_line(write: WriteRecord) -> str:
    """Return who wrote a saved tensor in one line.

    Examples
    --------
    >>> write_line(WriteRecord("result", "add_", Location("train.py", 31, "main", "y += 1")))
    '`result` was written by add_ at train.py:31  y += 1'
    """
    where = place_of(write.location) or "a line that is not known"
    return f"`{write.name}` was written by {write.operator} at {where}"


def finding_text(finding: BackwardFinding) -> str:
    """Write a finding: what it is, the node and the line, and what more there is to say.

    Examples
    --------
    >>> print(finding_text(BackwardFinding("slope", "warning", "Sqrt will be infinite", "at 0", None, 3)))
    Sqrt will be infinite  (node 3)
      at 0
    """
    node = f"node {finding.index}" if finding.index >= 0 else ""
    line = place_of(finding.location)
    line = f"likely {line}" if line and finding.likely else line
    where = ", ".join(part for part in (node, line) if part)
    first = finding.title + (f"  ({where})" if where else "")
    return "\n".join([first, *(f"  {line}" for line in finding.text.splitlines())])


def frames_text(frames: Iterable[FrameRecord]) -> str:
    """Return functions that wait, the innermost first, each with its variables.

    Examples
    --------
    >>> from gradscope.inspect.debugging.session.session_records import VariableRecord
    >>> variable = VariableRecord("lr", "float", "0.1")
    >>> print(frames_text([FrameRecord(Location("train.py", 31, "fit", "loss.backward()"), (variable,))]))
    fit  train.py:31  loss.backward()
        lr = 0.1
    """
    lines = []
    for frame in frames:
        lines.append(f"{frame.location.function}  {place_of(frame.location)}")
        lines += [f"    {one.name} = {one_line(one.text)}" for one in frame.variables]
    return "\n".join(lines)


def parameters_text(parameters: Sequence[ParameterRecord]) -> str:
    """Write the parameters in a table, those first that are not reached.

    Examples
    --------
    >>> lost = ParameterRecord("tower.weight", (1, 3), unreached=True)
    >>> print(parameters_text([ParameterRecord("weight", (1, 3), True, 2, 0.5, False, (8.0, 2.0, 0.5)), lost]))
    parameter     shape   norm  latest backwards
    tower.weight  (1, 3)     -  not reached: `why tower.weight`
    weight        (1, 3)   0.5  █▅▁
    """
    rows = [("parameter", "shape", "norm", "latest backwards")]
    for one in sorted(parameters, key=lambda one: not one.unreached):
        rows.append((one.path, format_shape(one.shape), number(one.norm), _over_time(one)))
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    return "\n".join(
        f"{path:<{widths[0]}}  {shape:<{widths[1]}}  {norm:>{widths[2]}}  {latest}".rstrip()
        for path, shape, norm, latest in rows
    )


def _over_time(parameter: ParameterRecord) -> str:
    if parameter.unreached:
        return f"not reached: `why {parameter.path}`"
    if not parameter.requires_grad:
        return "requires no gradient"
    return sparkline(parameter.recent, _LATEST)


def watch_line(watch: WatchRecord) -> str:
    """Return a watch in one line.

    Examples
    --------
    >>> watch_line(WatchRecord(1, "norm", "3.0", "2.0", changed=True))
    'watch 1: norm = 3.0  (was 2.0)'
    """
    was = f"  (was {watch.previous})" if watch.changed and watch.previous is not None else ""
    return f"watch {watch.id}: {watch.expression} = {watch.text}{was}"
