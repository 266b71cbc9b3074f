"""Gradscope in a notebook: ``%load_ext gradscope``.

- :mod:`~.magics`: ``%%gradscope check``, ``record`` and ``doctor``: a cell under an instrument
- :mod:`~.cell_runner`: runs the lines of a cell, and keeps the error that they raise
- :mod:`~.check_result`: what the sanitizer has found in a cell
- :mod:`~.tensor_html`: a tensor as a heat map, drawn by treescope
- :mod:`~.debugger_widget`: a debugger whose buttons step through the backward
- :mod:`~.widget_channel`: the debugger's protocol over the messages of a widget

Explanations, nodes, recordings and graphs show themselves as tables and pictures without the extension.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

__all__ = ["load_ipython_extension", "unload_ipython_extension"]


def load_ipython_extension(shell: Any) -> None:
    """Add the magics to a shell, and what shows tensors and debuggers.

    Parameters
    ----------
    shell : IPython.core.interactiveshell.InteractiveShell
        Calls this for ``%load_ext gradscope``.
    """
    # Magics need IPython, which has called.
    from .magics import GradscopeMagics

    shell.register_magics(GradscopeMagics)
    if find_spec("treescope") is not None:
        # It needs treescope, which is optional.
        from .tensor_html import show_tensors

        show_tensors(shell.display_formatter)
    if hasattr(shell, "kernel") and find_spec("anywidget") is not None:  # a terminal shows no widgets
        # The widget needs anywidget, which is optional.
        from .debugger_widget import show_debuggers

        show_debuggers(shell.display_formatter)


def unload_ipython_extension(shell: Any) -> None:
    """Take from a shell what :func:`load_ipython_extension` has added.

    Parameters
    ----------
    shell : IPython.core.interactiveshell.InteractiveShell
        Calls this for ``%unload_ext gradscope``.
    """
    shell.magics_manager.magics["cell"].pop("gradscope", None)
    if find_spec("treescope") is not None:
        # It needs treescope, which is optional.
        from .tensor_html import hide_tensors

        hide_tensors(shell.display_formatter)
    if find_spec("anywidget") is not None:
        # The widget needs anywidget, which is optional.
        from .debugger_widget import hide_debuggers

        hide_debuggers(shell.display_formatter)
