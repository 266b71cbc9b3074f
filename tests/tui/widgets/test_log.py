from __future__ import annotations

from gradscope_tui.widgets.log import LogPane
from tests.tui.fake import play, text_of, until


def test_long_lines_are_wrapped_and_wrapped_anew_at_another_width():
    async def scenario(app, pilot):
        log = app.query_one(LogPane)
        log.write([("x" * 200, "")])
        await pilot.press("5", "m")
        await until(pilot, lambda: "x" * 77 in text_of(app) and log.line_count() == 3)
        await pilot.resize_terminal(160, 30)
        await until(pilot, lambda: "x" * 150 in text_of(app) and log.line_count() == 2)

    play(scenario)


def test_what_the_debugger_says_is_cut_between_words_and_indented():
    async def scenario(app, pilot):
        log = app.query_one(LogPane)
        await pilot.press("5", "m")
        before = log.line_count()
        log.write([("  word" + " word" * 30, "dim")])
        await until(pilot, lambda: log.line_count() == before + 3)
        rows = [log.line(before + nr, 78).plain for nr in range(3)]
        assert [row.replace("word", "").strip() for row in rows] == ["", "", ""]
        assert [row.index("word") for row in rows] == [2, 4, 4]
        assert max(map(len, rows)) <= 78

    play(scenario)


def test_the_end_stays_in_view_until_somebody_scrolls_up():
    async def scenario(app, pilot):
        log = app.query_one(LogPane)
        await pilot.press("5")
        log.write([(f"line {n}", "") for n in range(100)])
        await until(pilot, lambda: "line 99" in text_of(app))
        await pilot.press("g")
        await until(pilot, lambda: "line 0" in text_of(app))
        log.write([("line 100", "")])
        await pilot.pause()
        assert "line 100" not in text_of(app)
        await pilot.press("G")
        await until(pilot, lambda: "line 100" in text_of(app))

    play(scenario)


def test_the_oldest_lines_go_when_there_are_too_many(monkeypatch):
    monkeypatch.setattr(LogPane, "KEPT", 1000)

    async def scenario(app, pilot):
        log = app.query_one(LogPane)
        log.write([(f"line {n}", "") for n in range(LogPane.KEPT + 1)])
        await pilot.press("5", "g")
        assert log.line_count() == LogPane.KEPT * 9 // 10
        await until(pilot, lambda: "earlier lines are not kept" in text_of(app) and "line 102" in text_of(app))
        log.write([(f"more {n}", "") for n in range(LogPane.KEPT)])
        assert log.text.count("earlier lines are not kept") == 1

    play(scenario)
