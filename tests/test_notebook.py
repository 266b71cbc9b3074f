"""The extension as a whole: loaded, loaded again, unloaded, and without what is optional."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("IPython")

BEGIN = """
import sys
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
def run(cell):
    shell.run_cell(cell, store_history=True).raise_error()
def magics():
    return "gradscope" in shell.magics_manager.magics["cell"]
def shows(value):
    return sorted(shell.display_formatter.format(value)[0])
"""


def told(script: str) -> str:
    done = subprocess.run([sys.executable, "-c", BEGIN + script], capture_output=True, text=True, timeout=100)
    assert not done.returncode, done.stderr + done.stdout
    return done.stdout.strip()


def test_it_is_loaded_and_unloaded():
    pytest.importorskip("treescope")
    script = """
run("%load_ext gradscope\\nimport gradscope as gs")
run("%reload_ext gradscope")
weight = shell.user_ns["gs"].ones(3, 4)
print(magics(), shows(weight))
run("%unload_ext gradscope")
print(magics(), shows(weight))
"""
    assert told(script) == "True ['text/html', 'text/plain']\nFalse ['text/plain']"


def test_pytorch_is_not_imported_for_it():
    script = """
run("%load_ext gradscope")
print("torch" in sys.modules)
"""
    assert told(script) == "False"


def test_tensors_of_pytorch_are_shown_too():
    pytest.importorskip("treescope")
    pytest.importorskip("torch")
    script = """
run("%load_ext gradscope\\nimport torch")
print(shows(shell.user_ns["torch"].nn.Linear(4, 3).weight))
run("%unload_ext gradscope")
print(shows(shell.user_ns["torch"].nn.Linear(4, 3).weight))
"""
    assert told(script) == "['text/html', 'text/plain']\n['text/plain']"


def test_without_treescope_and_anywidget_there_are_the_magics():
    script = """
sys.modules["treescope"] = sys.modules["anywidget"] = None
import importlib.util
found = importlib.util.find_spec
importlib.util.find_spec = lambda name: None if name in ("treescope", "anywidget") else found(name)
run("%load_ext gradscope\\nimport gradscope as gs, gradscope.inspect as gi")
print(magics(), shows(shell.user_ns["gs"].ones(3, 4)))
run("dbg = gi.debug(gs.ones(3, requires_grad=True).sum())")
print(shows(shell.user_ns["dbg"]))
run("dbg.abort()\\n%unload_ext gradscope")
"""
    assert told(script) == "True ['text/plain']\n['text/html', 'text/plain']"


def test_a_terminal_shows_no_widget():
    script = """
run("%load_ext gradscope\\nimport gradscope as gs, gradscope.inspect as gi")
run("dbg = gi.debug(gs.ones(3, requires_grad=True).sum())")
print(shows(shell.user_ns["dbg"]))
run("dbg.abort()")
"""
    assert told(script) == "['text/html', 'text/plain']"
