from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import gradscope_tui.panes
from gradscope_tui.panes import PANES, pane_table
from gradscope_tui.widgets.line_pane import LinePane
from tests.one_file import ROOT, follow, run
from tests.tui.fake import play, text_of, until

PAGE = ROOT / "docs" / "tui.md"


def test_every_file_of_the_folder_is_a_pane():
    folder = Path(gradscope_tui.panes.__file__).parent
    assert {path.stem for path in folder.glob("*_pane.py")} == {pane.__module__.rpartition(".")[2] for pane in PANES}


def test_every_pane_declares_itself():
    for pane in PANES:
        assert pane.TITLE
        assert pane.KEY_HELP
        assert pane.ABOUT
        assert pane.NUMBER > 0
    assert len({pane.KEY for pane in PANES}) == len(PANES)
    assert "".join(pane.KEY for pane in PANES[:10]) == "1234567890"


def test_two_panes_cannot_have_one_number():
    with pytest.raises(ValueError, match="Second has the number of GraphPane, 1"):

        class Second(LinePane):
            NUMBER = 1

    assert PANES[0] is LinePane.registered[1]


def test_the_documentation_has_the_table_of_the_panes():
    assert f"\n{pane_table()}\n" in PAGE.read_text(encoding="utf-8")


def test_every_pane_is_on_the_screen_with_its_number_and_title():
    async def scenario(app, pilot):
        await until(pilot, lambda: "PAUSED" in text_of(app))
        for pane in PANES:
            await pilot.press(pane.KEY)
            await until(pilot, lambda pane=pane: f"{pane.KEY} {pane.TITLE}" in text_of(app))
            assert type(app.pane) is pane

    play(scenario)


@pytest.mark.slow
def test_a_pane_is_one_file(tmp_path):
    folder = follow("Adding a pane", tmp_path)
    shutil.copy(ROOT / "tests/tui/fake.py", folder / "tests/tui/fake.py")
    done = run(folder, "python -m pytest -q -p no:cacheprovider tests/tui/panes/test_operators_pane.py")
    assert "1 passed" in done.stdout, done.stdout
