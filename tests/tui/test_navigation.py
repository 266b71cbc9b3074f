from __future__ import annotations

from dataclasses import replace

import pytest

from gradscope_tui.panes import PANES
from gradscope_tui.panes.graph_pane import GraphPane
from gradscope_tui.widgets.line_pane import LinePane
from gradscope_tui.widgets.prompt_line import Prompt
from tests.tui.fake import FakeSession, chain, play, text_of, until


async def start(app, pilot):
    await until(pilot, lambda: app.session.nodes and "PAUSED" in text_of(app))


async def search(app, pilot, text):
    await pilot.press("slash")
    await until(pilot, lambda: app.query_one(Prompt).display)
    app.focused.value = text
    await pilot.press("enter")


def rows(app):
    return [line for line in text_of(app).split("\n")[3:] if line.startswith(("│", "║"))]


def test_a_filter_leaves_the_nodes_that_match_and_escape_brings_the_others_back():
    async def scenario(app, pilot):
        await start(app, pilot)
        graph = app.query_one(GraphPane)
        await search(app, pilot, "param:*")
        await until(pilot, lambda: "4 of 13 nodes" in text_of(app))
        assert graph.line_count() == 4
        assert "AccumGrad  layers.0.weight" in rows(app)[0]
        await pilot.press("j", "j")
        assert graph.index == 8
        await pilot.press("escape")
        await until(pilot, lambda: graph.line_count() == 13)
        assert graph.index == 8
        assert sum("∙" in row[:4] for row in rows(app)) > 2
        await pilot.press("full_stop")
        assert graph.index == 11
        await pilot.press("comma", "comma", "comma")
        assert graph.index == 2
        await pilot.press("comma")
        await until(pilot, lambda: "this is the first of 4 matches" in text_of(app))
        await pilot.press("escape")
        await until(pilot, lambda: not graph.found)

    play(scenario)


def test_words_and_their_opposite_are_looked_for():
    async def scenario(app, pilot):
        await start(app, pilot)
        graph = app.query_one(GraphPane)
        for text, count in (("layers.3", 3), ("train.py:2", 1), ("!addmm", 9), ("op:Relu", 5), ("line:train.py:1", 1)):
            await search(app, pilot, text)
            await until(pilot, lambda count=count: graph.filtered and len(graph.found) == count)

    play(scenario)


def test_a_filter_that_matches_nothing_or_cannot_be_understood_is_said_and_hides_nothing():
    async def scenario(app, pilot):
        await start(app, pilot)
        for text, answer in (("nowhere", "no node of this backward matches 'nowhere'"), ("what:ever", "unknown kind")):
            await search(app, pilot, text)
            await until(pilot, lambda answer=answer: answer in text_of(app))
            assert app.query_one(GraphPane).line_count() == 13

    play(scenario)


def test_while_others_are_hidden_the_line_of_keys_says_how_to_go_from_match_to_match():
    async def scenario(app, pilot):
        await start(app, pilot)
        await search(app, pilot, "op:Relu")
        await until(pilot, lambda: "n Next match  N Match before  Esc All nodes" in text_of(app).split("\n")[-1])
        graph, stands = app.query_one(GraphPane), app.session.current
        places = [graph.index]
        for key in ("n", ".", "N"):
            await pilot.press(key)
            places.append(graph.index)
        assert places == [graph.found[at] for at in (0, 1, 2, 1)]
        assert app.session.current == stands, "the program has not been stepped"
        await pilot.press("escape")
        await until(pilot, lambda: "match" not in text_of(app).split("\n")[-1].lower())
        await pilot.press("n")
        await until(pilot, lambda: app.session.current == stands + 1)

    play(scenario)


def test_a_stop_at_a_node_that_the_filter_hides_is_still_inspected():
    async def scenario(app, pilot):
        await start(app, pilot)
        await search(app, pilot, "param:*")
        await until(pilot, lambda: app.query_one(GraphPane).filtered)
        await pilot.press("f10")
        await until(pilot, lambda: "2 Inspector #1 Addmm" in text_of(app))

    play(scenario)


def test_a_module_is_folded_into_one_row_and_unfolded_again():
    async def scenario(app, pilot):
        await start(app, pilot)
        graph = app.query_one(GraphPane)
        await pilot.press("z")
        await until(pilot, lambda: "▸ layers.0  3 nodes" in text_of(app))
        assert graph.line_count() == 11
        assert graph.module == "layers.0"
        await pilot.press("j")
        assert graph.index == 3
        await pilot.press("k", "z")
        await until(pilot, lambda: "▸ layers  13 nodes" in text_of(app))
        assert graph.line_count() == 1
        await pilot.press("space")
        await until(pilot, lambda: "▸ layers.3  3 nodes" in text_of(app))
        await pilot.press("Z")
        await until(pilot, lambda: graph.line_count() == 13)
        await pilot.press("Z")
        await until(pilot, lambda: graph.line_count() == 1)

    play(scenario)


