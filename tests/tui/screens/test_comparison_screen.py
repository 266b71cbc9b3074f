from __future__ import annotations

from dataclasses import replace

from textual.widgets import DataTable

import gradscope as gs
import gradscope.inspect as gi
from gradscope_tui.panes.graph_pane import GraphPane
from gradscope_tui.screens.comparison_screen import ComparisonScreen
from gradscope_tui.sessions.recorded_session import RecordedSession
from tests.tui.fake import FakeSession, chain, play, text_of, type_in, until


def test_two_backwards_stand_beside_each_other_and_the_first_difference_is_marked():
    async def scenario(app, pilot):
        await until(pilot, lambda: app.session.nodes)
        await type_in(pilot, "compare 9", ":")
        await until(pilot, lambda: "nothing is recorded of backward 9" in text_of(app))
        here = [replace(node, norm=1.0) for node in chain()]
        app.session.kept[app.session.task_index] = here
        app.session.kept[9] = [replace(node, norm=20.0 if node.index >= 4 else 1.0) for node in here]
        await type_in(pilot, "compare 9", ":")
        await until(pilot, lambda: isinstance(app.screen, ComparisonScreen))
        table = app.screen.query_one(DataTable)
        await until(pilot, lambda: table.cursor_row == 4)
        assert table.get_row_at(4)[0].plain == "▶"
        assert table.get_row_at(4)[-1].plain == "×20"
        assert table.get_row_at(3)[0].plain == ""
        await pilot.press("n")
        await until(pilot, lambda: table.cursor_row == 5)
        await pilot.press("N", "enter")
        await until(pilot, lambda: app.query_one(GraphPane).index == 4)

    play(scenario, FakeSession(), size=(120, 40))


def test_two_iterations_and_two_recordings(tmp_path):
    model = gs.nn.Linear(3, 1)
    for name, scale in (("one", 1.0), ("other", 2.0)):
        with gi.record(tmp_path / f"{name}.gscope"):
            for step in range(2):
                (model(gs.ones(2, 3)) * scale * (step + 1)).sum().backward()

    async def scenario(app, pilot):
        await until(pilot, lambda: app.session.nodes)
        await pilot.press("v")
        await until(pilot, lambda: "there is none before it" in text_of(app))
        await pilot.press("]", "v")
        await until(pilot, lambda: isinstance(app.screen, ComparisonScreen))
        table = app.screen.query_one(DataTable)
        await until(pilot, lambda: table.row_count == len(app.session.nodes))
        assert [table.get_row_at(row)[-1].plain for row in range(2)] == ["×1", "×1"]
        assert table.get_row_at(table.row_count - 1)[-1].plain == "×0.5"
        await pilot.press("escape")
        await type_in(pilot, f"compare {tmp_path / 'other.gscope'}", ":")
        await until(pilot, lambda: isinstance(app.screen, ComparisonScreen))
        table = app.screen.query_one(DataTable)
        await until(pilot, lambda: table.row_count and table.get_row_at(table.row_count - 1)[-1].plain == "×2")

    with gi.open_recording(tmp_path / "one.gscope") as recording:
        play(scenario, RecordedSession(recording), size=(120, 40))


def test_a_backward_stands_beside_the_last_of_the_same_loss(tmp_path):
    x = gs.ones(3, requires_grad=True)
    with gi.record(tmp_path / "two.gscope"):
        for _ in range(2):
            (x * 2).sum().backward()
            x.exp().mean().backward()

    async def scenario(app, pilot):
        await until(pilot, lambda: app.session.nodes)
        await pilot.press("]", "]", "v")
        await until(pilot, lambda: isinstance(app.screen, ComparisonScreen))
        await until(pilot, lambda: "backward 3 and backward 1, the last of the same loss" in text_of(app))
        await until(pilot, lambda: app.screen.query_one(DataTable).row_count == len(app.session.nodes))

    with gi.open_recording(tmp_path / "two.gscope") as recording:
        play(scenario, RecordedSession(recording), size=(120, 40))


def test_the_node_under_the_cursor_beside_another():
    async def scenario(app, pilot):
        await until(pilot, lambda: app.session.nodes)
        await pilot.press("j")
        here = app.query_one(GraphPane).index
        await type_in(pilot, "compare node 4", ":")
        await until(pilot, lambda: isinstance(app.screen, ComparisonScreen))
        await until(pilot, lambda: f"#{here} " in text_of(app) and "and #4 " in text_of(app))
        await pilot.press("enter")
        await until(pilot, lambda: app.query_one(GraphPane).index == 4)
        await type_in(pilot, "compare node x", ":")
        await until(pilot, lambda: "NODE is a number" in text_of(app))

    play(scenario, FakeSession(), size=(120, 40))
