from __future__ import annotations

from gradscope.inspect.records.records import Location
from gradscope_tui.terminal.external_editor import edit_command
from tests.tui.fake import play, text_of, until

LINE = Location("train.py", 31, "main", "")


def test_the_person_s_own_editor_is_called(monkeypatch):
    monkeypatch.setenv("VISUAL", "")
    monkeypatch.setenv("EDITOR", "emacs -nw")
    assert edit_command(LINE) == ["emacs", "-nw", "+31", "train.py"]
    monkeypatch.setenv("VISUAL", "/usr/bin/hx")
    assert edit_command(LINE) == ["/usr/bin/hx", "train.py:31"]
    monkeypatch.delenv("VISUAL")
    monkeypatch.delenv("EDITOR")
    assert edit_command(LINE) == ["vi", "+31", "train.py"]


def test_where_no_editor_can_be_shown_that_is_said():
    async def scenario(app, pilot):
        await until(pilot, lambda: app.session.nodes)
        await pilot.press("E")
        await until(pilot, lambda: "cannot be suspended here" in text_of(app))
        await pilot.press("j", "j", "E")
        await until(pilot, lambda: "line that made this node is not known" in text_of(app))

    play(scenario)
