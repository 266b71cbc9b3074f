from __future__ import annotations

from gradscope_tui.panes.breakpoints_pane import BreakpointsPane
from tests.tui.fake import play, text_of, type_in, until


async def start(app, pilot):
    await until(pilot, lambda: app.session.nodes and "PAUSED" in text_of(app))


def test_breakpoints_tell_conditions_counts_logpoints_and_that_they_are_off():
    async def scenario(app, pilot):
        await start(app, pilot)
        session = app.session
        session.add_breakpoint("op:Addmm", condition="norm > 10")
        session.add_breakpoint("param:*.weight", temporary=True)
        session.add_breakpoint("mod:layers.1", log="norm")
        session.ignore_breakpoint(1, 3)
        session.enable_breakpoint(2, False)
        await pilot.press("4")
        await until(pilot, lambda: "● 1 op:Addmm  if norm > 10  hits 0  passes 3 more" in text_of(app))
        assert "◌ 2 param:*.weight  hits 0  once  off" in text_of(app)
        assert "● 3 mod:layers.1  prints norm  hits 0" in text_of(app)

    play(scenario, size=(100, 40))


def test_space_switches_breakpoints_and_the_stops_at_trouble():
    async def scenario(app, pilot):
        await start(app, pilot)
        app.session.add_breakpoint("op:Addmm")
        await pilot.press("4")
        await until(pilot, lambda: "● 1 op:Addmm" in text_of(app))
        await pilot.press("space")
        await until(pilot, lambda: "◌ 1 op:Addmm" in text_of(app))
        await pilot.press("space")
        await until(pilot, lambda: "● 1 op:Addmm" in text_of(app))
        for row, kind in enumerate(("violation", "exception", "nan", "inf"), start=1):
            app.query_one(BreakpointsPane).cursor = row
            before = app.session.catching[kind]
            await pilot.press("space")
            await until(pilot, lambda kind=kind, before=before: app.session.catching[kind] is not before)
        await until(pilot, lambda: "[ ] nan" in text_of(app) and "[ ] violation" in text_of(app))

    play(scenario, size=(100, 40))


def test_enter_edits_a_breakpoint_and_keeps_it_where_the_text_is_wrong():
    async def scenario(app, pilot):
        await start(app, pilot)
        app.session.add_breakpoint("op:Addmm", condition="norm > 10")
        app.session.ignore_breakpoint(1, 3)
        await pilot.press("4")
        await until(pilot, lambda: "● 1 op:Addmm  if norm > 10" in text_of(app))
        await pilot.press("enter")
        await until(pilot, lambda: getattr(app.focused, "value", "") == "break op:Addmm if norm > 10; ignore $ 3")
        app.focused.value = "break op:Addmm if norm >"
        said = []
        app.notify = lambda text, **options: said.append(text)  # on the screen it stays for four seconds
        await pilot.press("enter")
        await until(pilot, lambda: any("is not a Python expression" in text for text in said))
        assert [point.condition for point in app.session.breakpoints] == ["norm > 10"]
        await until(pilot, lambda: getattr(app.focused, "value", "") == "break op:Addmm if norm >")
        app.focused.value = "tbreak op:Addmm if norm > 20; disable $"
        await pilot.press("enter")
        await until(pilot, lambda: "op:Addmm  if norm > 20  hits 0  once  off" in text_of(app))
        assert len(app.session.breakpoints) == 1

    play(scenario, size=(120, 40))


def test_enter_on_a_kind_of_trouble_switches_it():
    async def scenario(app, pilot):
        await start(app, pilot)
        await pilot.press("4", "enter")
        await until(pilot, lambda: "[ ] violation" in text_of(app))

    play(scenario, size=(120, 40))


def test_a_breakpoint_that_is_asked_for_here_is_seen_here():
    async def scenario(app, pilot):
        await start(app, pilot)
        await pilot.press("4")
        await type_in(pilot, "op:Addmm", "B")
        await until(pilot, lambda: app.session.breakpoints and "● 1 op:Addmm" in text_of(app))
        assert "5 Log ─" not in text_of(app)

    play(scenario)
