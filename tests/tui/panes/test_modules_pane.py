"""The pane of modules and parameters."""

from __future__ import annotations

from gradscope.inspect.debugging.session.session_records import BackwardFinding, ModuleRecord, ParameterRecord
from gradscope_tui.panes.graph_pane import GraphPane
from gradscope_tui.panes.modules_pane import ModulesPane
from tests.tui.fake import FakeSession, play, text_of, until


async def start(app, pilot):
    await until(pilot, lambda: app.session.nodes and "PAUSED" in text_of(app))


def session() -> FakeSession:
    fake = FakeSession()
    fake.known_modules = [ModuleRecord("layers.0", "Linear", "in_features=4, out_features=8, bias=True")]
    fake.known_parameters = [
        ParameterRecord("layers.0.weight", (8, 4), True, 12, 0.25, False, (8.0, 1.0, 0.25)),
        ParameterRecord("layers.0.bias", (8,), requires_grad=False),
        ParameterRecord("other.weight", (3,), True, -1, None, False, (1.0,)),
        ParameterRecord("tower.weight", (3, 3), unreached=True),
    ]
    return fake


def test_parameters_are_asked_for_when_the_pane_is_shown():
    async def scenario(app, pilot):
        await start(app, pilot)
        assert "tower" not in text_of(app)
        await pilot.press("7", "m")
        await until(pilot, lambda: "▾ tower  ✗ 1 not reached" in text_of(app))
        text = text_of(app)
        assert "✗ weight  not reached" in text
        assert "▾ 0 Linear" in text
        assert "weight  not in this backward" in text
        assert "bias  frozen" in text
        line = next(line for line in text.split("\n") if "8,4" in line)
        assert "2.5e-01" in line
        assert "█▄▁" in line

    play(scenario, session(), size=(140, 50))


def test_a_parameter_leads_to_its_node_and_one_that_is_not_reached_to_the_reason():
    async def scenario(app, pilot):
        await start(app, pilot)
        pane = app.query_one(ModulesPane)
        await pilot.press("7", "m")
        await until(pilot, lambda: "▾ tower" in text_of(app))
        await pilot.press("j", "space")
        await until(pilot, lambda: "`tower.weight`: reached by nothing" in text_of(app))
        await pilot.press("7")
        pane.cursor = next(row for row in range(pane.line_count()) if "8,4" in pane.line(row, 130).plain)
        await pilot.press("space")
        await until(pilot, lambda: app.query_one(GraphPane).index == 12)

    play(scenario, session(), size=(140, 50))


def test_a_folded_module_hides_what_it_consists_of():
    async def scenario(app, pilot):
        await start(app, pilot)
        await pilot.press("7", "m")
        await until(pilot, lambda: "✗ weight  not reached" in text_of(app))
        await pilot.press("space")
        await until(pilot, lambda: "▸ tower  ✗ 1 not reached" in text_of(app))
        assert "✗ weight  not reached" not in text_of(app)

    play(scenario, session(), size=(140, 50))


def test_what_is_not_reached_is_said_in_words_where_there_is_no_room_for_more():
    async def scenario(app, pilot):
        await start(app, pilot)
        await pilot.press("7")
        await until(pilot, lambda: "▾ tower  ✗ 1 not reached" in text_of(app))
        assert "✗ weight  not reached" in text_of(app)

    play(scenario, session(), size=(120, 40))


def test_after_the_end_a_parameter_that_is_not_reached_leads_to_its_finding():
    fake = session()
    title = "1 of 4 parameters get no gradient: tower.weight"
    fake.found = [BackwardFinding("unreached", "warning", title, "the line cuts it", parameters=("tower.weight",))]

    async def scenario(app, pilot):
        await start(app, pilot)
        await pilot.press("c")
        await until(pilot, lambda: "PAUSED" in text_of(app) or "FINISHED" in text_of(app))
        await pilot.press("c")
        await until(pilot, lambda: "FINISHED" in text_of(app))
        await pilot.press("7")
        await until(pilot, lambda: "▾ tower" in text_of(app))
        await pilot.press("j", "enter")
        await until(pilot, lambda: app.active == 8 and "the line cuts it" in text_of(app))

    play(scenario, fake, size=(120, 40))
