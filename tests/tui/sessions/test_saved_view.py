from __future__ import annotations

import pytest

from gradscope_tui.sessions.saved_view import SavedView, View
from gradscope_tui.widgets.line_pane import PaneGrid
from tests.tui.fake import FakeSession, play_with, text_of, until


def graph_of(app):
    return app.query_one("#pane1").region


def test_sizes_theme_and_watches_are_there_again(tmp_path):
    async def changed(app, pilot):
        await until(pilot, lambda: app.session.nodes)
        before = graph_of(app)
        await pilot.press("+")
        await until(pilot, lambda: graph_of(app).width > before.width and graph_of(app).height > before.height)
        app.theme = "nord"
        app.session.add_watch("index")

    async def again(app, pilot):
        await until(pilot, lambda: "1 watch of the last session (pane 6)" in text_of(app), 3)
        await until(pilot, lambda: [watch.expression for watch in app.session.watches] == ["index"])
        assert app.theme == "nord"
        assert (app.pane_layout.columns, app.pane_layout.rows) == (kept.columns, kept.rows)

    play_with(changed, FakeSession(), size=(120, 40), saved_view=SavedView("train.py", tmp_path))
    kept = SavedView("train.py", tmp_path).load()
    assert (kept.theme, kept.watches) == ("nord", ("index",))
    play_with(again, FakeSession(), size=(120, 40), saved_view=SavedView("train.py", tmp_path))
    assert SavedView("train.py", tmp_path).load() == kept
    assert SavedView("other.py", tmp_path).load() == View()


@pytest.mark.parametrize("text", ["", "[]", "{", '{"columns": 400}', '{"rows": "x"}', '{"watches": 3}', '"a"'])
def test_a_view_that_cannot_be_read_is_a_new_one(tmp_path, text):
    saved = SavedView("train.py", tmp_path)
    saved.path.write_text(text)
    assert saved.load() == View()


def test_where_nothing_can_be_written_nobody_is_disturbed(tmp_path):
    (tmp_path / "file").write_text("")
    SavedView("train.py", tmp_path / "file").keep(View(theme="nord"))


@pytest.mark.slow
def test_the_border_between_panes_can_be_dragged():
    async def scenario(app, pilot):
        await until(pilot, lambda: app.session.nodes and "PAUSED" in text_of(app))
        graph = graph_of(app)
        grid = app.query_one(PaneGrid).region
        await pilot.mouse_down(None, offset=(graph.right - 1, graph.y + 3))
        await pilot.hover(None, offset=(grid.x + 40, graph.y + 3))
        await pilot.mouse_up(None, offset=(grid.x + 40, graph.y + 3))
        await until(pilot, lambda: abs(graph_of(app).right - 41) <= 1)
        graph = graph_of(app)
        await pilot.mouse_down(None, offset=(5, graph.bottom))
        await pilot.hover(None, offset=(5, grid.y + 15))
        await pilot.mouse_up(None, offset=(5, grid.y + 15))
        await until(pilot, lambda: abs(graph_of(app).bottom - (grid.y + 16)) <= 1)

    play_with(scenario, FakeSession(), size=(120, 40))


def test_no_pane_disappears_and_one_alone_keeps_the_screen():
    async def scenario(app, pilot):
        await until(pilot, lambda: app.session.nodes)
        await pilot.press(*["-"] * 20)
        await until(pilot, lambda: app.pane_layout.columns == app.pane_layout.rows == 15)
        await pilot.press("m")
        await until(pilot, lambda: graph_of(app).width == 120)
        assert graph_of(app).height > 30

    play_with(scenario, FakeSession(), size=(120, 40))
