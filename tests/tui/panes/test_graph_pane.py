from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

import gradscope as gs
from gradscope.inspect import Debugger
from gradscope.inspect.debugging.session.session_records import BackwardFinding, ModuleRecord
from gradscope.inspect.records.records import EdgeRecord, Location, SavedRecord, StopReason
from gradscope_tui.panes.graph_pane import GraphPane
from gradscope_tui.screens.tensor_screen import TensorScreen
from gradscope_tui.sessions.session_snapshot import Snapshot
from tests.tui.fake import FakeSession, chain, play, summary, text_of, until


def rows(app):
    return [line[1:43].rstrip(" │") for line in text_of(app).split("\n")[3:]]


def test_nodes_stand_in_execution_order_with_their_edges_and_states():
    async def scenario(app, pilot):
        await until(pilot, lambda: app.session.nodes)
        await pilot.press("n", "j")
        await until(pilot, lambda: rows(app)[1].startswith("▶"))
        await pilot.press("j")
        assert rows(app)[:4] == [
            "    0 ✓ ◉   Relu       layers.0",
            "▶   1 ‖ ◉─╮ Addmm      layers.0",
            "    2 · │ ○ AccumGrad  layers.0.weight",
            "›   3 · ○   Relu       layers.1",
        ]

    play(scenario)


def test_lanes_that_have_no_room_are_counted_in_a_column_of_their_own():
    nodes = chain(60)
    nodes[0] = replace(nodes[0], edges=tuple(EdgeRecord(1000 + n, 0) for n in range(1, 60)))

    async def scenario(app, pilot):
        await until(pilot, lambda: app.session.nodes)
        assert "+" in rows(app)[0]
        starts = {row.index(word) for row in rows(app)[:9] for word in ("Relu", "Addmm", "AccumGrad") if word in row}
        assert len(starts) == 1

    play(scenario, FakeSession(nodes))


def test_many_lanes_leave_room_for_the_operator_beside_the_numbers():
    nodes = [replace(node, norm=1.0, module="") for node in chain(40)]
    nodes[0] = replace(nodes[0], edges=tuple(EdgeRecord(1000 + n, 0) for n in range(1, 40)))

    async def scenario(app, pilot):
        await until(pilot, lambda: "1.0e+00 ███" in text_of(app))
        row = next(line for line in text_of(app).split("\n") if "Addmm" in line)
        assert "+" in row.split("Addmm")[0]
        assert "1.0e+00" in row.split("Addmm")[1]

    play(scenario, FakeSession(nodes), size=(120, 40))


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (160, 48)], ids=str)
def test_many_lanes_leave_room_for_the_names_of_parameters(size):
    nodes = [replace(node, norm=1.0) for node in chain(42)]
    nodes[0] = replace(nodes[0], edges=tuple(EdgeRecord(1000 + n, 0) for n in range(1, 42)))
    nodes[2] = replace(nodes[2], module="rnn", parameter="rnn.weight")

    async def scenario(app, pilot):
        await until(pilot, lambda: re.search(r" AccumGrad +r(nn)?\.we\S* +(10,1 +)?1.0e\+00", text_of(app)))

    play(scenario, FakeSession(nodes), size=size)


def test_a_click_moves_the_cursor():
    async def scenario(app, pilot):
        await until(pilot, lambda: app.session.nodes)
        await pilot.click(GraphPane, offset=(10, 5))
        assert app.query_one(GraphPane).cursor == 4

    play(scenario)


def test_a_node_that_failed_or_was_skipped_is_marked_by_sign_and_word():
    async def scenario(app, pilot):
        await until(pilot, lambda: app.session.nodes)
        app.session.nodes[2] = replace(app.session.nodes[2], state="skipped")
        app.session.nodes[3] = replace(app.session.nodes[3], state="failed")
        app.session._tell(replace_event(app))
        await until(pilot, lambda: "  » skip" in text_of(app) and "  ✗ fail" in text_of(app))

    play(scenario, size=(160, 48))


def replace_event(app):
    from gradscope.inspect.records.records import DebuggerEvent

    return DebuggerEvent("state", app.session.state, StopReason("step", "next node"))


def test_the_same_shape_in_another_order_is_laid_out_anew():
    async def scenario(app, pilot):
        await until(pilot, lambda: app.session.nodes)
        graph = app.query_one(GraphPane)
        nodes = list(app.session.nodes)
        nodes[4], nodes[5] = replace(nodes[5], index=4), replace(nodes[4], index=5)
        graph.show(nodes, app.session.task_index)
        assert (graph.position(1005), graph.position(1004)) == (4, 5)

    play(scenario)


