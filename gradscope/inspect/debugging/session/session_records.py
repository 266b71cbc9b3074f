"""More records: watches, variables, threads, the stack of backwards, and what a what-if has found."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ...records.records import BackwardFinding, Location, ModuleRecord

__all__ = [
    "BackwardFinding",
    "FrameRecord",
    "ModuleRecord",
    "ParameterChange",
    "ParameterRecord",
    "TaskRecord",
    "ThreadRecord",
    "VariableRecord",
    "WatchRecord",
    "WhatIf",
]


@dataclass(frozen=True, slots=True)
class ParameterRecord:
    """A parameter, and what the backwards have brought it.

    Attributes
    ----------
    requires_grad : bool
        Whether it is to get a gradient.
    index : int
        The node of the backward that is shown which brings its gradient; -1 if none does.
    norm : float or None
        The 2-norm of what that node brings; None where it is not known yet.
    unreached : bool
        Whether it requires a gradient, has none, and gets none from this backward nor got one from the latest; not so
        where another model than the backward's is cut off on purpose, as that of a GAN which has its turn later.
    recent : tuple of float
        The 2-norms of what the latest backwards brought it, the oldest first.

    See Also
    --------
    gradscope.inspect.Debugger.parameters : makes them.
    """

    path: str
    shape: tuple[int, ...]
    requires_grad: bool = True
    index: int = -1
    norm: float | None = None
    unreached: bool = False
    recent: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class WatchRecord:
    """A watch expression at a stop.

    Attributes
    ----------
    value : str or None
        The ``repr`` of its value; None before the first stop, and where it raised.
    previous : str or None
        That of the stop before.
    changed : bool
        Whether it has another value than at the stop before.
    error : str
        What it raised, as text; otherwise empty.
    recent : tuple of float
        Its values at the latest stops, the oldest first, where they were numbers.

    See Also
    --------
    gradscope.inspect.Debugger.add_watch : adds a watch.

    Examples
    --------
    >>> import gradscope as gs
    >>> import gradscope.inspect as gi
    >>> session = gi.debug(gs.ones(4, requires_grad=True).exp().sum())
    >>> session.add_watch("norm")
    WatchRecord(id=1, expression='norm', value='1.0', previous=None, changed=False, error='')
    >>> session.step()
    >>> state = session.wait()
    >>> session.watches[0].value
    '2.0'
    >>> session.abort()
    """

    id: int
    expression: str
    value: str | None = None
    previous: str | None = None
    changed: bool = False
    error: str = ""
    recent: tuple[float, ...] = field(default=(), repr=False)

    @property
    def text(self) -> str:
        """The value, or why there is none."""
        return self.error or (self.value if self.value is not None else "not evaluated yet")


@dataclass(frozen=True, slots=True)
class VariableRecord:
    """A variable of the function that is paused.

    Attributes
    ----------
    kind : str
        The name of its value's class.
    text : str
        The ``repr`` of its value, cut where that is long; its class and address where it raised.
    shape : tuple of int or None
        Of a tensor or an array; None for anything else.
    """

    name: str
    kind: str
    text: str
    shape: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class FrameRecord:
    """A function of the program that is paused, or that waits for one which is.

    Attributes
    ----------
    location : Location
        The line that it has come to.
    variables : tuple of VariableRecord
        Its variables, in the order in which they were made, without modules, functions and classes.

    See Also
    --------
    gradscope.inspect.Debugger.frames : returns them.
    """

    location: Location
    variables: tuple[VariableRecord, ...] = ()


@dataclass(frozen=True, slots=True)
class TaskRecord:
    """A backward in progress.

    Attributes
    ----------
    number : int
        Which backward of the program it is, from 1.
    depth : int
        0 for the outermost; another is nested in a node of the one before.
    index, total : int
        How far it is, and how many nodes it has (-1 where that is not known).
    node : str
        The name of the node it is at.

    See Also
    --------
    Debugger

    Examples
    --------
    >>> import gradscope as gs
    >>> import gradscope.inspect as gi
    >>> session = gi.debug(gs.ones(3, requires_grad=True).exp().sum())
    >>> state = session.wait()
    >>> session.tasks
    (TaskRecord(number=1, depth=0, index=0, total=3, node='SumBackward0'),)
    >>> session.abort()
    """

    number: int
    depth: int
    index: int
    total: int
    node: str

    def _repr_html_(self) -> str:
        # Tables load when a notebook asks for one.
        from .debugger_html import task_html

        return task_html(self)


@dataclass(frozen=True, slots=True)
class ThreadRecord:
    """A thread that has called backward().

    Attributes
    ----------
    number : int
        From 1, in the order in which they first did.
    followed : bool
        Whether the session stops in it; the others run through.
    backwards : int
        How many it has in progress, one inside the other.

    See Also
    --------
    TaskRecord

    Examples
    --------
    >>> import gradscope as gs
    >>> import gradscope.inspect as gi
    >>> session = gi.debug(gs.ones(3, requires_grad=True).exp().sum())
    >>> state = session.wait()
    >>> [(thread.number, thread.followed, thread.backwards) for thread in session.threads]
    [(1, True, 1)]
    >>> session.abort()
    """

    number: int
    name: str
    followed: bool
    backwards: int


@dataclass(frozen=True, slots=True)
class ParameterChange:
    """What a what-if does to the gradient of one leaf.

    Attributes
    ----------
    parameter : str
        Its path; empty where it has no name.
    before, after : float
        The 2-norm of the gradient that the backward brings it.
    difference : float
        The 2-norm of the difference.

    See Also
    --------
    WhatIf : has one per leaf.

    Examples
    --------
    >>> import gradscope as gs
    >>> import gradscope.inspect as gi
    >>> session = gi.debug(gs.ones(4, requires_grad=True).sum())
    >>> state = session.wait()
    >>> change = session.what_if(0, 3.0).changes[0]
    >>> change.before, change.after, change.difference
    (2.0, 6.0, 4.0)
    >>> session.abort()
    """

    parameter: str
    before: float
    after: float
    difference: float

    @property
    def relative(self) -> float:
        """The difference in units of the norm before; infinite where that was zero and there is a difference."""
        if self.before:
            return self.difference / self.before
        return float("inf") if self.difference else 0.0


@dataclass(frozen=True, slots=True)
class WhatIf:
    """What would become of the leaves if one gradient were another; ``str()`` gives a table, what changes most first.

    Attributes
    ----------
    index : int
        The node.
    slot : int
        Which incoming gradient of it.
    norm_before, norm_after : float
        Of that gradient.
    changes : tuple of ParameterChange
        One per leaf that the backward reaches from here on, in the engine's order.
    complete : bool
        Whether the norms are of all that the backward brings a leaf from this node on. Where gradients of earlier
        nodes are not recorded, they are of what passes through this node only.
    nodes_run : int
        How many nodes were run for each side, alone and without hooks.
    hooks_left_out : tuple of str
        The hooks that the backward itself calls from here on. Of PyTorch's, those of leaves and of results that were
        registered while a session or a :func:`track` listened; those put on nodes are known to C++ alone.

    See Also
    --------
    gradscope.inspect.Debugger.what_if : makes it.

    Examples
    --------
    >>> import gradscope as gs
    >>> import gradscope.inspect as gi
    >>> w = gs.ones(4, requires_grad=True)
    >>> session = gi.debug(w.sum(), params={"w": w})
    >>> state = session.wait()
    >>> found = session.what_if(0, 3.0)
    >>> found.norm_before, found.norm_after, [change.parameter for change in found.changes]
    (1.0, 3.0, ['w'])
    >>> session.abort()
    """

    index: int
    slot: int
    norm_before: float
    norm_after: float
    changes: tuple[ParameterChange, ...]
    complete: bool
    nodes_run: int
    hooks_left_out: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [f"incoming gradient {self.slot}: norm {self.norm_before:.4g} -> {self.norm_after:.4g}"]
        lines += _aligned(self.changes) if self.changes else ["  no parameter gets a gradient from here"]
        if self.changes and not self.complete:
            lines.append("  of what passes through this node only: gradients of earlier nodes are not recorded")
        return "\n".join([*lines, *(f"  without the hook {hook}" for hook in self.hooks_left_out)])


def _aligned(changes: Iterable[ParameterChange]) -> list[str]:
    rows = [("parameter", "norm", "would be", "relative change")]
    for change in sorted(changes, key=lambda change: -change.relative):
        norms = f"{change.before:.4g}", f"{change.after:.4g}"
        rows.append((change.parameter or "(no name)", *norms, f"{change.relative:.3g}"))
    widths = [max(map(len, column)) for column in zip(*rows)]
    return ["  " + "  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
