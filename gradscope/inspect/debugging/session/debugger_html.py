"""A debugger in a notebook: where it stands, the nodes around, and the one at hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...output.markup import Markup, element
from ...output.notebook_html import note, page
from ...records.record_html import node_html, nodes_html
from ...records.records import SessionState

if TYPE_CHECKING:
    from .debugger import Debugger

__all__ = ["debugger_html"]

_BEFORE, _AFTER = 5, 10
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
