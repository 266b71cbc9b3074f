from __future__ import annotations

from dataclasses import replace

from gradscope_tui.panes.source_pane import CONTEXT, SourcePane
from tests.tui.fake import FakeSession, chain, play, text_of, until


def session_of(path, lineno):
    nodes = chain()
    nodes[0] = replace(nodes[0], location=replace(nodes[0].location, filename=str(path), lineno=lineno))
    return FakeSession(nodes)


def test_the_line_that_made_the_node_is_shown_in_the_middle_of_its_window(tmp_path):
    path = tmp_path / "train.py"
    path.write_text("".join(f"x{n} = {n}  # line {n}\n" for n in range(1, 201)))

    async def scenario(app, pilot):
        await until(pilot, lambda: "▶ 100  x100 = 100" in text_of(app))
        pane = app.query_one(SourcePane)
        assert pane.line_count() == 2 * CONTEXT + 1
        assert pane.border_title == "3 Source train.py:100"
        rows = [line for line in text_of(app).split("\n") if "# line" in line]
        middle = next(index for index, row in enumerate(rows) if "▶" in row)
        assert abs(middle - len(rows) // 2) <= 1

    play(scenario, session_of(path, 100))


def test_another_node_of_the_same_line_brings_it_back_where_somebody_has_scrolled_away(tmp_path):
    path = tmp_path / "train.py"
    path.write_text("".join(f"x{n} = {n}\n" for n in range(1, 201)))
    session = session_of(path, 100)
    session._graph[1] = replace(session._graph[1], location=session._graph[0].location)

    async def scenario(app, pilot):
        await until(pilot, lambda: "▶ 100  x100 = 100" in text_of(app))
        await pilot.press("3", "G")
        await until(pilot, lambda: "x120 = 120" in text_of(app) and "x100" not in text_of(app))
        await pilot.press("n")
        await until(pilot, lambda: "▶ 100  x100 = 100" in text_of(app))

    play(scenario, session, size=(120, 40))


def test_the_first_line_of_a_file_has_nothing_above_it(tmp_path):
    path = tmp_path / "train.py"
    path.write_text("a = 1\nb = 2\n")

    async def scenario(app, pilot):
        await until(pilot, lambda: "▶   1  a = 1" in text_of(app) and "2  b = 2" in text_of(app))

    play(scenario, session_of(path, 1))


def test_a_file_that_cannot_be_read_is_replaced_by_the_line_the_record_knows():
    async def scenario(app, pilot):
        await until(pilot, lambda: "▶  31  x = layer_0(x)" in text_of(app))

    play(scenario, session_of("/nowhere/train.py", 31))


def test_a_leaf_shows_the_line_that_uses_it():
    async def scenario(app, pilot):
        await until(pilot, lambda: app.session.nodes)
        await pilot.press("j", "j")
        await until(pilot, lambda: "3 Source train.py:2 that uses it" in text_of(app))

    play(scenario)


def test_a_node_without_a_line_says_why():
    nodes = [replace(node, location=None) for node in chain(3)]

    async def scenario(app, pilot):
        await until(pilot, lambda: app.session.nodes)
        await until(pilot, lambda: "ReluBackward0: its line is not known" in text_of(app))
        await pilot.press("j", "j")
        await until(pilot, lambda: "the gradient of a leaf is accumulated here" in text_of(app))

    play(scenario, FakeSession(nodes))


def test_a_click_on_the_number_of_a_line_sets_a_breakpoint_and_another_removes_it(tmp_path):
    path = tmp_path / "train.py"
    path.write_text("a = 1\nb = 2\n")

    async def scenario(app, pilot):
        await until(pilot, lambda: "   2  b = 2" in text_of(app))
        await pilot.click(SourcePane, offset=(4, 2))
        await until(pilot, lambda: "   2● b = 2" in text_of(app))
        assert [point.spec for point in app.session.breakpoints] == ["line:train.py:2"]
        await pilot.click(SourcePane, offset=(10, 2))
        await pilot.click(SourcePane, offset=(4, 2))
        await until(pilot, lambda: "   2  b = 2" in text_of(app))
        assert app.session.breakpoints == []

    play(scenario, session_of(path, 1))


def test_a_breakpoint_on_a_line_that_has_made_no_node_says_that_it_waits(tmp_path):
    path = tmp_path / "other.py"
    path.write_text("a = 1\nb = 2\n")
    said = []

    async def scenario(app, pilot):
        app.notify = lambda text, **options: said.append(text)
        await until(pilot, lambda: "   2  b = 2" in text_of(app))
        await pilot.click(SourcePane, offset=(4, 1))
        await until(pilot, lambda: "   1● a = 1" in text_of(app))
        assert said == []
        await pilot.click(SourcePane, offset=(4, 2))
        await until(pilot, lambda: said)
        assert said == ["no node of this backward was made at other.py:2: breakpoint 2 waits for one"]

    play(scenario, session_of(path, 1))