def with_norms(values):
    return [replace(node, norm=value) for node, value in zip(chain(len(values)), values, strict=True)]


def test_a_row_shows_how_large_the_gradient_is_and_by_what_it_has_grown():
    async def scenario(app, pilot):
        await until(pilot, lambda: app.session.nodes)
        await until(pilot, lambda: "×0.25" in text_of(app))
        lines = text_of(app).split("\n")
        assert "5.0e-01 ███" in next(line for line in lines if "×0.25" in line)
        assert any("NaN" in line and "█" in line for line in lines)
        assert "incoming norm 1e-8 to 1e+3" in text_of(app)

    play(scenario, FakeSession(with_norms([2.0, 0.5, float("nan"), None])), size=(160, 48))


def test_a_node_that_has_made_a_nan_says_so_and_one_that_passes_it_on_does_not():
    clean, bad = summary(), summary(nans=1)
    nodes = chain(3)
    nodes[0] = replace(nodes[0], state="done", grad_outputs=(clean,), grad_inputs=(bad,), norm=1.0, inherited="")
    nodes[1] = replace(nodes[1], state="done", grad_outputs=(bad,), grad_inputs=(bad, None), norm=float("nan"))
    session = FakeSession(chain(3))

    async def scenario(app, pilot):
        await until(pilot, lambda: app.session.nodes)
        session.nodes[:] = nodes
        app.watcher.refresh()
        await until(pilot, lambda: "✗ made NaN" in text_of(app))
        assert [line.split()[1] for line in text_of(app).split("\n") if "made NaN" in line] == ["0"]

    play(scenario, session, size=(140, 40))


def test_a_node_is_not_said_to_make_a_bad_value_that_it_may_have_from_the_forward_pass():
    clean, bad = summary(), summary(nans=1)
    unknown = SavedRecord("self", (2,), "float32", 8, 0, 0, "ok")
    ran = [replace(one, state="done", grad_outputs=(clean,), grad_inputs=(bad,)) for one in chain(3)]
    nodes = [replace(ran[0], saved=(unknown,)), replace(ran[1], inherited="self"), replace(ran[2], inherited="")]
    session = FakeSession(chain(3))

    async def scenario(app, pilot):
        await until(pilot, lambda: app.session.nodes)
        session.nodes[:] = nodes
        app.watcher.refresh()
        await until(pilot, lambda: "✗ made NaN" in text_of(app))
        for index, word in enumerate(("✗ NaN came out", "✗ hands on NaN", "✗ made NaN")):
            assert [line.split()[1] for line in text_of(app).split("\n") if word in line] == [str(index)]

    play(scenario, session, size=(160, 40))


def test_a_tiny_row_names_the_node_that_made_an_infinity():
    def run():
        (gs.zeros(2, requires_grad=True) * 1).sqrt().sum().backward()

    async def scenario(app, pilot):
        await until(pilot, lambda: "PAUSED" in text_of(app))
        await pilot.press("c")
        await until(pilot, lambda: "✗ ◉" in text_of(app))
        assert re.search("✗ ◉ +Sqrt", text_of(app))

    session = Debugger.for_call(run)
    play(scenario, session, size=(20, 6))
    session.abort()
    session.wait(10)


def test_a_narrow_row_shows_the_norm_and_the_end_of_the_name():
    async def scenario(app, pilot):
        await until(pilot, lambda: app.session.nodes)
        await until(pilot, lambda: "2.0e+00" in rows(app)[0])
        assert rows(app)[2] == "    2 · │ ○ AccumGrad  l.0.weight 1.0e-09"

    play(scenario, FakeSession(with_norms([2.0, 0.5, 1e-9, None])))


def test_a_node_of_no_module_has_its_line_and_the_file_where_there_is_room():
    nodes = [replace(node, module="", parameter="") for node in chain(3, "a_long_script.py")]

    def shown(size):
        async def scenario(app, pilot):
            await until(pilot, lambda: app.session.nodes)
            found.append(next(line for line in text_of(app).split("\n") if " 1 · " in line))

        found = []
        play(scenario, FakeSession(nodes), size=size)
        return found[0]

    assert "a_long_script.py:2" in shown((160, 48))
    assert "Addmm           :2 " in shown((120, 40))


def test_a_node_whose_gradient_was_changed_is_marked_in_the_graph_and_in_the_inspector():
    nodes = chain(6)
    nodes[0] = replace(nodes[0], edited=True)

    async def scenario(app, pilot):
        await until(pilot, lambda: " 0 ✎ " in text_of(app) and "✎ edited" in text_of(app))
        assert sum("✎" in row for row in rows(app)) == 1

    play(scenario, FakeSession(nodes), size=(120, 40))


