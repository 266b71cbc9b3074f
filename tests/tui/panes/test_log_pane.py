from __future__ import annotations

from gradscope_tui.panes.log_pane import LogPane
from tests.tui.fake import FakeSession, play, text_of, type_in, until


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


def test_lines_are_found_as_in_less_and_then_n_steps_again():
    async def scenario(app, pilot):
        log = app.query_one(LogPane)
        log.write([(f"step {n} {'Loss' if n % 50 == 7 else 'ok'}", "") for n in range(200)])
        await pilot.press("5", "g")
        await type_in(pilot, "loss", "/")
        await until(pilot, lambda: "match 1 of 4" in text_of(app) and "step 7 Loss" in text_of(app))
        before = len(app.session.calls)
        await pilot.press("n", ".")
        await until(pilot, lambda: "match 3 of 4" in text_of(app) and "step 107 Loss" in text_of(app))
        await pilot.press("N")
        await until(pilot, lambda: log.found_line == "step 57 Loss")
        log.write([("one more loss", "")])
        await until(pilot, lambda: "match 2 of 5" in text_of(app))
        await pilot.press("y")
        await until(pilot, lambda: app.clipboard == "step 57 Loss")
        await pilot.press("N", "N")
        await until(pilot, lambda: "this is the first of 5 matches" in text_of(app))
        assert len(app.session.calls) == before
        await pilot.press("escape", "n")
        await until(pilot, lambda: app.session.calls[before:] and not log.found_line)
        assert app.session.calls[-1].verb == "step"

    play(scenario)


def test_capitals_matter_where_there_are_any_and_what_is_not_there_is_said():
    async def scenario(app, pilot):
        log = app.query_one(LogPane)
        log.write([("loss", ""), ("Loss", ""), ("[x]", "")])
        await pilot.press("5")
        assert log.find_lines("Loss")
        assert log.found_line == "Loss"
        assert log.find_lines("[")
        await type_in(pilot, "LOSS", "/")
        await until(pilot, lambda: "no line of pane 5 has 'LOSS'" in text_of(app))
        assert not log.found_line

    play(scenario)


def test_a_match_stays_the_same_line_when_the_oldest_lines_go(monkeypatch):
    monkeypatch.setattr(LogPane, "KEPT", 1000)

    async def scenario(app, pilot):
        log = app.query_one(LogPane)
        log.write([(f"line {n}", "") for n in range(900)])
        assert log.find_lines("line 700")
        log.write([(f"more {n}", "") for n in range(200)])
        assert log.found_line == "line 700"
        log.write([(f"more {n}", "") for n in range(900)])
        assert not log.found_line

    play(scenario)


def test_the_log_is_saved_and_no_file_is_written_over(tmp_path):
    async def scenario(app, pilot):
        app.query_one(LogPane).write([("loss 0.5", ""), ("\x1b[31mred\x1b[0m", "")])
        await type_in(pilot, str(tmp_path / "log.txt"), "ctrl+s")
        await until(pilot, lambda: "the log is in" in text_of(app))
        assert (tmp_path / "log.txt").read_text() == "loss 0.5\nred\n"
        await type_in(pilot, str(tmp_path / "log.txt"), "ctrl+s")
        await until(pilot, lambda: "is there already" in " ".join(text_of(app).split()))
        await type_in(pilot, str(tmp_path / "none" / "log.txt"), "ctrl+s")
        await until(pilot, lambda: "cannot write" in text_of(app))

    play(scenario)


def test_progress_bars_move_and_colours_are_kept():
    async def scenario(app, pilot):
        log = app.query_one(LogPane)
        await pilot.press("5", "m")
        log.feed("\x1b[31mred\x1b[0m line\n 10%|#   |")
        await until(pilot, lambda: "10%|#   |" in text_of(app))
        log.feed("\r100%|####|\n")
        await until(pilot, lambda: "100%|####|" in text_of(app))
        assert "10%|#   |" not in text_of(app)
        red = next(log.line(row, 78) for row in range(log.line_count()) if "red line" in log.line(row, 78).plain)
        assert [(red.plain[span.start : span.end], str(span.style)) for span in red.spans] == [("red", "color(1)")]
        assert log.text.endswith("red line\n100%|####|")

    play(scenario)


def test_bars_that_are_drawn_above_each_other_are_written_over_until_something_is_said_between():
    async def scenario(app, pilot):
        log = app.query_one(LogPane)
        await pilot.press("5", "m")
        log.feed("outer 1\ninner 1\n")
        log.feed("\x1b[2Aouter 2\ninner 2\n")
        assert log.text.endswith("outer 2\ninner 2")
        assert "outer 1" not in log.text
        log.write([("stopped", "dim")])
        log.feed("\x1b[2Aouter 3\n")
        assert log.text.endswith("outer 2\ninner 2\nstopped\nouter 3")

    play(scenario)


def test_the_terminal_of_the_program_is_as_large_as_the_pane():
    session = FakeSession()
    session.types = True

    async def scenario(app, pilot):
        log = app.query_one(LogPane)
        await until(pilot, lambda: session.nodes)
        await pilot.press("5", "m")
        await until(pilot, lambda: session.terminal_size == (77, 19))
        log.feed("\x1b[?25l" + "y" * 300)
        await until(pilot, lambda: "y" * 77 in text_of(app))
        assert [log.line(row, 77).plain for row in range(log.line_count())] == [*["y" * 77] * 3, "y" * 69]

    play(scenario, session)
