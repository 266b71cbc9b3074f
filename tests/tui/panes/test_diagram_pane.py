from __future__ import annotations

import threading
from dataclasses import replace

import gradscope as gs
from gradscope.inspect import Debugger
from gradscope.inspect.debugging.session.session_records import BackwardFinding, ModuleRecord
from gradscope.inspect.records.records import EdgeRecord, Location
from gradscope.inspect.wire import messages as m
from gradscope_tui.panes import diagram_pane
from gradscope_tui.panes.diagram_pane import MOST, DiagramPane
from gradscope_tui.panes.graph_pane import GraphPane
from gradscope_tui.sessions.session_snapshot import Snapshot
from gradscope_tui.widgets.graph_rows import Outline
from tests.inspect.wire.programs import served
from tests.tui.fake import FakeSession, chain, play, summary, text_of, until


def session(nodes=None):
    fake = FakeSession(nodes)
    fake.known_modules = [ModuleRecord("layers.1", "Linear", "in_features=4, out_features=8")]
    return fake


async def opened(app, pilot):
    await until(pilot, lambda: app.session.nodes and "PAUSED" in text_of(app))
    await pilot.press("0", "m")
    await until(pilot, lambda: "0 Diagram" in text_of(app) and "▶ layers.0" in text_of(app))
    return app.query_one(DiagramPane)


def row_with(app, text):
    return next(line for line in text_of(app).split("\n") if text in line)


def test_modules_are_boxes_with_what_they_are_and_the_norms_that_are_known():
    async def scenario(app, pilot):
        await opened(app, pilot)
        assert "0 Diagram 5" in text_of(app)
        assert "┏━ ▶ layers.0 " in text_of(app)  # the session stands there, and so does the cursor
        assert "╭─ layers.1 " in text_of(app)
        assert "Linear in_features=4, out_features=8" in text_of(app)
        assert "3 nodes" in text_of(app)

    play(scenario, session(), size=(120, 40))


def test_a_backward_that_has_ended_is_shown_from_the_loss_on():
    async def scenario(app, pilot):
        await until(pilot, lambda: app.session.nodes and "PAUSED" in text_of(app))
        await pilot.press("c")
        await until(pilot, lambda: "FINISHED" in text_of(app))
        await pilot.press("0")
        pane = app.query_one(DiagramPane)
        await until(pilot, lambda: pane.copied())
        assert pane.copied() == "layers.0"

    play(scenario, FakeSession(backwards=1), size=(120, 40))


def test_a_step_shows_the_norms_of_what_has_run_and_marks_nan():
    nodes = [replace(node, norm=0.5) for node in chain()]
    nodes[4] = replace(nodes[4], norm=float("nan"))

    async def scenario(app, pilot):
        await opened(app, pilot)
        await until(pilot, lambda: "▼5.0e-01" in text_of(app))
        pane = app.query_one(DiagramPane)
        assert "5.0e-01 ████████▍" in text_of(app)
        pane.cursor = 1
        assert pane.copied() == "layers.1  0.5"
        assert pane._color_of(1) == "bad"  # NaN is at a node inside, though what comes in is 0.5
        assert pane._color_of(2) == ""

    play(scenario, session(nodes), size=(120, 40))


def test_the_arrow_keys_go_along_the_arrows_and_enter_goes_to_the_nodes():
    async def scenario(app, pilot):
        pane = await opened(app, pilot)
        await pilot.press("down", "j")
        assert pane.copied().startswith("layers.2")
        await pilot.press("up")
        assert pane.copied().startswith("layers.1")
        await pilot.press("G")
        assert pane.copied().startswith("layers.4")
        await pilot.press("g", "j", "enter")
        await until(pilot, lambda: app.query_one(GraphPane).index == 3)
        assert app.pane is pane

    play(scenario, session(), size=(120, 40))


def test_space_closes_the_module_around_and_opens_it_again():
    async def scenario(app, pilot):
        pane = await opened(app, pilot)
        await pilot.press("space")
        await until(pilot, lambda: "0 Diagram 1" in text_of(app) and "▶ layers " in text_of(app))
        await pilot.press("space")
        await until(pilot, lambda: "0 Diagram 5" in text_of(app))
        assert pane.copied().startswith("layers.0")

    play(scenario, session(), size=(120, 40))


def test_a_box_that_has_no_parts_and_nothing_around_says_so():
    nodes = [replace(node, module="net") for node in chain(3)]

    async def scenario(app, pilot):
        await until(pilot, lambda: app.session.nodes and "PAUSED" in text_of(app))
        await pilot.press("0")
        await until(pilot, lambda: "0 Diagram 1" in text_of(app))
        await pilot.press("space")
        await until(pilot, lambda: "net has no parts, and no module is around it" in text_of(app))

    play(scenario, session(nodes))


