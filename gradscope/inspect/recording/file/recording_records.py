"""Records in a recording besides nodes: immutable ones of its runs, iterations, backwards and events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, TypeVar

from ...output.terminal_text import one_line, printable

if TYPE_CHECKING:
    from .reader import TaskNodes

__all__ = [
    "INCOMPLETE",
    "STOPPED",
    "AnomalyRecord",
    "BackwardRecord",
    "EventRecord",
    "IterationRecord",
    "RunRecord",
    "ViolationRecord",
    "from_row",
]

_TYPES: dict[str, tuple[type, ...]] = {
    "int": (int,), "str": (str,), "int | None": (int, type(None)), "str | None": (str, type(None)),
    "float | None": (float, type(None)),
}  # fmt: skip

STOPPED = "stopped"
"""The kind of the event that says where a recording has stopped by an error of the recorder's own."""

INCOMPLETE = ("left out", STOPPED)
"""The kinds of events that say what of a run is not in its recording."""

_OF_LINES = ("message", "text")
"""What may have several lines."""

T = TypeVar("T")


def from_row(kind: type[T], row: Sequence[Any]) -> T:
    """Return a record of what stands in a row, each value of the type it should be of.

    Parameters
    ----------
    kind : type
        One of the classes below.

    Returns
    -------
    object
        Its texts are printable: a stranger may have written them.

    Raises
    ------
    ValueError
        If a value is of another type: the file is damaged.
    """
    for place, value in zip(fields(kind), row):  # type: ignore[arg-type]
        wanted = _TYPES.get(str(place.type))
        if wanted is not None and not isinstance(value, wanted):
            raise ValueError(f"{kind.__name__}.{place.name} is {value!r}")
    names = [place.name for place in fields(kind)]  # type: ignore[arg-type]
    return kind(*[_shown(name, value) if isinstance(value, str) else value for name, value in zip(names, row)])


def _shown(name: str, text: str) -> str:
    return printable(text) if name in _OF_LINES else one_line(text)


@dataclass(frozen=True, slots=True)
class RunRecord:
    """A program that was recorded.

    Attributes
    ----------
    title, framework, keep : str
        The script; ``'gradscope'``, ``'torch'``, or ``'any'`` for all that it loads; and the policy.
    rank : int or None
        Which process of a distributed program it is; None outside of one.
    world : int
        How many ranks there are.
    job : str
        What the ranks of one program have in common: where the first of them is reached.
    restart : int
        How many times ``torchrun`` had started the ranks anew.
    started : int
        Nanoseconds since 1970.
    ended : int or None
        None while it runs, and where the program was killed.
    state : str
        ``'running'`` or ``'finished'``.
    """

    id: int
    title: str
    framework: str
    keep: str
    pid: int
    host: str
    rank: int | None
    world: int
    job: str
    restart: int
    cwd: str
    started: int
    ended: int | None
    state: str

    @property
    def name(self) -> str:
        """The script, and which rank of it this was."""
        return self.title if self.rank is None else f"{self.title} rank {self.rank}"


@dataclass(frozen=True, slots=True)
class IterationRecord:
    """A training step.

    Attributes
    ----------
    number : int
        From 1 in each run; from 0 in those that were recorded by 0.4 and before.
    started : int
        Nanoseconds since the run began, as all times below.
    label : str
        The user's.
    """

    id: int
    run: int
    number: int
    started: int
    ended: int | None
    label: str


@dataclass(frozen=True, slots=True)
class BackwardRecord:
    """A backward.

    Attributes
    ----------
    iteration : int
        The number of its iteration.
    number : int
        From 1 in each run, likewise.
    parent : int or None
        The backward inside which it ran.
    state : str
        ``'running'`` (or cut off), ``'finished'`` or ``'failed'``.
    count : int
        How many nodes are recorded.
    bad : int or None
        The first node with a NaN or Inf among its gradients.
    loss : float or None
        The loss, where the line that called backward() names a variable and that is one number.
    nodes : TaskNodes
        The nodes, read when they are asked for.
    """

    id: int
    run: int
    iteration: int
    number: int
    parent: int | None
    thread: str
    started: int
    ended: int | None
    state: str
    error: str | None
    count: int
    bad: int | None
    loss: float | None
    nodes: TaskNodes = field(repr=False, compare=False)

    def _repr_html_(self) -> str:
        # Pages load when a notebook asks for one.
        from ...output.markup import Markup
        from ...output.notebook_html import note, page
        from ...records.record_html import first_nodes_html

        loss = "" if self.loss is None else f", loss {self.loss:.6g}"
        error = f": {self.error}" if self.error else ""
        told = f"backward {self.number} of iteration {self.iteration}{loss}, {self.state}{error}"
        return page(note(told), Markup(first_nodes_html(self.nodes)))


@dataclass(frozen=True, slots=True)
class EventRecord:
    """Something that happened.

    Attributes
    ----------
    iteration, task, node : int or None
        Number of the iteration, id of the task, index of the node.
    kind : str
        ``'mark'`` (the user's note), ``'error'`` (of a backward), ``'stopped'`` (by an error of gradscope's own, which
        its text tells: nothing was recorded from there); of one of many ranks also ``'silent'`` (where it was
        the last time that nothing came from it for seconds) and ``'raised'`` (what the program did not catch).
    """

    run: int
    iteration: int | None
    task: int | None
    node: int | None
    time: int
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class ViolationRecord:
    """A saved tensor that a node needed, and that had been written since.

    Attributes
    ----------
    operator, saved_name : str or None
        The node that needed it, and under which name.
    """

    run: int
    iteration: int | None
    task: int | None
    node: int | None
    time: int
    operator: str | None
    saved_name: str | None
    saved_version: int | None
    current_version: int | None
    message: str


@dataclass(frozen=True, slots=True)
class AnomalyRecord:
    """How often something happened in a run, in iterations that are recorded and in those that have been left out.

    Attributes
    ----------
    kind : str
        ``'bad'`` (a backward with NaN or Inf), ``'failed'`` (one that raised), ``'violation'``, or an event's kind.
    first, last : int
        Numbers of iterations.
    """

    run: int
    kind: str
    count: int
    first: int
    last: int
