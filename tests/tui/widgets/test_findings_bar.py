from __future__ import annotations

import pytest

from gradscope.inspect.debugging.session.session_records import BackwardFinding
from gradscope.inspect.records.records import Location
from tests.tui.fake import FakeSession, play, text_of, until

LONG = BackwardFinding("unreached", "warning", "parameters get no gradient: " + ", ".join("abcdefghij" * 3))


@pytest.mark.parametrize("width", [60, 80, 140])
def test_the_way_to_the_explanation_is_never_cut_off(width):
    session = FakeSession()
    session.found = [LONG, LONG]

    async def scenario(app, pilot):
        await until(pilot, lambda: "! and 1 more" in text_of(app))
        assert "! parameters get no" in text_of(app)

    play(scenario, session, size=(width, 30))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("title", "short"),
    [
        ("SqrtBackward0 produced a NaN from gradients without one", "SqrtBackward0 produced a NaN"),
        ("the gradient is vanishing: 3e-02 at 20.weight, 1e-11 at 0", "vanishing: 3e-02 at 20.weight, 1e-11 at 0"),
        (
            "PowBackward0 hands on a NaN: its saved `self` has not been finite since the forward pass",
            "PowBackward0 hands on a NaN of the forward pass",
        ),
    ],
)
def test_where_there_is_little_room_the_words_that_matter_least_go(title, short):
    session = FakeSession()
    session.found = [BackwardFinding("nan", "error", title, location=Location("/a/two.py", 38, "f", ""), index=3)]

    async def scenario(app, pilot):
        await until(pilot, lambda: f"✗ {short}  two.py:38  #3" in text_of(app))
        await pilot.resize_terminal(130, 30)
        await until(pilot, lambda: f"✗ {title}  two.py:38" in text_of(app))

    play(scenario, session, size=(74, 30))


def test_the_node_goes_before_the_end_of_what_is_said():
    title = "the gradient is vanishing: 3.6e-02 at 20.weight, 1.2e-11 at 0.bias"
    session = FakeSession()
    session.found = [
        BackwardFinding("vanishing", "warning", title, location=Location("/a/net.py", 9, "f", ""), index=3)
    ]

    async def scenario(app, pilot):
        await until(pilot, lambda: f"! {title[16:]}  net.py:9  ! why" in text_of(app))

    play(scenario, session, size=(72, 30))


def test_a_click_shows_them():
    session = FakeSession()
    session.found = [LONG]

    async def scenario(app, pilot):
        await until(pilot, lambda: "parameters get no" in text_of(app))
        await pilot.click("#findings", offset=(5, 0))
        await until(pilot, lambda: "8 Findings 1" in text_of(app))

    play(scenario, session, size=(140, 40))