def test_zoom_draws_larger_and_smaller_boxes_and_ends():
    async def scenario(app, pilot):
        pane = await opened(app, pilot)
        assert "+ - Zoom" in text_of(app)
        largest = pane.line_count()
        await pilot.press("minus")
        await until(pilot, lambda: pane.line_count() < largest)
        framed = pane.line_count()
        await pilot.press("minus")
        await until(pilot, lambda: pane.line_count() < framed)
        await pilot.press("minus")
        await until(pilot, lambda: "these are the smallest boxes" in text_of(app))
        assert "›▶ layers.0" in text_of(app)
        await pilot.press("plus", "plus")
        await until(pilot, lambda: pane.line_count() == largest)
        await pilot.press("plus")
        await until(pilot, lambda: "these are the largest boxes" in text_of(app))

    play(scenario, session(), size=(120, 40))


def test_more_boxes_than_can_be_drawn_are_refused():
    nodes = [replace(node, module=f"net.{node.index}") for node in chain(MOST + 9)]

    async def scenario(app, pilot):
        await until(pilot, lambda: app.session.nodes and "PAUSED" in text_of(app))
        await pilot.press("0")
        await until(pilot, lambda: "0 Diagram 1" in text_of(app))
        await pilot.press("space")
        await until(pilot, lambda: "that would be 309 boxes: 300 are drawn at most" in text_of(app))

    play(scenario, session(nodes))


def test_a_click_selects_a_box_a_second_goes_to_its_nodes_and_dragging_pans():
    async def scenario(app, pilot):
        pane = await opened(app, pilot)
        spot = pane._shown.drawing.spots[1]
        place = (spot.x + 3 + 1, spot.y + 1 + 1)
        await pilot.click(DiagramPane, offset=place)
        assert pane.copied().startswith("layers.1")
        await pilot.click(DiagramPane, offset=place)
        await until(pilot, lambda: app.query_one(GraphPane).index == 3)
        await pilot.mouse_down(DiagramPane, offset=(10, 12))
        await pilot.hover(DiagramPane, offset=(10, 4))
        await pilot.mouse_up(DiagramPane, offset=(10, 4))
        await until(pilot, lambda: pane.scroll_offset.y > 0)
        assert pane.copied().startswith("layers.1")

    play(scenario, session(), size=(120, 24))


def test_a_name_is_found_and_its_box_selected():
    async def scenario(app, pilot):
        pane = await opened(app, pilot)
        await pilot.press("slash", *"layers.3", "enter")
        await until(pilot, lambda: pane.copied().startswith("layers.3"))

    play(scenario, session(), size=(120, 40))


def test_a_branch_that_is_cut_off_is_a_box_with_the_line_that_cuts():
    nodes = chain()
    nodes[3] = replace(nodes[3], name="CatBackward0", operator="Cat", edges=(*nodes[3].edges[:1], EdgeRecord(None, 0)))
    fake = session(nodes)
    fake.known_modules.append(ModuleRecord("text", "Sequential"))
    where, names = Location("/code/two.py", 20, "forward", "b = b.data"), ("text.0.weight", "text.2.weight")
    fake.found = [BackwardFinding("unreached", "warning", "get no gradient", "", where, -1, names, likely=True)]

    async def scenario(app, pilot):
        pane = await opened(app, pilot)
        await until(pilot, lambda: "╭─ ✂ text " in text_of(app))
        assert "│ Sequential " in text_of(app)
        assert "│ no gradient, :20? " in text_of(app)
        pane.cursor = len(pane._shown.diagram.boxes) - 1
        assert [pair for pair in pane._shown.diagram.arrows if pair[1] == pane.cursor] == [(1, pane.cursor)]
        assert pane.copied() == "text"
        await pilot.press("space")
        await until(pilot, lambda: "text has no parts" in text_of(app))
        await pilot.press("enter", "m")
        await until(pilot, lambda: "3 Source two.py:20" in text_of(app))

    play(scenario, fake, size=(120, 40))


# What it costs -------------------------------------------------------------------------------------------------------


def layers():
    model = gs.nn.Sequential(*(gs.nn.Linear(2, 2) for _ in range(60)))
    for _ in range(2):
        model(gs.ones(1, 2)).sum().backward()