def test_enter_opens_the_gradient_of_a_node_and_says_where_none_is_known():
    session = FakeSession()
    session.tensors["at_node(0).grads[0]"] = np.ones((3, 4), "float32")

    async def scenario(app, pilot):
        await until(pilot, lambda: "▶   0" in text_of(app))
        await pilot.press("j", "enter")
        await until(pilot, lambda: "no gradient of #1 is known here; Space folds its module" in text_of(app))
        await pilot.press("k", "enter")
        await until(pilot, lambda: isinstance(app.screen, TensorScreen))
        await until(pilot, lambda: "grad in of #0" in text_of(app))

    play(scenario, session, size=(120, 40))


def test_all_rows_of_a_narrow_pane_write_the_line_in_one_way():
    nodes = [replace(node, module="", parameter="") for node in chain(3, "t.py")]
    nodes = [replace(node, operator=word) for node, word in zip(nodes, ("Mul", "LogSoftmax", "NllLossNd"))]

    async def scenario(app, pilot):
        await until(pilot, lambda: re.search(r"LogSoftmax +:2 ", text_of(app)))
        assert re.search(r"Mul +:1 ", text_of(app))
        assert "t.py:" not in "".join(line.split("││")[0] for line in text_of(app).split("\n") if "││" in line)

    play(scenario, FakeSession(nodes), size=(80, 24))


def test_the_smallest_gradient_comes_under_the_cursor_when_rows_are_sorted():
    async def scenario(app, pilot):
        await until(pilot, lambda: "▶   0" in text_of(app))
        app.session.nodes[:] = [replace(node, norm=2.0**-node.index) for node in app.session.nodes]
        await pilot.press("o", "s")
        await until(pilot, lambda: "a shape sorts nothing: s works on the others" in text_of(app))
        await pilot.press("j", "s", "s", "escape")
        await until(pilot, lambda: app.query_one(GraphPane).index == 12)

    play(scenario, size=(120, 40))


def test_a_node_that_joins_branches_says_which_inputs_get_nothing_while_parameters_are_cut_off():
    nodes = chain()
    nodes[1] = replace(nodes[1], name="CatBackward0", operator="Cat", edges=(*nodes[1].edges[:1], EdgeRecord(None, 0)))
    session = FakeSession(nodes)

    async def scenario(app, pilot):
        await until(pilot, lambda: "▶   0" in text_of(app))
        assert "✂" not in text_of(app)
        app.session.found = [BackwardFinding("unreached", "warning", "parameters get no gradient")]
        await pilot.press("n")
        await until(pilot, lambda: re.search(r"Cat .*✂ 1 input", text_of(app)))

    play(scenario, session, size=(140, 40))


def test_a_module_that_is_called_by_its_class_is_not_called_so_twice():
    session = FakeSession([replace(node, module="Linear") for node in chain(3)])
    session.known_modules = [ModuleRecord("Linear", "Linear", "in_features=4")]

    async def scenario(app, pilot):
        await until(pilot, lambda: re.search(r"▾ Linear +in_features=4", text_of(app)))
        await pilot.press("7", "m")
        await until(pilot, lambda: re.search(r"▾ Linear +\S+ nodes +in_features=4", text_of(app)))

    play(scenario, session, size=(140, 40))


@pytest.mark.parametrize("doubt", ["", "likely "])
def test_a_branch_that_is_cut_off_is_drawn_below_the_node_that_joins_it_and_leads_to_the_line_that_cuts(doubt):
    nodes = chain()
    nodes[1] = replace(nodes[1], name="CatBackward0", operator="Cat", edges=(*nodes[1].edges[:1], EdgeRecord(None, 0)))
    session = FakeSession(nodes)
    session.known_modules = [ModuleRecord("text", "Sequential"), ModuleRecord("text.0", "Linear", "4, 2")]
    where, names = Location("/code/two.py", 20, "forward", "b = b.data"), ("text.0.weight", "text.2.weight")
    lost = BackwardFinding(
        "unreached", "warning", "2 of 9 parameters get no gradient", "", where, -1, names, bool(doubt)
    )

    async def scenario(app, pilot):
        await until(pilot, lambda: "▶   0" in text_of(app))
        app.session.found = [lost]
        await pilot.press("n")
        await until(pilot, lambda: "✂ text" in text_of(app))
        shown = [line[1:77].strip(" │") for line in text_of(app).split("\n")]
        at = next(row for row, line in enumerate(shown) if " Cat " in line)
        assert shown[at + 1 : at + 4] == [
            f"✂ text  Sequential  no gradient, {doubt}two.py:20",
            "0  Linear  weight",
            "2  weight",
        ]
        await pilot.press("g", "j", "j", "j")
        assert app.query_one(GraphPane).index == 2, "what is below follows the node behind it"
        await pilot.press("enter")
        await until(pilot, lambda: "3 Source two.py:20" in text_of(app))
        await pilot.press("1", "Z")
        await until(pilot, lambda: "▸ layers" in text_of(app) and "✂ text" in text_of(app))
        app.session.found = []
        await pilot.press("n")
        await until(pilot, lambda: "✂" not in text_of(app))

    play(scenario, session, size=(140, 40))


