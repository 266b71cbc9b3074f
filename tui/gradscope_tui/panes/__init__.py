"""The panes, one file each; a file that is put here is part of the app.

- :mod:`~.graph_pane`: the nodes in execution order, with lanes for their edges; the cursor that the others follow
- :mod:`~.inspector_pane`: gradients and saved tensors of the node under the cursor
- :mod:`~.source_pane`: the line that made it
- :mod:`~.breakpoints_pane`: breakpoints, and the switches for NaN, infinity, violations and exceptions
- :mod:`~.log_pane`: what the script has printed, and answers to commands
- :mod:`~.watches_pane`: watch expressions
- :mod:`~.modules_pane`: the tree of modules and parameters, with norms over time
- :mod:`~.findings_pane`: what is wrong with this backward, the worst first
- :mod:`~.frames_pane`: the functions of the program that wait, with their variables
- :mod:`~.diagram_pane`: the modules as boxes, with norms on the arrows between them

A pane is a subclass of :class:`~gradscope_tui.widgets.line_pane.LinePane` with a ``NUMBER``.
"""

from __future__ import annotations

import importlib
import pkgutil

from gradscope_tui.widgets.line_pane import LinePane

__all__ = ["PANES", "pane_table"]

for _module in pkgutil.iter_modules(__path__, f"{__name__}."):
    importlib.import_module(_module.name)

PANES: tuple[type[LinePane], ...] = tuple(pane for _, pane in sorted(LinePane.registered.items()))
"""All panes, by their numbers."""


def pane_table() -> str:
    """Return the panes as a table in Markdown, for the documentation."""
    return "\n".join(["| | |", "|---|---|", *(f"| `{pane.KEY}` {pane.TITLE} | {pane.ABOUT} |" for pane in PANES)])
