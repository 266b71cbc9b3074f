"""Notebooks that run in a kernel of their own, as ``jupyter execute`` runs them."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest


def run_notebook(directory: Path, *cells: str) -> list[Any]:
    """Return the outputs of each cell, all of them run whatever one raises."""
    nbformat = pytest.importorskip("nbformat")
    client = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    resources = {"metadata": {"path": str(directory)}}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # those of the client's own libraries
        client.NotebookClient(notebook, timeout=100, allow_errors=True, resources=resources).execute()
    return [cell.outputs for cell in notebook.cells]


def texts(outputs: Any) -> str:
    """Return what a cell has shown to who sees text alone."""
    return "\n".join(
        output.get("text") or output.get("data", {}).get("text/plain") or output.get("evalue") or ""
        for output in outputs
    )


def html_of(outputs: Any) -> str:
    """Return the markup that a cell has shown last."""
    found: str = [output.data["text/html"] for output in outputs if "text/html" in output.get("data", {})][-1]
    return found


def kinds(outputs: Any) -> list[str]:
    """Return what kinds of outputs a cell has: ``'stream'``, ``'error'``, ..."""
    return [output.output_type for output in outputs]


def run_cell_with_answers(cell: str, answers: list[str]) -> str:
    """Return what a cell prints whose ``input()`` a person answers."""
    manager = pytest.importorskip("jupyter_client.manager")
    pytest.importorskip("ipykernel")
    printed, left = [], iter(answers)

    def hear(message: Any) -> None:
        printed.append(message["content"].get("text") or "\n".join(message["content"].get("traceback", [])))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # those of the client's own libraries
        kernel, client = manager.start_new_kernel()
        try:
            client.execute_interactive(
                cell,
                allow_stdin=True,
                timeout=100,
                output_hook=hear,
                stdin_hook=lambda request: client.input(next(left)),
            )
        finally:
            client.stop_channels()
            kernel.shutdown_kernel(now=True)
    return "".join(printed)
