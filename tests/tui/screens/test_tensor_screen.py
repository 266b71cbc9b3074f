from __future__ import annotations

import ast

import numpy
import pytest
from hypothesis import given
from hypothesis.extra import numpy as arrays

from gradscope.inspect.records.records import TensorSubject
from gradscope.inspect.records.tensor_pages import page_of
from gradscope_tui.screens.tensor_screen import TensorScreen, as_csv, as_numpy
from tests.tui.fake import FakeSession, play, text_of, until


def session_with(**tensors):
    session = FakeSession()
    session.tensors = tensors
    return session


def view(scenario, size=(100, 30), other="", **tensors):
    """Play a scenario on the viewer of the tensor `x`."""

    async def opened(app, pilot):
        screen = TensorScreen(app.session, TensorSubject("x"), "grad in of #0", other)
        app.push_screen(screen)
        await until(pilot, lambda: app.screen is screen and screen._page)
        await scenario(app, pilot, screen)

    play(opened, session_with(**tensors), size=size)


def cell(app):
    return next(line for line in text_of(app).splitlines() if "] = " in line).strip("│ ")


CUBE = numpy.arange(24, dtype=numpy.float32).reshape(2, 3, 4) - 5


def test_the_keys_stand_out_from_what_they_do():
    async def scenario(app, pilot, screen):
        line = screen.query_one("#tensor-keys").content
        bold = {line.plain[span.start : span.end] for span in line.spans if span.style == "bold"}
        assert {"Esc", "v", ">", "[ ]", "Y"} <= bold
        assert not any(word in key for key in bold for word in ("Close", "NaN", "CSV", "Slice"))

    view(scenario, x=CUBE)


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (60, 16)], ids=str)
def test_a_tensor_is_a_table_of_a_slice(size):
    async def scenario(app, pilot, screen):
        await until(pilot, lambda: "[0, 0, 0] = -5.0" in text_of(app))
        facts = "float32 2 × 3 × 4 slice [0, ↓, →] norm"
        await until(pilot, lambda: facts in " ".join(text_of(app).replace("│", " ").split()))
        await pilot.press("]", "j", "l")
        await until(pilot, lambda: "[1, 1, 1] = 12.0" in text_of(app))
        await pilot.press("]")
        await until(pilot, lambda: "this is the last slice" in text_of(app))
        await pilot.press("t")
        await until(pilot, lambda: "[↓, →, 1]" in text_of(app))

    view(scenario, size, x=CUBE)


@pytest.mark.slow
def test_only_what_is_seen_is_asked_for():
    async def scenario(app, pilot, screen):
        await until(pilot, lambda: "[0, 0] = 0.0" in text_of(app))
        await pilot.press("G")
        await until(pilot, lambda: cell(app) == "[99999, 0] = 0.0")
        asked = [call.arguments[1] for call in app.session.calls if call.verb == "tensor_page"]
        assert all((stop - start) <= 100 for index in asked for start, stop in index)

    view(scenario, x=numpy.zeros((100_000, 1000), numpy.float16)[:, :50])


def test_n_goes_from_nan_to_infinity_and_the_extremes_have_keys():
    array = CUBE.copy()
    array[0, 1, 2], array[1, 2, 3] = numpy.nan, numpy.inf

    async def scenario(app, pilot, screen):
        for key, found in (("n", "[0, 1, 2] = nan"), ("n", "[1, 2, 3] = inf"), ("n", "[0, 1, 2] = nan"),
                           (">", "[1, 2, 3] = inf"), ("<", "[0, 1, 0] = -1.0")):  # fmt: skip
            await pilot.press(key)
            await until(pilot, lambda found=found: found in text_of(app))
        assert "‼ NaN 1" in text_of(app)

    view(scenario, x=array)


def test_a_finite_tensor_says_so():
    async def scenario(app, pilot, screen):
        await pilot.press("n")
        await until(pilot, lambda: "all numbers are finite" in text_of(app))

    view(scenario, x=CUBE)


def test_v_goes_through_heat_map_and_histogram():
    async def scenario(app, pilot, screen):
        await pilot.press("v")
        await until(pilot, lambda: "▀▀▀▀" in text_of(app) and "yellow NaN" in text_of(app))
        await pilot.press("v")
        await until(pilot, lambda: "-2^4" in text_of(app) and "█" in text_of(app))
        await pilot.press("v")
        await until(pilot, lambda: "[0, 0, 0] = -5.0" in text_of(app))

    view(scenario, x=CUBE)