def test_unfolding_a_module_whose_only_part_holds_all_of_it_shows_the_parts_of_that():
    nodes = [replace(node, module=f"encoder.{node.module}") for node in chain(6)]

    async def scenario(app, pilot):
        await start(app, pilot)
        graph = app.query_one(GraphPane)
        await pilot.press("Z")
        await until(pilot, lambda: "▸ encoder  6 nodes" in text_of(app))
        await until(pilot, lambda: "2 Inspector #0 Relu in encoder" in text_of(app))
        await pilot.press("space")
        await until(pilot, lambda: graph.line_count() == 2)
        assert "▸ encoder.layers.0  3 nodes" in text_of(app)
        await pilot.press("space")
        await until(pilot, lambda: graph.line_count() > 3)

    play(scenario, FakeSession(nodes), size=(120, 40))


def test_stepping_inside_a_folded_module_keeps_the_cursor_on_its_row():
    async def scenario(app, pilot):
        await start(app, pilot)
        graph = app.query_one(GraphPane)
        await pilot.press("z")
        await until(pilot, lambda: graph.module)
        await pilot.press("n")
        await until(pilot, lambda: "2 Inspector #1 Addmm" in text_of(app))
        assert (graph.cursor, graph.index) == (0, 1)
        await pilot.press("n", "n")
        await until(pilot, lambda: (graph.cursor, graph.index) == (1, 3))

    play(scenario)


def test_the_tree_of_modules_folds_them_in_the_graph():
    async def scenario(app, pilot):
        await start(app, pilot)
        await pilot.press("7", "m")
        await until(pilot, lambda: "▾ layers  0/13 nodes" in text_of(app) and "  ▾ 4  0/1 nodes" in text_of(app))
        await pilot.press("j", "j", "space")
        await until(pilot, lambda: "▸ 1  0/3 nodes" in text_of(app))
        assert app.query_one(GraphPane).folded == {"layers.1"}
        await pilot.press("space")
        await until(pilot, lambda: not app.query_one(GraphPane).folded)

    play(scenario)


def test_a_click_on_a_lane_goes_to_the_node_where_it_ends():
    async def scenario(app, pilot):
        await start(app, pilot)
        row = next(row for row in rows(app) if " 1 · ○─╮" in row)
        await pilot.click(GraphPane, offset=(row.index("╮"), 2))
        assert app.query_one(GraphPane).index == 2

    play(scenario)


@pytest.mark.slow
def test_very_many_nodes_are_read_filtered_and_folded_on_other_threads():
    async def scenario(app, pilot):
        graph = app.query_one(GraphPane)
        await until(pilot, lambda: graph.outline.modules)
        await search(app, pilot, "mod:layers.9990")
        await until(pilot, lambda: graph.filtered)
        assert list(graph.found) == [29970, 29971, 29972]
        await pilot.press("escape", "z")
        await until(pilot, lambda: "▸ layers.9990  3 nodes" in text_of(app))

    play(scenario, FakeSession(chain(30_000)))


@pytest.mark.slow
def test_the_modules_of_very_many_nodes_are_shown_without_another_stop():
    async def scenario(app, pilot):
        await start(app, pilot)
        await pilot.press("7")
        await until(pilot, lambda: "7 Modules 3335" in text_of(app))

    play(scenario, FakeSession(chain(10_002)))


@pytest.mark.slow
def test_the_cursor_of_every_pane_is_drawn_over_every_kind_of_row():
    async def scenario(app, pilot):
        await start(app, pilot)
        for pane in PANES:
            await pilot.press(pane.KEY, "G", "g", "m", "m")
            await until(pilot, lambda: isinstance(app.focused, LinePane))

    play(scenario, size=(60, 20))


def test_a_filter_brings_the_cursor_to_a_node_that_matches():
    async def scenario(app, pilot):
        await start(app, pilot)
        graph = app.query_one(GraphPane)
        await pilot.press("j", "j", "j")
        await search(app, pilot, "op:Addmm")
        await until(pilot, lambda: graph.filtered)
        await until(pilot, lambda: graph.node.operator == "Addmm" and graph.index > 3)
        await pilot.press("b")
        assert [point.spec for point in app.session.breakpoints] == ["op:Addmm"]

    play(scenario)


def test_no_row_is_marked_while_the_filter_hides_the_node_of_the_stop():
    async def scenario(app, pilot):
        await start(app, pilot)
        graph = app.query_one(GraphPane)
        await search(app, pilot, "param:*")
        await until(pilot, lambda: graph.filtered and graph.index == 2)
        await pilot.press("f10")
        await until(pilot, lambda: graph.index == 1 == app.session.current)
        assert "›" not in text_of(app)
        await pilot.press("j")
        assert (graph.index, graph.cursor) == (2, 0)
        await pilot.press("f10", "f10", "f10")
        await until(pilot, lambda: graph.index == 4 == app.session.current)
        await pilot.press("k")
        assert (graph.index, graph.cursor) == (2, 0)

    play(scenario)


def test_a_fold_that_the_filter_would_hide_is_refused():
    async def scenario(app, pilot):
        await start(app, pilot)
        graph = app.query_one(GraphPane)
        await search(app, pilot, "layers.1")
        await until(pilot, lambda: graph.filtered)
        for keys in (["z"], ["Z"], ["space"], ["7", "space"]):
            app.clear_notifications()
            await pilot.press(*keys)
            await until(pilot, lambda: "Esc shows all of them" in text_of(app))
        assert not graph.folded

    play(scenario)
