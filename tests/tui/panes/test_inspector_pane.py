from __future__ import annotations

from dataclasses import replace

import pytest
from rich.style import Style

from gradscope.inspect.records.records import Location, SavedRecord, WriteRecord
from gradscope_tui.panes.graph_pane import GraphPane
from gradscope_tui.panes.inspector_pane import InspectorPane, TensorLink, describe
from gradscope_tui.screens.tensor_screen import TensorScreen
from gradscope_tui.sessions.session_snapshot import Focus, Neighbour
from gradscope_tui.widgets.labels import UNREADABLE
from tests.tui.fake import chain, play, summary, text_of, until


def described(node, width=60, **facts):
    return describe(Focus(node, **facts), width, lambda name: Style.null())


def lines(node, width=60, **facts):
    return [line.text.plain for line in described(node, width, **facts).lines]


def test_a_node_that_has_not_run_says_what_is_not_known_yet():
    shown = lines(chain()[1], targets={1002: Neighbour(2, "#2 AccumulateGrad layers.0.weight")})
    assert shown[0] == "AddmmBackward0 #1  · wait  layers.0"
    assert shown[1] == "made at train.py:2 forward  x = layer_1(x)"
    assert "  grad in: known when it is about to run" in shown
    assert "  grad out: known when it has run" in shown
    assert "  to   [0] #2 AccumulateGrad layers.0.weight" in shown
    assert "  to   [1] outside this backward" in shown
    assert "  mat1  unchanged since version 0" in shown


def test_the_code_of_a_line_has_a_line_of_its_own_where_there_is_no_room_beside():
    assert lines(chain()[1], 42)[1:2] == ["made at train.py:2 forward  x = layer_1(x)"]
    assert lines(chain()[1], 41)[1:3] == ["made at train.py:2 forward", "  x = layer_1(x)"]
    assert lines(chain()[1], 25)[1:3] == ["made at train.py:2", "  x = layer_1(x)"]
    assert lines(chain()[1], 15)[2] == "  x = layer_1(…"


def test_the_head_stays_and_every_tensor_and_neighbour_is_a_link():
    node = replace(chain()[0], state="done", grad_outputs=(summary(),), grad_inputs=(summary(),))
    shown = described(node, targets={1001: Neighbour(1, "#1 Addmm")}, sources=(Neighbour(7, "#7 Mul"),))
    assert [line.link for line in shown.head] == [None, None]
    links = dict.fromkeys(line.link for line in shown.body if line.link is not None)
    assert list(links) == [
        TensorLink("at_node(0).grads[0]", "grad in of #0"),
        TensorLink("at_node(0).produced[0]", "grad out of #0"),
        TensorLink("at_node(0).saved[0]", "saved mat1 of #0"),
        7,
        1,
    ]


def test_statistics_stand_in_columns():
    node = replace(chain()[0], grad_outputs=(summary(), None), grad_inputs=(replace(summary(), mean=-1.5e-7),))
    shown = lines(node, 80)
    head = next(line for line in shown if "norm" in line and "mean" in line)
    rows = [line for line in shown if line.startswith("grad ") and "0.5" in line]
    assert head.split() == ["norm", "mean", "std", "min", "max", "zero"]
    assert [row.split()[-6:] for row in rows] == [
        ["0.5", "0.01", "0.1", "-0.25", "0.25", "25%"],
        ["0.5", "-1.5e-07", "0.1", "-0.25", "0.25", "25%"],
    ]
    for name in head.split():
        end = head.index(name) + len(name)
        assert all(row[end - 1] != " " and row[end : end + 1] in ("", " ") for row in rows)
    assert any(line.split() == ["grad", "in", "1", "None"] for line in shown)


