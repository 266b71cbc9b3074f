"""A debugger in a notebook: where it stands, the nodes around, and the one at hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...output.markup import Markup, element
from ...output.notebook_html import note, page, table
from ...output.number_format import count
from ...records.record_html import node_html, nodes_html
from ...records.records import SessionState

if TYPE_CHECKING:
    from .debugger import Debugger
    from .session_records import TaskRecord

__all__ = ["debugger_html", "task_html"]

_BEFORE, _AFTER = 5, 10
_LONGEST_BAR = 80  # pixels
_TASK_COLUMNS = ("#backward", "nested in", "#node", "#of", "how far", "at")
_AT_A_NODE = (SessionState.PAUSED_BEFORE, SessionState.PAUSED_AFTER)


def debugger_html(debugger: Debugger) -> str:
    """Return where a debugger stands.

    Examples
    --------
    >>> import gradscope as gs
    >>> import gradscope.inspect as gi
    >>> session = gi.debug(gs.ones(3, requires_grad=True).exp().sum())
    >>> "node 0: SumBackward0" in debugger_html(session)
    True
    >>> session.abort()
    """
    here, nodes = debugger.current, debugger.nodes
    reason = f": {debugger.reason}" if debugger.reason else ""
    title = element("p", None, element("b", None, str(debugger.state)), reason)
    if here < 0:
        return page(title)
    first = max(0, here - _BEFORE)
    around = debugger.records(first, min(len(nodes), here + _AFTER))
    shown = f"nodes {first} to {first + len(around) - 1} of {len(nodes)}"
    told = debugger.explain() if debugger.state in _AT_A_NODE else ""
    nodes_shown = Markup(nodes_html(around, caption=shown))
    return page(title, note(told) if told else "", nodes_shown, Markup(node_html(debugger.node)))


def task_html(task: TaskRecord) -> str:
    """Return how far a backward is, as a table of one row.

    Examples
    --------
    >>> from gradscope.inspect import TaskRecord
    >>> "MulBackward0" in task_html(TaskRecord(number=1, depth=0, index=2, total=4, node="MulBackward0"))
    True
    """
    total = str(task.total) if task.total >= 0 else ""
    nested = count(task.depth, "other") if task.depth else ""
    row = (str(task.number), nested, str(task.index), total, _progress(task.index, task.total), task.node)
    return page(table(_TASK_COLUMNS, [row]))


def _progress(index: int, total: int) -> Markup:
    """Return the part of the nodes that have run as a bar; empty where it is not known how many there are."""
    if total <= 0 or index < 0:
        return Markup()
    done = min(1.0, index / total)
    rest = {"style": f"display: inline-block; width: {_LONGEST_BAR}px; border: 1px solid currentColor"}
    run = {"style": f"height: 0.7em; width: {done:.0%}; background: currentColor; opacity: 0.5"}
    return element("div", rest, element("div", run, ""))
