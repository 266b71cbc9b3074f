from __future__ import annotations

from dataclasses import replace

from gradscope.inspect.debugging.session.session_records import BackwardFinding, ModuleRecord
from gradscope.inspect.records.records import EdgeRecord, Location
from gradscope_tui.panes.diagram_pane import MOST, DiagramPane
from gradscope_tui.panes.graph_pane import GraphPane
from tests.tui.fake import FakeSession, chain, play, text_of, until


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