def test_histograms_are_as_wide_as_the_pane_on_one_axis():
    node = replace(chain()[0], grad_outputs=(replace(summary(), negatives=((-2, 2),)),), grad_inputs=(summary(),))
    shown = lines(node, 100)
    axis = shown[next(row for row, line in enumerate(shown) if line.startswith("Histograms")) + 1]
    assert axis.split() == ["-2^-2", "-2^-6", "0", "2^-6", "2^-2"]
    assert 95 <= len(axis) <= 100
    assert sum("█" in line for line in shown) == 2


def test_nan_is_marked_in_words_and_signs():
    text = "\n".join(lines(replace(chain()[0], grad_outputs=(summary(nans=2),))))
    assert "NaN" in text
    assert "‼2" in text
    assert "‼nan" in text


def test_columns_that_have_no_room_go_those_of_nan_last():
    node = replace(chain()[0], grad_outputs=(summary(nans=2),))
    head = next(line for line in lines(node, 34) if "norm" in line)
    assert head.split()[:2] == ["norm", "NaN"]
    assert len(head) <= 34


def test_a_derivative_is_a_formula_for_each_argument():
    shown = lines(chain()[1], derivative=(("mat1", "g @ mat2.T"), ("mat2", "mat1.T @ g")))
    assert "  grad of mat1 = g @ mat2.T" in shown
    assert "  grad of mat2 = mat1.T @ g" in shown


def test_a_saved_tensor_that_was_written_is_said_first_and_where_it_stands():
    writes = (
        WriteRecord("result", "add_", Location("/home/me/train.py", 7, "main", "y += 1")),
        WriteRecord("result", "SGD.step", None),
    )
    saved = SavedRecord("result", (3, 4), "float32", 48, 0, 2, "modified", writes=writes)
    shown = lines(replace(chain()[0], saved=(saved,)))
    first = shown.index("‼ result was written after it had been saved for this node")
    assert first < 5
    assert shown[first + 1 : first + 3] == ["  by add_ at train.py:7", "  by SGD.step"]
    assert "  result  ‼ MODIFIED: saved at version 0, now 2" in shown


def test_the_columns_that_leave_bad_elements_out_are_named_beside_a_norm_that_does_not():
    node = replace(chain()[0], grad_outputs=(summary(),), grad_inputs=(summary(nans=1),))
    assert any(line.startswith("Tensors float32 cpu, mean to max: finite only ──") for line in lines(node, 90))
    assert any(line.startswith("Tensors float32 cpu, min to max: finite only ─") for line in lines(node, 50))
    assert any(line.startswith("Tensors float32 cpu, max: finite only ─") for line in lines(node, 40))
    assert any(line.startswith("Tensors float32 cpu ──") for line in lines(node, 35))
    clean = replace(node, grad_inputs=(summary(),))
    assert not any("finite" in line for line in lines(clean, 90))


def test_a_released_tensor_that_the_debugger_keeps_says_why_it_is_in_the_table():
    saved = SavedRecord("result", (3, 4), "float32", 48, 0, 0, "released", summary())
    shown = lines(replace(chain()[0], saved=(saved,)), 90)
    assert any(line.startswith("saved result") for line in shown)
    assert "  result  released by the program, kept by the debugger" in shown


def test_a_released_tensor_has_neither_shape_nor_version_and_cannot_be_opened():
    saved = SavedRecord("result", None, "float32", 0, None, None, "released")
    shown = described(replace(chain()[0], saved=(saved,)))
    (line,) = (line for line in shown.lines if "result" in line.text.plain)
    assert (line.text.plain, line.link) == ("  result float32  released", None)


def test_a_single_value_is_shown_instead_of_statistics():
    one = replace(summary(numel=1), shape=(), preview="[0.125]")
    shown = lines(replace(chain()[0], grad_outputs=(one,)))
    assert any(line.split() == ["grad", "in", "()", "0.125"] for line in shown)
    assert not any("norm" in line for line in shown)


def test_a_leaf_says_where_its_gradient_goes():
    assert "adds to layers.0.weight.grad" in lines(chain()[2])


