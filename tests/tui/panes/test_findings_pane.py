from __future__ import annotations

from dataclasses import replace

from gradscope.inspect.debugging.session.session_records import BackwardFinding
from gradscope.inspect.records.records import Location
from gradscope_tui.panes.findings_pane import FindingsPane
from gradscope_tui.panes.graph_pane import GraphPane
from tests.tui.fake import FakeSession, play, text_of, until

LINE = Location(__file__, 3, "f", "from gradscope")
SLOPE = BackwardFinding("slope", "warning", "Sqrt will be infinite", "at 0\nadd eps", LINE, 4)
CUT = BackwardFinding("unreached", "warning", "4 of 9 parameters get no gradient", "", LINE)


def with_findings(*findings):
    session = FakeSession()
    session.found = list(findings)
    return session


def test_the_worst_stands_below_the_status_and_all_in_their_pane():
    async def scenario(app, pilot):
        await until(pilot, lambda: "Sqrt will be infinite  test_findings_pane.py:3  #4  ! and 1 more" in text_of(app))
        await pilot.press("!")
        await until(pilot, lambda: "8 Findings 2" in text_of(app) and "add eps" in text_of(app))
        assert "! Sqrt will be infinite  test_findings_pane.py:3  #4" in text_of(app)
        assert "4 of 9 parameters get no gradient" in text_of(app)

    play(scenario, with_findings(SLOPE, CUT), size=(140, 40))


def test_a_limit_that_is_set_changes_what_is_shown():
    async def scenario(app, pilot):
        await until(pilot, lambda: "Sqrt will be infinite" in text_of(app))
        await pilot.press(":", *"limit faded_signal=1e-6", "enter")
        await until(pilot, lambda: "faded_signal=1e-06 (usually 0.0001)" in text_of(app))
        await until(pilot, lambda: "Sqrt will be infinite" not in text_of(app))

    play(scenario, with_findings(SLOPE), size=(140, 40))


def test_enter_goes_to_the_node_and_to_the_line():
    async def scenario(app, pilot):
        await until(pilot, lambda: "Sqrt will be infinite" in text_of(app))
        await pilot.press("!", "enter")
        await until(pilot, lambda: app.query_one(GraphPane).index == 4)
        await until(pilot, lambda: "3 Source test_findings_pane.py:3" in text_of(app))

    play(scenario, with_findings(SLOPE, CUT), size=(140, 40))


def test_a_finding_without_a_node_leads_to_its_line():
    async def scenario(app, pilot):
        await until(pilot, lambda: "4 of 9 parameters" in text_of(app))
        await pilot.press("!", "enter")
        await until(pilot, lambda: "3 Source test_findings_pane.py:3" in text_of(app))
        assert app.query_one(FindingsPane).copied().startswith("4 of 9 parameters get no gradient")

    play(scenario, with_findings(CUT), size=(140, 40))


def test_the_key_goes_there_where_the_findings_are_shown_already():
    async def scenario(app, pilot):
        await until(pilot, lambda: "Sqrt will be infinite" in text_of(app))
        await pilot.press("!", "!")
        await until(pilot, lambda: app.query_one(GraphPane).index == 4)

    play(scenario, with_findings(SLOPE, CUT), size=(140, 40))


def test_enter_on_a_line_of_the_explanation_goes_to_the_line_that_it_names():
    async def scenario(app, pilot):
        await until(pilot, lambda: "4 of 9 parameters" in text_of(app))
        await pilot.press("!", "G", "enter")
        await until(pilot, lambda: "3 Source test_findings_pane.py:5" in text_of(app))
        assert "›   5" in text_of(app)  # no node was made there

    play(scenario, with_findings(replace(CUT, text="or test_findings_pane.py:5")), size=(140, 40))


def test_before_the_first_backward_the_pane_says_that_there_is_none():
    session = FakeSession(held=True)

    async def scenario(app, pilot):
        await until(pilot, lambda: "no backward yet" in text_of(app))
        await pilot.press("!")
        await until(pilot, lambda: "no backward has begun yet" in text_of(app))

    play(scenario, session, size=(140, 40))


def test_where_nothing_is_wrong_there_is_no_line():
    async def scenario(app, pilot):
        await until(pilot, lambda: app.session.nodes)
        assert not app.query_one("#findings").display
        await pilot.press("!")
        await until(pilot, lambda: "nothing has run yet: c stops at the first failure" in text_of(app))
        await pilot.press("n")
        await until(pilot, lambda: "nothing wrong is seen at this place" in text_of(app))

    play(scenario, size=(140, 40))
