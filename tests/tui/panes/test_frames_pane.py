from __future__ import annotations

from gradscope.inspect.debugging.session.session_records import FrameRecord, VariableRecord
from gradscope.inspect.records.records import Location, StopReason
from gradscope_tui.panes.frames_pane import FramesPane
from gradscope_tui.screens.tensor_screen import TensorScreen
from tests.tui.fake import FakeSession, play, text_of, until


def waiting():
    """Return a session of a program in which fit() has called backward(), and main() has called fit()."""
    session = FakeSession()
    fit = (VariableRecord("lr", "float", "0.1"), VariableRecord("grad", "Tensor", "tensor([0.25])", (1,)))
    session.waiting = [
        FrameRecord(Location("train.py", 8, "fit", "loss.backward()"), fit),
        FrameRecord(Location("train.py", 30, "main", "fit(0.1)"), (VariableRecord("epochs", "int", "3"),)),
    ]
    return session


async def opened(app, pilot):
    await until(pilot, lambda: app.session.nodes and "PAUSED" in text_of(app))
    await pilot.press("9")
    await until(pilot, lambda: "fit  train.py:8" in text_of(app))


def test_the_innermost_function_shows_its_variables_and_the_others_do_when_they_are_unfolded():
    async def scenario(app, pilot):
        await opened(app, pilot)
        text = text_of(app)
        assert "lr float = 0.1" in text
        assert "grad Tensor 1 = tensor([0.25])" in text
        assert "▸ main  train.py:30  fit(0.1)" in text
        assert "epochs" not in text
        await pilot.press("G", "space")
        await until(pilot, lambda: "epochs int = 3" in text_of(app))
        await pilot.press("g", "space")
        await until(pilot, lambda: "lr float" not in text_of(app))

    play(scenario, waiting(), size=(120, 40))


def test_enter_shows_a_line_and_opens_a_tensor():
    async def scenario(app, pilot):
        await opened(app, pilot)
        pane = app.query_one(FramesPane)
        await pilot.press("enter")
        await until(pilot, lambda: "Source train.py:8" in text_of(app))
        await pilot.press("9", "j")
        assert pane.copied() == "lr = 0.1"
        await pilot.press("enter")
        await until(pilot, lambda: "lr is no tensor" in text_of(app))
        await pilot.press("j", "enter")
        await until(pilot, lambda: isinstance(app.screen, TensorScreen))

    play(scenario, waiting(), size=(120, 40))


def test_where_nothing_waits_the_pane_says_so():
    async def scenario(app, pilot):
        await until(pilot, lambda: app.session.nodes and "PAUSED" in text_of(app))
        await pilot.press("9")
        await until(pilot, lambda: "no function of the program waits here" in text_of(app))

    play(scenario, size=(120, 40))


def test_why_there_are_no_functions_is_said_in_as_many_lines_as_it_takes():
    session = FakeSession()
    session.why_no_frames = "a recording keeps no functions: they are here where a program is debugged, at each stop"

    async def scenario(app, pilot):
        await until(pilot, lambda: app.session.nodes and "PAUSED" in text_of(app))
        await pilot.press("9")
        await until(pilot, lambda: "a recording keeps no functions" in text_of(app))
        shown = [line[67:119].strip(" │") for line in text_of(app).split("\n")]
        at = next(row for row, line in enumerate(shown) if line.startswith("a recording"))
        assert " ".join(shown[at : at + 2]) == session.why_no_frames

    play(scenario, session, size=(120, 40))


def test_at_set_trace_its_function_and_its_line_are_shown_unasked():
    async def scenario(app, pilot):
        await until(pilot, lambda: app.session.nodes and "PAUSED" in text_of(app))
        app.session.stop(1, StopReason("trace", "set_trace() at train.py:8"))
        await until(pilot, lambda: "Source train.py:8" in text_of(app))
        await until(pilot, lambda: "lr float = 0.1" in text_of(app))

    play(scenario, waiting(), size=(120, 40))
