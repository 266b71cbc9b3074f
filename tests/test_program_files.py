"""Tests of whose a file is, and of the names of a notebook's cells, in IPython itself."""

from __future__ import annotations

import linecache
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from gradscope.program_files import is_installed_file, is_library_file, is_notebook_package, source_name

CELLS = """
import sys
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
for cell in CELLS:
    shell.run_cell(cell, store_history=True).raise_error()
"""


def run_cells(*cells: str) -> str:
    """Return what cells print that one shell of IPython runs, one after the other."""
    pytest.importorskip("IPython")
    done = subprocess.run(
        [sys.executable, "-c", CELLS.replace("CELLS:", f"{cells!r}:")], capture_output=True, text=True, timeout=100
    )
    assert not done.returncode, done.stderr + done.stdout
    return done.stdout


def test_a_cell_is_called_by_its_number_and_its_lines_are_found() -> None:
    told = run_cells(
        "import gradscope as gs, gradscope.inspect as gi, linecache\nx = gs.ones(2, requires_grad=True)",
        "with gi.track():\n    y = (x.exp()\n         * 2)",
        "place = gi.debug(y.sum()).nodes[1].location\n"
        "print(place, '|', place.source, '|', linecache.getline(place.filename, place.lineno + 1))",
    )
    assert told == "In[2]:2 | y = (x.exp() |          * 2)\n\n"


def test_a_function_keeps_the_number_of_the_cell_that_defined_it() -> None:
    told = run_cells(
        "import gradscope as gs, gradscope.inspect as gi",
        "def double(x):\n    return x * 2",
        "with gi.track():\n    y = double(gs.ones(2, requires_grad=True)).sum()",
        "print([str(node.location) for node in gi.debug(y).nodes[:2]])",
    )
    assert told == "['In[3]:2', 'In[2]:2']\n"


def test_a_trace_of_anomaly_mode_begins_at_the_cell() -> None:
    told = run_cells(
        "import gradscope as gs, warnings\nwarnings.simplefilter('always')",
        "with gs.autograd.detect_anomaly():\n    y = (gs.zeros(1, requires_grad=True) - 1).sqrt()",
        "with warnings.catch_warnings(record=True) as told:\n"
        "    try:\n        with gs.autograd.detect_anomaly():\n            y.backward()\n"
        "    except RuntimeError:\n        pass\n"
        "trace = str(told[-1].message)\n"
        "print(trace.splitlines()[1].strip(), 'interactiveshell' in trace)",
    )
    assert told == 'File "In[2]", line 2, in <module> False\n'


def test_what_runs_a_cell_is_no_part_of_the_program() -> None:
    installed = "/venv/lib/python3.11/site-packages/"
    assert is_notebook_package(installed + "ipykernel_launcher.py")
    assert not is_notebook_package(installed + "timm/IPython/core.py")
    assert is_library_file(installed + "IPython/core/interactiveshell.py")
    assert not is_library_file(installed + "timm/layers/drop.py")


@pytest.mark.parametrize("shell", [None, object(), types.SimpleNamespace(compile=compile)])
def test_other_shells_call_nothing_by_a_number(shell: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))
    assert source_name("train.py") == "train.py"
    monkeypatch.setitem(sys.modules, "IPython", types.ModuleType("IPython"))  # it is being imported
    assert source_name("train.py") == "train.py"


def test_a_cell_without_lines_has_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = types.SimpleNamespace(format_code_name=lambda name: ("Cell", "In[7]"))
    shell = types.SimpleNamespace(compile=compiler)
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))
    assert source_name("<ipython-input-7-abc>") == "In[7]"
    assert "In[7]" not in linecache.cache


def test_a_folder_that_packages_were_installed_into_is_no_place_of_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("installed/timm", "installed/timm-1.0.dist-info", "project"):
        (tmp_path / folder).mkdir(parents=True)
    for folder in ("installed", "project"):
        monkeypatch.syspath_prepend(str(tmp_path / folder))
    assert is_installed_file(str(tmp_path / "installed" / "timm" / "layers.py"))
    assert not is_installed_file(str(tmp_path / "project" / "train.py"))
