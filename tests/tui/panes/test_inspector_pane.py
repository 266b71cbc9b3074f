from __future__ import annotations

from dataclasses import replace

import pytest
from rich.style import Style

from gradscope.inspect.records.records import Location, SavedRecord, WriteRecord
from gradscope_tui.panes.inspector_pane import describe
from gradscope_tui.widgets.labels import UNREADABLE
from tests.tui.fake import chain, summary


def lines(node, width=60, names=None):
    return [line.plain for line in describe(node, width, lambda name: Style.null(), names or {})]


def test_a_node_that_has_not_run_says_what_is_not_known_yet():
    shown = lines(chain()[1], names={1002: "#2 AccumulateGrad layers.0.weight"})
    assert shown[0] == "AddmmBackward0 #1  · wait"
    assert "made at train.py:2 in forward" in shown
    assert "  known when it is about to run" in shown
    assert "[0] → #2 AccumulateGrad layers.0.weight" in shown
    assert "[1] → a node outside this backward" in shown
    assert "mat1 float32 (3,4) v0=v0 ok" in shown


def test_gradients_are_shown_with_statistics_and_histogram():
    node = replace(chain()[0], state="done", grad_outputs=(summary(), None), grad_inputs=(summary(),))
    shown = lines(node, names={1001: "#1 Addmm"})
    assert "[0] float32 (3,4) cpu" in shown
    assert "[1] None" in shown
    assert "[0] float32 (3,4) cpu → #1 Addmm" in shown
    assert any("norm 0.5" in line and "max 0.25" in line for line in shown)
    assert any("zero 25%" in line for line in shown)
    assert any("█" in line for line in shown)
    assert any("2^-6" in line and "2^-2" in line for line in shown)


def test_nan_is_marked_in_words_and_signs():
    node = replace(chain()[0], grad_outputs=(summary(nans=2),))
    text = "\n".join(lines(node))
    assert "‼NaN 2" in text
    assert "‼norm nan" in text
    assert "finite 10 of 12" in text


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
    assert "result float32 (3,4) v0≠v2 ‼ MODIFIED" in shown


def test_a_released_tensor_has_neither_shape_nor_version():
    saved = SavedRecord("result", None, "float32", 0, None, None, "released")
    assert "result float32 released" in lines(replace(chain()[0], saved=(saved,)))


def test_a_single_value_is_shown_instead_of_statistics():
    one = replace(summary(numel=1), shape=(), preview="[0.125]")
    shown = lines(replace(chain()[0], grad_outputs=(one,)))
    assert "    0.125" in shown
    assert not any("norm" in line for line in shown)


def test_a_leaf_says_where_its_gradient_goes():
    assert "  added to layers.0.weight.grad" in lines(chain()[2])


def test_no_line_of_statistics_is_wider_than_the_pane():
    node = replace(chain()[0], grad_outputs=(summary(),), grad_inputs=(summary(),))
    for width in (30, 34, 60, 100):
        statistics = [line for line in lines(node, width) if line.startswith("    ")]
        assert len(statistics) > 6
        assert max(map(len, statistics)) <= width


@pytest.mark.parametrize(
    ("state", "known"), [("done", "not seen"), ("failed", "none: it failed"), ("skipped", "none: it is left out")]
)
def test_what_a_node_that_has_run_has_produced_is_not_said_to_be_known_later(state, known):
    text = "\n".join(lines(replace(chain()[1], state=state)))
    assert known in text
    assert "known when" not in text


def test_a_node_that_a_damaged_file_has_lost_is_said_to_be_lost_and_nothing_else():
    shown = lines(replace(chain()[1], name=UNREADABLE, state="failed"), width=30)
    assert " ".join(shown) == "Node #1 cannot be read: the recording is damaged where it stands."
    assert all(len(line) <= 30 for line in shown)
