"""Paths of the program's files as they are shown."""

from __future__ import annotations

import sys

import pytest

from gradscope.inspect import Location
from gradscope.inspect.source import source_paths
from gradscope.inspect.source.call_sites import place
from gradscope.inspect.source.source_paths import program_name, relative_path, start_directory, started_here


def test_a_path_stays_the_same_when_the_program_goes_elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(source_paths, "_started_in", "")
    started_here()
    monkeypatch.chdir("/")  # the program goes elsewhere
    assert place(Location(str(tmp_path / "train.py"), 3, "", "")) == "train.py:3"
    assert place(Location("/elsewhere/train.py", 3, "", "")) == "/elsewhere/train.py:3"
    assert start_directory() == str(tmp_path)
    assert relative_path(str(tmp_path / "a" / "b.py")) == "a/b.py"
    assert place(Location("<stdin>", 3, "", "")) == "<stdin>:3"


@pytest.mark.parametrize(
    ("argv", "session", "name"),
    [
        (["/home/me/train.py", "--lr"], "/home/me/a.ipynb", "train.py"),  # a kernel's child inherits its environment
        (["/venv/site-packages/ipykernel_launcher.py", "-f"], "/home/me/a.ipynb", "a.ipynb"),
        (["ipykernel_launcher.py"], "", "notebook"),
        ([""], "", "python"),
        ([], "", "python"),
    ],
)
def test_a_program_is_called_by_its_script_or_notebook(argv, session, name, monkeypatch):
    monkeypatch.setattr(sys, "argv", argv)
    monkeypatch.setenv("JPY_SESSION_NAME", session)
    assert program_name() == name