def test_a_branch_that_no_single_node_joins_stands_above_all():
    session = FakeSession()
    session.found = [BackwardFinding("unreached", "warning", "", parameters=("head.weight", "head.bias"))]

    async def scenario(app, pilot):
        await until(pilot, lambda: "✂ head" in text_of(app))
        assert rows(app)[1].strip() == "✂ head  no gradient  weight,…"
        assert rows(app)[2].startswith("▶   0")
        assert app.query_one(GraphPane).cursor == 1, "the cursor is where the program stands"

    play(scenario, session)


def test_where_there_are_no_nodes_no_last_stop_is_named():
    async def scenario(app, pilot):
        await until(pilot, lambda: app.session.nodes)
        pane = app.query_one(GraphPane)
        pane.update(Snapshot(state="running", nodes=chain(), shown_task=1, task=2))
        assert pane.border_title == "1 Graph of backward 1, the last stop"
        pane.update(Snapshot(state="running", shown_task=1, task=0))
        assert pane.border_title == "1 Graph"

    play(scenario)


@pytest.mark.parametrize(("state", "glyph"), [("running", "✓"), ("failed", "‖")])
def test_the_node_at_which_a_program_has_died_has_not_run(state, glyph):
    nodes = chain()
    nodes[1] = replace(nodes[1], state="current")

    async def scenario(app, pilot):
        await until(pilot, lambda: app.session.nodes)
        app.query_one(GraphPane).update(Snapshot(state=state, nodes=nodes, shown_task=1, task=1))
        await until(pilot, lambda: rows(app)[1].startswith(f"    1 {glyph}"))

    play(scenario)


def test_rows_of_the_last_stop_say_how_far_its_backward_has_got_while_the_program_runs():
    async def scenario(app, pilot):
        await until(pilot, lambda: app.session.nodes)
        pane, nodes = app.query_one(GraphPane), chain()
        snapshot = Snapshot(state="running", nodes=nodes, shown_task=1, task=2)
        for run in (0, 2, 9):  # the screen is drawn in the middle of the backward too
            nodes[:] = [replace(node, state="done" if node.index < run else "pending") for node in nodes]
            pane.update(snapshot)
            await pilot.pause()
            assert [" ✓ " in row for row in rows(app)[:9]] == [True] * run + [False] * (9 - run)

    play(scenario)


def test_a_program_that_runs_is_asked_for_the_nodes_on_the_screen_alone():
    class Asked(list):
        places = set()

        def __getitem__(self, place):
            self.places.add(place)
            return super().__getitem__(place)

    async def scenario(app, pilot):
        await until(pilot, lambda: len(app.session.nodes) == 1000)
        await pilot.pause()
        nodes = Asked(app.session.nodes)
        app.query_one(GraphPane).update(Snapshot(state="running", nodes=nodes, shown_task=1, task=2))
        await pilot.pause()
        assert nodes.places
        assert max(nodes.places) < 48

    play(scenario, FakeSession(chain(1000)))


@pytest.mark.slow
def test_rows_that_are_not_painted_anew_are_as_they_were():
    """A step paints a few rows: all are as if all had been painted, whatever has been done before."""
    model = gs.nn.Sequential(*(layer for _ in range(4) for layer in (gs.nn.Linear(6, 6), gs.nn.Tanh())))

    def run():
        for _ in range(2):
            model(gs.ones(3, 6)).square().sum().backward()

    session = Debugger.for_call(run)
    keys = [*"nnnsfbnzffNNSLso", "escape", *"nc]ffi", "escape", *"cNNc"]

    async def scenario(app, pilot):
        await until(pilot, lambda: "▶   0" in text_of(app))
        graph = app.query_one(GraphPane)
        for done, key in enumerate(keys):
            await pilot.press(key)
            await until(pilot, lambda: session.state != "running" and not any(w.is_running for w in app.workers))
            await pilot.pause()
            shown = text_of(app)
            graph.refresh()
            await pilot.pause()
            assert text_of(app) == shown, f"after {keys[: done + 1]}"

    play(scenario, session, size=(120, 44))
    session.abort()
    session.wait(30)