def test_a_step_asks_a_program_for_norms_and_for_no_page_of_nodes_that_is_not_seen():
    debugger = Debugger.for_call(layers)

    async def scenario(app, pilot):
        await until(pilot, lambda: app.session.nodes and "PAUSED" in text_of(app))
        await pilot.press("0", "m")
        pane = app.query_one(DiagramPane)
        await until(pilot, lambda: len(pane._shown.diagram.boxes) > 60)
        await until(pilot, lambda: not pane._making)
        asked.clear()
        for step in range(1, 8):
            await pilot.press("n")
            await until(pilot, lambda step=step: pane._snapshot.current == step and not pane._making)
        assert sum(norm is not None for norm in pane._shown.norms) > 2
        assert any(isinstance(verb, m.Norms) for verb in asked)
        assert {verb.start for verb in asked if isinstance(verb, m.Nodes)} <= {0}

    asked = []
    with served(debugger) as remote:
        ask = remote._ask
        remote._ask = lambda verb: asked.append(verb) or ask(verb)
        play(scenario, remote, size=(120, 40))


def test_the_boxes_are_made_once_for_an_outline_and_open_modules(monkeypatch):
    made = []

    def noted(outline, nodes, opened, most):
        made.append(opened)
        return made_by(outline, nodes, opened, most)

    made_by = diagram_pane.diagram_of
    monkeypatch.setattr(diagram_pane, "diagram_of", noted)

    async def scenario(app, pilot):
        pane = await opened(app, pilot)
        made.clear()
        for _ in range(5):
            await pilot.press("n")
        await until(pilot, lambda: app.session.current == 5 and "▶ layers.1" in text_of(app))
        assert made == []
        await pilot.press("space")
        await until(pilot, lambda: "0 Diagram 1" in text_of(app))
        assert made == [frozenset()]
        assert pane.copied().startswith("layers")

    play(scenario, session(), size=(120, 40))


def test_one_diagram_is_made_at_a_time_and_then_that_of_the_last_of_many_steps(monkeypatch):
    go_on, began, at_work = threading.Event(), [], []
    go_on.set()
    made_by = diagram_pane._made

    def held(snapshot, *others):
        began.append(snapshot.current)
        at_work.append(len(began))
        assert len(at_work) == 1, "two diagrams are made at the same time"
        go_on.wait(20)
        at_work.clear()
        return made_by(snapshot, *others)

    monkeypatch.setattr(diagram_pane, "_made", held)

    async def scenario(app, pilot):
        pane = await opened(app, pilot)
        await until(pilot, lambda: not pane._making)
        go_on.clear()
        began.clear()
        for step in range(1, 7):
            app.session.step()
            await until(pilot, lambda step=step: pane._snapshot.current == step)
        await until(pilot, lambda: "▶ layers.2" in text_of(app))
        assert len(began) == 1
        go_on.set()
        await until(pilot, lambda: not pane._making)
        assert set(began[1:]) == {6}

    play(scenario, session(), size=(120, 40))


def test_a_cursor_that_moves_while_the_diagram_is_made_stays_where_it_has_gone(monkeypatch):
    go_on, made_by = threading.Event(), diagram_pane._made
    go_on.set()
    monkeypatch.setattr(diagram_pane, "_made", lambda *args: go_on.wait(20) and made_by(*args))

    async def scenario(app, pilot):
        pane = await opened(app, pilot)
        await until(pilot, lambda: not pane._making)
        go_on.clear()
        pane.update(pane._snapshot)
        await pilot.press("down")
        assert pane.copied().startswith("layers.1")
        go_on.set()
        await until(pilot, lambda: not pane._making)
        assert pane.copied().startswith("layers.1")

    play(scenario, session(), size=(120, 40))


def test_what_a_node_has_brought_others_is_read_once_but_as_long_as_it_can_be_edited():
    read = []

    class Noted(list):
        known_norms = staticmethod(lambda: {0: 1.0, 1: 1.0, 2: 1.0})

        def __getitem__(self, index):
            read.append(index)
            return super().__getitem__(index)

    nodes = [replace(node, module=f"layers.{node.index}", grad_inputs=(summary(), summary())) for node in chain(4)]
    nodes[0] = replace(nodes[0], edges=(*nodes[0].edges, EdgeRecord(nodes[2].key, 0)))
    nodes = Noted(nodes)
    outline, structure = Outline.read(nodes), diagram_pane._Structure()

    def made(current):
        nonlocal structure
        read.clear()
        snapshot = Snapshot(nodes=nodes, current=current, outline=outline)
        _, structure, _ = diagram_pane._made(snapshot, None, None, 80, structure)
        return list(read)

    assert made(1) == [0, 1]
    assert made(1) == [1]
    assert made(2) == [1]
    assert made(3) == []
