"""Runs a notebook, and prints it as a page: its words, its cells, and the text of what each has shown.

    python docs/run_notebook.py examples/notebook.ipynb

What a browser shows as tables and pictures is text here. An error ends the run, but in a cell with the tag
``raises-exception``, of which the last line is printed.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

import nbformat
from nbclient import NotebookClient

ESCAPES = re.compile(r"\x1b\[[\d;]*m")


def page_of(notebook: Any) -> Iterator[str]:
    """Yield the parts of a notebook that has run as Markdown."""
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            yield cell.source
            continue
        yield f'```python title="In[{cell.execution_count}]"\n{cell.source}\n```'
        shown = "\n".join(filter(None, map(text_of, cell.outputs)))
        if shown:
            yield f"```text\n{shown}\n```"


def text_of(output: Any) -> str:
    """Return what an output says to who sees text alone."""
    if output.output_type == "stream":
        text = output.text
    elif output.output_type == "error":
        text = f"{output.ename}: {output.evalue.splitlines()[0]}"
    else:
        text = output.data.get("text/plain", "")
    return "\n".join(line.rstrip() for line in ESCAPES.sub("", text).rstrip().splitlines())


def main() -> None:
    """Print the notebook that the command line names."""
    notebook = nbformat.read(sys.argv[1], as_version=4)
    with tempfile.TemporaryDirectory() as directory:  # for what the cells write
        client = NotebookClient(notebook, timeout=120, resources={"metadata": {"path": directory}})
        client.execute(stderr=subprocess.DEVNULL)  # where the kernel tells of itself
    print("\n\n".join(page_of(notebook)))


if __name__ == "__main__":
    main()
