"""The pictures of the terminal UI are drawn from the real debugger."""

from __future__ import annotations

import asyncio
import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def load():
    spec = importlib.util.spec_from_file_location("pictures", ROOT / "docs" / "pictures.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PICTURES = load()


def words(svg):
    return " ".join(re.findall(r"<text[^>]*>([^<]*)</text>", svg)).replace("&#160;", " ")


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        pytest.param(
            *("tui-vanishing", ["FINISHED", "the gradient is vanishing", "▸ 20", "8 Findings 1"]),
            marks=pytest.mark.slow,
        ),
        ("tui-nan", ["PAUSED after", "the derivative of sqrt is infinite at 0", "8 Findings 1"]),
    ],
)
def test_a_picture_shows_what_it_is_there_for(name, shown, monkeypatch):
    monkeypatch.chdir(ROOT)
    drawn, kept = asyncio.run(PICTURES.draw(PICTURES.PICTURES[name])), ROOT / "docs" / "images" / f"{name}.svg"
    for text in shown:
        assert text in words(drawn), text
        assert text in words(kept.read_text(encoding="utf-8")), text
