"""Pages of the documentation that are sessions with Python run as shown; the first page names all others."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

from gradscope.cli import SUBCOMMANDS

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize(("page", "examples"), [("autograd.md", 30), ("training.md", 20)])
def test_a_page(page: str, examples: int) -> None:
    failed, tried = doctest.testfile(str(DOCS / page), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert failed == 0
    assert tried > examples


def test_the_first_page_leads_to_all_others_and_names_every_command() -> None:
    text = (DOCS / "index.md").read_text(encoding="utf-8")
    assert {path.name for path in DOCS.glob("*.md")} == {"index.md", *re.findall(r"\(([\w-]+\.md)\)", text)}
    commands = {module.__name__.rpartition(".")[2] for module in SUBCOMMANDS}
    assert commands == set(re.findall(r"`gradscope ([a-z]+)", text))
