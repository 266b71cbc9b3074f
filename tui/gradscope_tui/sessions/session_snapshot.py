"""What the panes show: a session at one moment, and the node under the cursor of the graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gradscope_tui.sessions.session_protocol import is_past, is_paused
from gradscope_tui.widgets.graph_rows import NOTHING, Outline
from gradscope_tui.widgets.norm_columns import NormScale

if TYPE_CHECKING:
    from gradscope.inspect.debugging.session.session_records import (
        BackwardFinding,
        FrameRecord,
        ModuleRecord,
        ParameterRecord,
        WatchRecord,
    )
    from gradscope.inspect.records.records import Location, NodeRecord, StopReason
    from gradscope_tui.sessions.session_protocol import Breakpoint

__all__ = ["Focus", "Neighbour", "Snapshot"]


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A node that another one exchanges gradients with.

    Parameters
    ----------
    index : int
        Its place in the backward.
    label : str
        How it is called here.
    """

    index: int
    label: str


@dataclass(frozen=True, slots=True, eq=False)
class Focus:
    """The node under the cursor of the graph.

    Parameters
    ----------
    node : NodeRecord or None
        With all that is known about it; None where there is no node.
    targets : mapping of int to Neighbour
        The nodes that its gradients go to, by their keys.
    sources : tuple of Neighbour
        The nodes that its gradients come from.
    derivative : tuple of (str, str)
        For each argument of its operator the expression of its gradient; empty where that is not known.
    line : Location or None
        A line to be shown in the place of that which made the node.
    used_at : Location or None
        Of a node that no line has made, such as a leaf's, the line that used what it belongs to.
    state : str
        That of the session when somebody looked.
    task : int
        Which backward the node is of.
    folded : str
        The module that is folded where the cursor is, of which this is one node; empty where none is.
    """

    node: NodeRecord | None = None
    targets: Mapping[int, Neighbour] = field(default_factory=dict)
    sources: tuple[Neighbour, ...] = ()
    derivative: tuple[tuple[str, str], ...] = ()
    line: Location | None = None
    used_at: Location | None = None
    state: str = ""
    task: int = 0
    folded: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """A session at one moment.

    Parameters
    ----------
    state : str
        A `gradscope.inspect.SessionState`.
    reason : StopReason or None
        Why it has stopped.
    nodes : sequence of NodeRecord
        The nodes of the backward that is shown, in execution order.
    task : int
        Which backward the session is in, from 1; 0 before the first.
    shown_task : int
        Which backward the nodes are of: while the program runs, that of the last stop.
    current : int
        Index of the node where the session stands; -1 where it stands at none.
    live : int
        Index of the node where the program waits, while an earlier one is looked at; -1 otherwise.
    breakpoints : tuple of Breakpoint
        The breakpoints, which count their hits.
    catching : mapping of str to bool
        At which kinds of trouble it stops.
    watches : tuple of WatchRecord
        The watch expressions with their values.
    findings : tuple of BackwardFinding
        What is wrong with the backward, as the last stop has shown.
    modules : mapping of str to ModuleRecord
        The modules by their paths, as far as they are known.
    parameters : tuple of ParameterRecord
        Every parameter, as the last stop has shown: asked for only while a pane that shows them can be seen.
    losses : tuple of float
        The losses of the latest backwards up to the one that is shown, the oldest first; empty while the program runs.
    frames : tuple of FrameRecord
        The functions that wait, as the last stop has shown: asked for only while a pane that shows them can be seen.
    outline : Outline
        Modules and edges of the nodes, once they have been read.
    folded : frozenset of str
        The modules that are folded in the graph.
    focus : Focus
        What the cursor of the graph is on: another object whenever somebody has looked anew.
    scale : NormScale
        What bars of norms stand for, and which norms are set off.
    """

    state: str = "not started"
    reason: StopReason | None = None
    nodes: Sequence[NodeRecord] = ()
    task: int = 0
    shown_task: int = 0
    current: int = -1
    live: int = -1
    breakpoints: tuple[Breakpoint, ...] = ()
    catching: Mapping[str, bool] = field(default_factory=dict)
    watches: tuple[WatchRecord, ...] = ()
    findings: tuple[BackwardFinding, ...] = ()
    modules: Mapping[str, ModuleRecord] = field(default_factory=dict)
    parameters: tuple[ParameterRecord, ...] = ()
    losses: tuple[float, ...] = ()
    frames: tuple[FrameRecord, ...] = ()
    outline: Outline = NOTHING
    folded: frozenset[str] = frozenset()
    focus: Focus = field(default_factory=Focus)
    scale: NormScale = field(default_factory=NormScale)

    @property
    def paused(self) -> bool:
        """Whether the session waits for a verb."""
        return is_paused(self.state)

    @property
    def past(self) -> bool:
        """Whether an earlier node is looked at than the one where the program waits."""
        return is_past(self.state)

    @property
    def here(self) -> NodeRecord | None:
        """The node where the session stands."""
        return self.nodes[self.current] if 0 <= self.current < len(self.nodes) else None