def test_no_line_is_wider_than_the_pane():
    node = replace(chain()[0], grad_outputs=(summary(),), grad_inputs=(summary(),))
    for width in (34, 60, 100):
        body = described(node, width, sources=(Neighbour(1, "#1 Add"),)).body
        assert max(line.text.cell_len for line in body) <= width


@pytest.mark.parametrize(
    ("state", "known"),
    [("done", "not kept: it ran free"), ("failed", "none: it failed"), ("skipped", "none: it is left out")],
)
def test_what_a_node_that_has_run_has_produced_is_not_said_to_be_known_later(state, known):
    text = "\n".join(lines(replace(chain()[1], state=state)))
    assert known in text
    assert "known when" not in text


def test_a_node_that_a_damaged_file_has_lost_is_said_to_be_lost_and_nothing_else():
    shown = lines(replace(chain()[1], name=UNREADABLE, state="failed"), width=30)
    assert " ".join(shown) == "Node #1 cannot be read: the recording is damaged where it stands."
    assert all(len(line) <= 30 for line in shown)


def test_enter_goes_to_a_node_and_opens_a_tensor():
    async def scenario(app, pilot):
        pane, graph = app.query_one(InspectorPane), app.query_one(GraphPane)
        await until(pilot, lambda: "grad of self = g * mask" in pane.text and "to   #1 Addmm" in pane.text)
        await pilot.press("2")
        pane.cursor = next(row for row, line in enumerate(pane._shown.lines) if line.link == 1)
        await pilot.press("enter")
        await until(pilot, lambda: graph.index == 1 and "from #0 Relu" in pane.text)
        pane.cursor = next(row for row, line in enumerate(pane._shown.lines) if isinstance(line.link, TensorLink))
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, TensorScreen))
        assert app.screen.subject.expression == "at_node(1).saved[0]"

    play(scenario, size=(120, 40))


def test_the_head_stays_where_the_rest_is_scrolled():
    async def scenario(app, pilot):
        pane = app.query_one(InspectorPane)
        await until(pilot, lambda: "grad in" in pane.text)
        await pilot.press("2", "G")
        await until(pilot, lambda: pane.scroll_offset.y > 0)
        shown = text_of(app)
        assert "ReluBackward0 #0" in shown
        assert "2^-2" in shown
        await pilot.press("g")
        await until(pilot, lambda: pane.scroll_offset.y == 0)

    play(scenario, size=(80, 24))


def test_the_cursor_goes_from_one_line_that_leads_anywhere_to_the_next():
    async def scenario(app, pilot):
        pane = app.query_one(InspectorPane)
        await until(pilot, lambda: "grad in" in pane.text and "to   #1 Addmm" in pane.text)
        await pilot.press("2")
        seen = []
        for key in ("down", "down", "up", "up"):
            seen.append(pane._shown.lines[pane.cursor].text.plain.split()[0])
            await pilot.press(key)
        assert seen == ["grad", "saved", "to", "saved"]

    play(scenario, size=(120, 40))


def test_a_line_that_leads_nowhere_says_what_enter_is_for():
    async def scenario(app, pilot):
        pane = app.query_one(InspectorPane)
        await until(pilot, lambda: "grad in" in pane.text)
        await pilot.press("2")
        pane.cursor = 0
        await pilot.press("enter")
        await until(pilot, lambda: "Enter opens a tensor" in text_of(app))

    play(scenario)


def test_a_click_on_a_node_goes_there():
    async def scenario(app, pilot):
        pane, graph = app.query_one(InspectorPane), app.query_one(GraphPane)
        await until(pilot, lambda: "to   #1 Addmm" in pane.text)
        row = next(row for row, line in enumerate(pane._shown.lines) if line.link == 1)
        await pilot.click(InspectorPane, offset=(10, row + 1))
        await until(pilot, lambda: graph.index == 1)

    play(scenario, size=(120, 40))
