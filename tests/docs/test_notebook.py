"""The page about notebooks shows what its notebook prints."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NUMBER = re.compile(r"\d+(\.\d+)?(e-?\d+)?")


def test_the_page_shows_what_the_notebook_prints() -> None:
    for package in ("nbclient", "ipykernel", "IPython"):
        pytest.importorskip(package)
    page = (ROOT / "docs" / "notebook.md").read_text(encoding="utf-8")
    _, _, shown = page.partition("examples/notebook.ipynb -->\n")
    command = [sys.executable, "docs/run_notebook.py", "examples/notebook.ipynb"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    expected = shown.partition("<!-- /markdown -->")[0]
    # Sums are rounded differently by other processors.
    assert NUMBER.sub("#", done.stdout.strip()) == NUMBER.sub("#", expected.strip())