def test_without_colours_the_heat_map_is_made_of_characters(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")

    async def scenario(app, pilot, screen):
        await pilot.press("v")
        await until(pilot, lambda: "larger magnitudes are darker" in text_of(app))
        assert "▀" not in text_of(app)
        assert "%" in text_of(app)

    view(scenario, x=CUBE)


def test_a_tensor_is_compared_with_another():
    async def scenario(app, pilot, screen):
        await pilot.press("c")
        await until(pilot, lambda: app.focused is not None and app.focused.id == "tensor-input")
        assert app.focused.value == "y"
        await pilot.press("enter")
        await until(pilot, lambda: "difference from  y" in text_of(app) and "[0, 0, 0] = 5.0" in text_of(app))
        await pilot.press("r")
        await until(pilot, lambda: "relative error from  y" in text_of(app) and "[0, 0, 0] = 0.5" in text_of(app))
        await pilot.press("c")
        app.focused.value = "z"
        await pilot.press("enter")
        await until(pilot, lambda: "name 'z' is not defined" in text_of(app))

    view(scenario, other="y", x=CUBE, y=CUBE * 2)


def test_the_slice_is_copied_as_numpy_or_csv():
    async def scenario(app, pilot, screen):
        await until(pilot, lambda: "[0, 0, 0] = -5.0" in text_of(app))
        await pilot.press("y")
        await until(pilot, lambda: app.clipboard)
        assert app.clipboard.startswith("np.array([[-5.0, -4.0, -3.0, -2.0], [")
        await pilot.press("Y")
        await until(pilot, lambda: app.clipboard.startswith("-5.0,-4.0"))

    view(scenario, x=CUBE)


def test_a_slice_that_is_too_large_to_copy_says_what_to_do():
    async def scenario(app, pilot, screen):
        await pilot.press("y")
        await until(pilot, lambda: any("too many to copy: s saves" in said.message for said in app._notifications))

    view(scenario, x=numpy.zeros((1000, 1000)))


@pytest.mark.slow
def test_it_is_saved_into_a_new_file_alone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def words(app):
        """What stands on the screen, wherever a long path has had it wrapped."""
        return " ".join(text_of(app).replace("│", " ").split())

    async def scenario(app, pilot, screen):
        for said in ("the tensor is in", "is there already"):
            await pilot.press("s")
            await until(pilot, lambda: app.focused is not None and app.focused.id == "tensor-input")
            app.focused.value = "x"
            await pilot.press("enter")
            await until(pilot, lambda said=said: said in words(app))

    view(scenario, x=CUBE)
    numpy.testing.assert_array_equal(numpy.load(tmp_path / "x.npy"), CUBE)


@pytest.mark.slow
@pytest.mark.parametrize("array", [numpy.float32(0.5), numpy.zeros((0, 3)), numpy.array([1 + 2j]), numpy.ones(3, bool)])
def test_tensors_of_other_kinds_are_shown(array):
    async def scenario(app, pilot, screen):
        for _ in range(3):
            await pilot.press("v", "j", "]", "t")
        await until(pilot, lambda: "Esc Close" in text_of(app))
        await pilot.press("escape")
        await until(pilot, lambda: not isinstance(app.screen, TensorScreen))

    async def opened(app, pilot):
        app.push_screen(TensorScreen(app.session, TensorSubject("x"), "x"))
        await until(
            pilot, lambda: isinstance(app.screen, TensorScreen) and str(numpy.asarray(array).dtype) in text_of(app)
        )
        await scenario(app, pilot, app.screen)

    play(opened, session_with(x=numpy.asarray(array)))


kinds = arrays.array_shapes(min_dims=1, max_dims=2, max_side=4)


@given(arrays.arrays(numpy.float32, kinds) | arrays.arrays(numpy.int8, kinds) | arrays.arrays(numpy.bool_, kinds))
def test_what_is_copied_is_the_same_in_numpy(array):
    page = page_of(array, [(0, size) for size in array.shape])
    flat = array.ndim == 1
    lines = (
        [list(page.values)] if flat else [list(row) for row in numpy.array(page.values, object).reshape(array.shape)]
    )
    text = as_numpy(lines, page.dtype, flat=flat)
    assert ast.parse(text, mode="eval")
    again = eval(text, {"np": numpy})
    assert again.dtype == array.dtype
    numpy.testing.assert_array_equal(again, array)
    assert as_csv(lines, page.dtype).count("\n") == len(lines) - 1
