"""The screen in states that matter looks as it did when somebody last looked at it."""

from __future__ import annotations

import difflib

import pytest

from tests.quick_cases import quick
from tests.tui.draw import FOLDER, PICTURES, ROOT, draw

USUAL = {"start-120x40", "vanishing-80x24", "frames"}


@pytest.mark.parametrize("name", quick(PICTURES, USUAL))
def test_the_screen_is_as_it_was_drawn(name, monkeypatch):
    monkeypatch.chdir(ROOT)
    if PICTURES[name].ranks > 1:
        pytest.importorskip("torch")
    kept = (FOLDER / f"{name}.txt").read_text(encoding="utf-8")
    drawn = draw(PICTURES[name])
    difference = "\n".join(difflib.unified_diff(kept.split("\n"), drawn.split("\n"), "kept", "drawn", lineterm="", n=0))
    assert drawn == kept, f"{difference}\n`python -m tests.tui.draw {name}` draws it anew: look at it before it is kept"


def test_every_picture_that_is_kept_is_drawn():
    assert {path.stem for path in FOLDER.glob("*.txt")} == set(PICTURES)
