from __future__ import annotations

from dataclasses import replace

from gradscope_tui.panes.graph_pane import GraphPane
from gradscope_tui.screens.columns_screen import ColumnsScreen
from gradscope_tui.sessions.saved_view import SavedView
from tests.tui.fake import FakeSession, chain, play, play_with, text_of, until


def ran():
    """Return a session whose nodes have run: the later, the smaller the norm and the longer the time."""
    nodes = [replace(node, norm=10.0**-node.index, duration=1000 * node.index, state="done") for node in chain()]
    return FakeSession(nodes)


def rows(app):
    graph = app.query_one(GraphPane)
    return [graph.line(row, 80).plain for row in range(graph.line_count())]


async def opened(app, pilot):
    await until(pilot, lambda: app.session.nodes and "PAUSED" in text_of(app))
    await pilot.press("o")
    await until(pilot, lambda: isinstance(app.screen, ColumnsScreen))


def test_columns_are_hidden_and_shown():
    async def scenario(app, pilot):
        graph = app.query_one(GraphPane)
        await opened(app, pilot)
        before = list(graph.shown_columns())
        assert "norm" in before
        await pilot.press("j", "space")
        await until(pilot, lambda: "norm" not in graph.shown_columns())
        await pilot.press("G", "a")
        await until(pilot, lambda: list(graph.shown_columns()) == before)
        await pilot.press("escape")
        await until(pilot, lambda: not isinstance(app.screen, ColumnsScreen))

    play(scenario, ran(), size=(160, 48))


def test_which_norms_are_set_off_is_said_there_and_in_a_wide_border():
    limits = "vanishing below 1e-7, exploding above 1e+3"

    async def scenario(app, pilot):
        await opened(app, pilot)
        await until(pilot, lambda: f"a norm is {limits}" in text_of(app))
        await pilot.press("escape")
        await until(pilot, lambda: f"{limits} · norm 1e-8 to" in text_of(app))

    play(scenario, ran(), size=(200, 60))


def test_rows_are_sorted_and_put_back():
    async def scenario(app, pilot):
        graph = app.query_one(GraphPane)
        await opened(app, pilot)
        await pilot.press("j", "s", "s")
        await until(pilot, lambda: "AccumulateGrad" not in rows(app)[0] and " 12 " in rows(app)[0])
        await until(pilot, lambda: "by norm" in str(graph.border_title))
        await pilot.press("escape")
        await until(pilot, lambda: not isinstance(app.screen, ColumnsScreen))
        await pilot.press("z")
        await until(pilot, lambda: "sorted rows are single nodes" in text_of(app))
        await pilot.press("o")
        await until(pilot, lambda: isinstance(app.screen, ColumnsScreen))
        await pilot.press("j", "s", "escape")
        await until(pilot, lambda: "by norm" not in str(graph.border_title))

    play(scenario, ran(), size=(160, 48))


def test_what_has_been_chosen_is_there_again(tmp_path):
    async def chosen(app, pilot):
        await opened(app, pilot)
        await pilot.press("j", "space", "escape")
        await until(pilot, lambda: "norm" not in app.query_one(GraphPane).shown_columns())
        await until(pilot, lambda: not isinstance(app.screen, ColumnsScreen))
        await pilot.press("Z")
        await until(pilot, lambda: app.query_one(GraphPane).folded)

    async def again(app, pilot):
        await until(pilot, lambda: app.session.nodes)
        assert "norm" not in app.query_one(GraphPane).shown_columns()
        await until(pilot, lambda: "▸ layers" in text_of(app))

    for scenario in (chosen, again):
        play_with(scenario, ran(), size=(160, 48), saved_view=SavedView("train.py", tmp_path))
