from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradscope.inspect import Debugger
from gradscope.inspect.debugging.prompt.line_mode import LineMode
from gradscope_tui.sessions.saved_breakpoints import SavedBreakpoints, commands_of, edited, state_directory, text_of
from tests.tui.fake import FakeSession, play, until
from tests.tui.fake import text_of as screen_of


def a_session():
    session = FakeSession()
    session.add_breakpoint("op:Mul* if norm > 10")
    session.add_breakpoint("param:fc1.weight", temporary=True)
    session.add_breakpoint("mod:layers.*", log="norm")
    session.add_breakpoint("nan")
    session.ignore_breakpoint(1, 3)
    session.enable_breakpoint(3, False)
    session.catch("exception", False)
    return session


def test_breakpoints_come_back_in_the_next_session(tmp_path):
    kept = SavedBreakpoints("train.py", tmp_path)
    before, after = a_session(), FakeSession()
    assert kept.keep(before) == ""
    said = SavedBreakpoints("train.py", tmp_path).load(after)
    assert said == "4 breakpoints of the last session (pane 4)"
    assert commands_of(after) == commands_of(before)
    assert [(p.spec, p.condition, p.ignore, p.enabled, p.log, p.temporary) for p in after.breakpoints] == [
        (p.spec, p.condition, p.ignore, p.enabled, p.log, p.temporary) for p in before.breakpoints
    ]
    assert after.catching == before.catching


def test_every_script_has_its_own_and_none_are_kept_once_all_are_removed(tmp_path):
    kept, session = SavedBreakpoints("train.py", tmp_path), FakeSession()
    session.add_breakpoint("op:Mul")
    kept.keep(session)
    assert SavedBreakpoints("other/train.py", tmp_path).load(FakeSession()) == ""
    session.remove_breakpoint(1)
    kept.keep(session)
    assert list(tmp_path.iterdir()) == []


def test_the_file_is_what_line_mode_writes_and_reads(tmp_path):
    session = Debugger.for_call(lambda: None)
    session.add_breakpoint("op:Mul* if norm > 10")
    session.add_breakpoint("mod:layers.*", log="norm")
    session.ignore_breakpoint(1, 2)
    session.catch("violation", False)
    LineMode(session).obey(f"save-breaks {tmp_path / 'line'}")
    assert (tmp_path / "line").read_text().splitlines() == commands_of(session)
    kept = SavedBreakpoints("train.py", tmp_path)
    kept.keep(session)
    again = Debugger.for_call(lambda: None)
    LineMode(again).obey(f"source {kept.path}")
    assert commands_of(again) == commands_of(session)


@given(st.binary(max_size=40))
def test_a_damaged_file_is_said_and_never_raised(tmp_path_factory, content):
    directory = tmp_path_factory.mktemp("breaks")
    kept = SavedBreakpoints("train.py", directory)
    kept.path.write_bytes(content)
    assert isinstance(kept.load(FakeSession()), str)


def test_lines_that_are_not_understood_are_named(tmp_path):
    kept = SavedBreakpoints("train.py", tmp_path)
    kept.path.write_text("break op:Mul\nquit\nbreak what:ever\n")
    session = FakeSession()
    said = kept.load(session)
    assert said == "1 breakpoint of the last session (pane 4); not understood: quit; break what:ever"
    assert [point.spec for point in session.breakpoints] == ["op:Mul"]


def test_a_directory_that_cannot_be_written_is_said_once(tmp_path):
    (tmp_path / "file").write_text("")
    kept, session = SavedBreakpoints("train.py", tmp_path / "file"), FakeSession()
    session.add_breakpoint("op:Mul")
    assert "cannot be kept" in kept.keep(session)
    session.add_breakpoint("op:Add")
    assert kept.keep(session) == ""


def test_the_state_directory_is_that_of_xdg(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr("sys.platform", "linux")
    assert state_directory() == tmp_path


def test_the_app_keeps_and_restores_them(tmp_path):
    async def scenario(app, pilot):
        await until(pilot, lambda: app.session.nodes)
        await pilot.press("b")
        await until(pilot, lambda: app._breaks.path.exists())

    async def next_time(app, pilot):
        await until(pilot, lambda: app.session.nodes)
        assert [(point.spec, point.hits) for point in app.session.breakpoints] == [("op:Relu", 0)]
        await until(pilot, lambda: "1 breakpoint of the last session (pane 4)" in screen_of(app), 3)

    play(scenario, breaks=SavedBreakpoints("train.py", tmp_path))
    play(next_time, breaks=SavedBreakpoints("train.py", tmp_path))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "step",
        "ignore $ 3",
        "break op:Mul; break op:Add",
        "break what:ever",
        "break op:Mul; ignore $ x",
        "catch nan off",
    ],
)
def test_a_text_that_is_no_breakpoint_changes_nothing(text):
    session = FakeSession()
    point = session.add_breakpoint("op:Addmm")
    before = commands_of(session)
    with pytest.raises(ValueError):  # noqa: PT011 - of several classes, each with a text of its own
        edited(session, point, text)
    assert commands_of(session) == before


@pytest.mark.parametrize(
    "text", ["break op:Mul if norm > 1; ignore $ 3; disable $", "tbreak param:*", "log mod:fc1 :: norm; ignore $ 2"]
)
def test_a_breakpoint_is_what_its_edited_text_says(text):
    session = FakeSession()
    edited(session, session.add_breakpoint("op:Addmm"), text)
    (point,) = session.breakpoints
    assert text_of(point) == text
