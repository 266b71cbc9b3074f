"""A debugger in a cell: buttons that step through the backward, the nodes, and the one at hand.

The page is a front as the terminal UI is: it reads records and calls verbs over the protocol, and holds nothing of the
program.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import anywidget

from ..inspect.debugging.session.debugger import Debugger
from ..inspect.debugging.session.debugger_html import debugger_html
from ..inspect.wire.server import Front
from .widget_channel import WidgetChannel

__all__ = ["DebuggerWidget", "hide_debuggers", "show_debuggers"]

_HERE = Path(__file__).parent


class DebuggerWidget(anywidget.AnyWidget):
    """A front of a debugger in the same process.

    Parameters
    ----------
    debugger : Debugger
        Goes on when the widget is closed.
    """

    _esm = _HERE / "debugger_widget.js"
    _css = _HERE / "debugger_widget.css"

    def __init__(self, debugger: Debugger) -> None:
        super().__init__()
        self._channel = WidgetChannel(self.send)
        self.on_msg(lambda widget, content, buffers: self._channel.take(content))
        front = Front(debugger, self._channel, os.getpid())
        threading.Thread(target=front.serve, args=(lambda: None,), name="gradscope-widget", daemon=True).start()

    def close(self) -> None:
        """Take the widget from the page; the program stays where it is."""
        self._channel.close()
        super().close()


def show_debuggers(formatter: Any) -> None:
    """Let a notebook show debuggers as widgets.

    Parameters
    ----------
    formatter : IPython.core.formatters.DisplayFormatter
        The shell's.
    """
    formatter.mimebundle_formatter.for_type(Debugger, _mime_bundle)


def hide_debuggers(formatter: Any) -> None:
    """Undo :func:`show_debuggers`.

    Parameters
    ----------
    formatter : IPython.core.formatters.DisplayFormatter
        The shell's.
    """
    formatter.mimebundle_formatter.pop(Debugger, None)


def _mime_bundle(debugger: Debugger, include: Any = None, exclude: Any = None) -> Any:
    """Return the widget, and where the debugger stands now, for a page without a kernel."""
    bundle, metadata = DebuggerWidget(debugger)._repr_mimebundle_() or ({}, {})
    return {**bundle, "text/plain": repr(debugger), "text/html": debugger_html(debugger)}, metadata
