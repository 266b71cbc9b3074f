"""Where two recordings part: the first node that is not what it was."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy

from ...debugging.prompt.plain_text import number, place_of, summary_line, title_of
from ...output.number_format import format_shape
from ...output.terminal_text import printable
from ...records.records import NodeRecord, TensorSummary
from ..file.reader import Recording
from ..file.recording_records import INCOMPLETE, BackwardRecord
from ..file.schema import RecordingError

if TYPE_CHECKING:
    # Rich loads when a table is shown.
    from rich.table import Table

__all__ = ["Difference", "Divergence", "difference", "split_source"]

Identity = tuple[str, str, str, str, int]

_NUMBERS = ("norm", "min", "max", "mean", "std")
_COUNTS = ("nans", "infs", "zeros")


@dataclass(frozen=True, slots=True)
class Divergence:
    """The first node at which two recordings differ.

    Attributes
    ----------
    iteration : int
        The number of the iteration (of the first recording).
    task : int
        Which backward of that iteration, from 1.
    left, right : NodeRecord or None
        The node on both sides; None where it is missing.
    left_count, right_count : int
        How many nodes the backward has on each side.
    what : tuple of str
        One line for each thing that differs.
    """

    iteration: int
    task: int
    left: NodeRecord | None
    right: NodeRecord | None
    left_count: int
    right_count: int
    what: tuple[str, ...]


@dataclass(frozen=True, slots=True, repr=False)
class Difference:
    """The result of comparing two recordings.

    Attributes
    ----------
    left, right : str
        The names of both sides.
    compared : int
        Nodes that were found equal, before the first divergence or in all.
    iterations : int
        Iterations that were looked at.
    first : Divergence or None
        None where nothing differs.
    notes : tuple of str
        What else is to be known: that one side has more iterations, for instance.

    See Also
    --------
    difference : makes it.

    Examples
    --------
    >>> import os, tempfile
    >>> import gradscope as gs
    >>> import gradscope.inspect as gi
    >>> path = os.path.join(tempfile.mkdtemp(), "run.gscope")
    >>> w = gs.tensor([1.0, 2.0], requires_grad=True)
    >>> with gi.record(path):
    ...     for _ in range(2):
    ...         w.exp().sum().backward()
    >>> with gi.open_recording(path) as run:
    ...     found = gi.difference(run, run, left_iteration=1, right_iteration=2)
    >>> found.first, found.compared
    (None, 3)
    """

    left: str
    right: str
    compared: int
    iterations: int
    first: Divergence | None
    notes: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self.first is not None

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        nodes = f"{self.compared} node{'s' if self.compared != 1 else ''}"
        if self.first is None:
            lines = [f"no difference in {nodes} of {self.iterations} iteration{'s' if self.iterations != 1 else ''}"]
        else:
            first = self.first
            lines = [
                f"first difference after {nodes}: iteration {first.iteration}, backward {first.task}",
                *_side("A", self.left, first.left, first.left_count),
                *_side("B", self.right, first.right, first.right_count),
                *(f"  {line}" for line in first.what),
            ]
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])

    def __rich__(self) -> Table:
        # Rich loads when a table is shown.
        from rich.table import Table
        from rich.text import Text

        def told(text: str) -> Text:  # a plain string would be read as markup
            return Text(printable(text))

        table = Table(title=told(str(self).splitlines()[0]), title_justify="left")
        for heading in ("", self.left, self.right):
            table.add_column(told(heading))
        if self.first is None:
            return table
        sides = self.first.left, self.first.right
        counts = self.first.left_count, self.first.right_count
        table.add_row("node", *(told(title_of(s, n)) if s else "missing" for s, n in zip(sides, counts)))
        table.add_row("made at", *(told(place_of(s.location)) if s else "" for s in sides))
        for name in ("grad_outputs", "grad_inputs"):
            groups = [(getattr(s, name) if s else None) or () for s in sides]
            for nr in range(max(map(len, groups))):
                cells = [told(summary_line(group[nr])) if nr < len(group) else "" for group in groups]
                table.add_row(told(f"{name}[{nr}]"), *cells)
        table.add_row("differs", told("\n".join(self.first.what)))
        return table


def _side(letter: str, name: str, node: NodeRecord | None, count: int) -> list[str]:
    if node is None:
        return [f"  {letter} {name}: the node is missing"]
    place = place_of(node.location)
    return [f"  {letter} {name}: {title_of(node, count)}{f'  {place}' if place else ''}"]


def split_source(source: str) -> tuple[str, int | None]:
    """Return the path and the iteration of ``PATH`` or ``PATH:ITERATION``.

    Examples
    --------
    >>> split_source("run.gscope:12"), split_source("run.gscope")
    (('run.gscope', 12), ('run.gscope', None))
    """
    found = re.fullmatch(r"(.+):(\d+)", source)
    return (found[1], int(found[2])) if found else (source, None)


def difference(
    left: Recording,
    right: Recording,
    *,
    left_iteration: int | None = None,
    right_iteration: int | None = None,
    left_run: int | None = None,
    right_run: int | None = None,
    rtol: float = 1e-5,
    atol: float = 1e-8,
    exact: bool = False,
) -> Difference:
    """Find the first node at which two runs, ranks or iterations differ.

    Nodes are the same when module, operator, parameter, line and occurrence are: not by their place alone. Their
    gradients are compared by shape, dtype, statistics and, where both recordings keep them, values. NaN equals NaN.

    Parameters
    ----------
    left, right : Recording
        May be one and the same, with two iterations or runs.
    left_iteration, right_iteration : int, optional
        Compare only these. Without, all iterations are compared, as far as both have them.
    left_run, right_run : int, optional
        Ids of runs; the last one of each recording by default.
    rtol, atol : float
        ``|a - b| <= atol + rtol * |b|`` is no difference.
    exact : bool
        No tolerance at all.

    Returns
    -------
    Difference
        False where nothing differs.

    Raises
    ------
    RecordingError
        If an iteration or run is not there.

    See Also
    --------
    graph_difference

    Examples
    --------
    >>> import os, tempfile
    >>> import gradscope as gs
    >>> import gradscope.inspect as gi
    >>> path = os.path.join(tempfile.mkdtemp(), "run.gscope")
    >>> w = gs.tensor([1.0, 2.0], requires_grad=True)
    >>> with gi.record(path):
    ...     for scale in (3.0, 4.0):
    ...         (w.exp() * scale).sum().backward()
    >>> with gi.open_recording(path) as run:
    ...     found = gi.difference(run, run, left_iteration=1, right_iteration=2)
    >>> found.first.left.name, found.compared, found.first.what[0]
    ('MulBackward0', 1, 'grad_inputs[0]: norm 4.243 and 5.657')
    """
    tolerance = (0.0, 0.0) if exact else (rtol, atol)
    a = _ComparedRun(left, left_run, left_iteration)
    b = _ComparedRun(right, right_run, right_iteration)
    if left_iteration is not None or right_iteration is not None:
        first = left_iteration if left_iteration is not None else right_iteration
        second = right_iteration if right_iteration is not None else left_iteration
        pairs = [(first, second)]
    else:
        pairs = [(n + a.begin, n + b.begin) for n in sorted(a.since_begin & b.since_begin)]
    notes = _notes(a, b) if left_iteration is None and right_iteration is None else ()
    compared = 0
    for first, second in pairs:
        found, equal = _compare_iterations(a, b, a.tasks(first), b.tasks(second), first or 0, tolerance)
        compared += equal
        if found is not None:
            return Difference(a.name, b.name, compared, len(pairs), found, notes)
    return Difference(a.name, b.name, compared, len(pairs), None, notes)


class _ComparedRun:
    """One of two runs that are compared."""

    def __init__(self, recording: Recording, run: int | None, iteration: int | None) -> None:
        runs = recording.runs
        if not runs:
            raise RecordingError(f"{recording.path} holds no run yet")
        self.recording = recording
        self.run = runs[-1].id if run is None else run
        if self.run not in [r.id for r in runs]:
            raise RecordingError(f"{recording.path} has no run {run}; it has {', '.join(str(r.id) for r in runs)}")
        self.name = recording.path + ("" if iteration is None else f":{iteration}")
        self.iterations: dict[int, list[BackwardRecord]] = {}
        for task in recording.tasks(run=self.run):
            self.iterations.setdefault(task.iteration, []).append(task)
        self.begin = 0 if 0 in self.iterations else 1  # recordings of 0.4 and before count from 0
        self.since_begin = {number - self.begin for number in self.iterations}

    def tasks(self, iteration: int | None) -> list[BackwardRecord]:
        """Return the backwards of an iteration."""
        if iteration not in self.iterations:
            last = max(self.iterations, default=None)
            known = "none" if last is None else f"{min(self.iterations)} to {last}"
            gone = "".join(f"\n{text[:1].upper()}{text[1:]}." for text in self.left_out())
            raise RecordingError(f"{self.recording.path} has no iteration {iteration}; it has {known}{gone}")
        return self.iterations[iteration]

    def left_out(self) -> list[str]:
        """Return what the recording says of what is not in it of the run."""
        return [e.text for e in self.recording.events() if e.kind in INCOMPLETE and e.run == self.run]


def _notes(a: _ComparedRun, b: _ComparedRun) -> tuple[str, ...]:
    notes = [f"{letter}: {text}" for letter, side in (("A", a), ("B", b)) for text in side.left_out()]
    if a.since_begin != b.since_begin:
        notes.append(
            f"A has {len(a.iterations)} iterations, B has {len(b.iterations)}; those that both have were compared"
        )
    return tuple(notes)


def _compare_iterations(
    a: _ComparedRun,
    b: _ComparedRun,
    left: list[BackwardRecord],
    right: list[BackwardRecord],
    iteration: int,
    tolerance: tuple[float, float],
) -> tuple[Divergence | None, int]:
    """Return the first divergence of two iterations, and how many nodes were equal before it."""
    equal = 0
    for place, (one, two) in enumerate(zip(left, right)):
        found, same = _compare_tasks(a, b, one, two, tolerance)
        equal += same
        if found is not None:
            nodes, what = found
            return Divergence(iteration, place + 1, *nodes, one.count, two.count, what), equal
    if len(left) != len(right):
        what = (f"{len(left)} backwards in A, {len(right)} in B",)
        return Divergence(iteration, min(len(left), len(right)) + 1, None, None, 0, 0, what), equal
    return None, equal


Nodes = tuple[NodeRecord | None, NodeRecord | None]


def _compare_tasks(
    a: _ComparedRun, b: _ComparedRun, left: BackwardRecord, right: BackwardRecord, tolerance: tuple[float, float]
) -> tuple[tuple[Nodes, tuple[str, ...]] | None, int]:
    equal = 0
    others = dict(_identified(right))
    for identity, node in _identified(left):
        other = others.pop(identity, None)
        if other is None:
            there = right.nodes[node.index] if node.index < right.count else None
            instead = f"; in its place is {there.name}" if there is not None else ""
            return ((node, None), (f"missing in B{instead}",)), equal
        what = _compare_nodes(a, b, (left.id, right.id), node, other, tolerance)
        if what:
            return ((node, other), tuple(what)), equal
        equal += 1
    for other in others.values():
        return ((None, other), ("missing in A",)), equal
    return None, equal


def _identified(task: BackwardRecord) -> Iterator[tuple[Identity, NodeRecord]]:
    """Yield the nodes of a backward, each with what it has in common with itself in another run."""
    counts: dict[tuple[str, str, str, str], int] = {}
    for node in task.nodes:
        place = node.location
        # Files have other names on other machines and in copies, and a line may have moved with an edit elsewhere.
        line = "" if place is None else f"{place.function}: {place.source or place.lineno}"
        kind = node.module, node.name, node.parameter, line
        counts[kind] = occurrence = counts.get(kind, 0) + 1
        yield (*kind, occurrence), node


def _compare_nodes(
    a: _ComparedRun,
    b: _ComparedRun,
    tasks: tuple[int, int],
    left: NodeRecord,
    right: NodeRecord,
    tolerance: tuple[float, float],
) -> list[str]:
    """Return what differs of one node."""
    what = [] if left.state == right.state else [f"state: {left.state} and {right.state}"]
    for name in ("grad_outputs", "grad_inputs"):
        one, two = getattr(left, name), getattr(right, name)
        if one is None or two is None:
            continue
        if len(one) != len(two):
            what.append(f"{name}: {len(one)} and {len(two)} gradients")
            continue
        for nr, (x, y) in enumerate(zip(one, two)):
            found = _compare_tensors(x, y, tolerance)
            if not found:
                values = (
                    a.recording.value(tasks[0], left.index, name, nr),
                    b.recording.value(tasks[1], right.index, name, nr),
                )
                found = _compare_values(*values, tolerance)
            what += [f"{name}[{nr}]: {text}" for text in found]
    return what


def _compare_tensors(
    left: TensorSummary | None, right: TensorSummary | None, tolerance: tuple[float, float]
) -> list[str]:
    if left is None or right is None:
        return [] if left is right else [f"{'undefined' if t is None else 'defined'}" for t in (left, right)][:1]
    if left.shape != right.shape or left.dtype != right.dtype:
        return [f"{left.dtype} {format_shape(left.shape)} and {right.dtype} {format_shape(right.shape)}"]
    found = []
    for name in _COUNTS:
        one, two = getattr(left, name), getattr(right, name)
        # Rounding makes or hides a zero; within a tolerance that is no difference.
        if one != two and (name != "zeros" or tolerance == (0.0, 0.0)):
            found.append(f"{name} {one} and {two}")
    # A mean or an extreme may be tiny beside the elements: what it is compared with is their size.
    scale = max(abs(v) for v in (left.max or 0.0, left.min or 0.0, right.max or 0.0, right.min or 0.0))
    for name in _NUMBERS:
        one, two = getattr(left, name), getattr(right, name)
        if not _close(one, two, tolerance, scale if name in ("mean", "std", "min", "max") else 0.0):
            found.append(f"{name} {number(one)} and {number(two)}" + _apart(one, two))
    return found


def _apart(one: float | None, two: float | None) -> str:
    """Return how far numbers are apart that look alike when rounded."""
    if number(one) != number(two) or one is None or two is None:
        return ""
    return f" (apart by {abs(one - two):.3g})"


def _close(one: float | None, two: float | None, tolerance: tuple[float, float], scale: float) -> bool:
    if one is None or two is None:
        return one is two
    if one == two or (math.isnan(one) and math.isnan(two)):
        return True
    rtol, atol = tolerance
    return abs(one - two) <= atol + rtol * max(abs(two), scale)


def _compare_values(left: Any, right: Any, tolerance: tuple[float, float]) -> list[str]:
    if left is None or right is None:
        return []
    rtol, atol = tolerance
    same = numpy.isclose(left, right, rtol=rtol, atol=atol, equal_nan=left.dtype.kind in "fc")
    if same.all():
        return []
    where = tuple(int(i) for i in numpy.argwhere(~same)[0])
    one, two = left[where], right[where]
    count = int(numpy.count_nonzero(~same))
    return [f"{count} of {same.size} elements, the first at {list(where)}: {one} and {two}"]
