from __future__ import annotations

import itertools

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gradscope_tui.widgets.diagram_drawing import Arrow, draw

_INTO = {"│": "ud", "─": "lr", "╭": "rd", "╮": "ld", "╰": "ur", "╯": "ul", "├": "urd", "┤": "uld", "┬": "lrd"}
_INTO |= {"┴": "ulr", "┼": "ulrd", "╵": "u", "╶": "r", "╷": "d", "╴": "l", "▼": "u"}
_STEP = {"u": (-1, 0), "d": (1, 0), "l": (0, -1), "r": (0, 1)}
_OTHER = {"u": "d", "d": "u", "l": "r", "r": "l"}


@st.composite
def graphs(draw_from):
    count = draw_from(st.integers(1, 12))
    pairs = [(a, b) for a, b in itertools.product(range(count), repeat=2) if a != b]
    chosen = draw_from(st.sets(st.sampled_from(pairs), max_size=20)) if pairs else set()
    widths = draw_from(st.lists(st.integers(6, 30), min_size=count, max_size=count))
    return widths, draw_from(st.integers(1, 4)), [Arrow(a, b, "1.2e-03") for a, b in sorted(chosen)]


def lines_of(drawing):
    return {(y, x): cell.text for y, row in drawing.lines.items() for x, cell in row.items()}


def boxes_of(drawing):
    return [{(y, x) for y in range(s.y, s.y + s.height) for x in range(s.x, s.x + s.width)} for s in drawing.spots]


PASSING = [(1, 0), (1, 2), (2, 0), (3, 1), (3, 5), (3, 6), (4, 0), (4, 5), (4, 6), (6, 0)]
"""Arrows of which one passes a layer to the right of all its boxes."""


@example(([6] * 7, 1, [Arrow(a, b, "1.2e-03") for a, b in PASSING]))
@given(graphs())
def test_boxes_stand_apart_and_no_line_runs_through_them(graph):
    drawing = draw(*graph)
    boxes = boxes_of(drawing)
    cells = [cell for box in boxes for cell in box]
    assert len(cells) == len(set(cells))
    assert not set(cells) & set(lines_of(drawing))
    everything = [*cells, *lines_of(drawing)]
    assert all(0 <= y < drawing.height and 0 <= x < drawing.width for y, x in everything)


@pytest.mark.slow
@given(graphs())
def test_every_arrow_has_its_head_above_the_box_that_it_leads_to(graph):
    widths, height, arrows = graph
    drawing = draw(widths, height, arrows)
    lines = lines_of(drawing)
    for place, spot in enumerate(drawing.spots):
        heads = [x for x in range(spot.x, spot.x + spot.width) if lines.get((spot.y - 1, x)) == "▼"]
        assert len(heads) == min(spot.width, sum(arrow.target == place for arrow in arrows))


@given(graphs())
def test_no_line_ends_in_the_open(graph):
    drawing = draw(*graph)
    lines, boxes = lines_of(drawing), set().union(*boxes_of(drawing))
    for (y, x), sign in lines.items():
        for way in _INTO.get(sign, ""):
            to = y + _STEP[way][0], x + _STEP[way][1]
            assert to in boxes or _OTHER[way] in _INTO.get(lines.get(to, ""), ""), (sign, y, x)


@given(graphs())
def test_labels_are_written_whole_or_not_at_all(graph):
    drawing = draw(*graph)
    for row in drawing.lines.values():
        text = "".join(row[x].text if x in row else " " for x in range(drawing.width))
        for piece in text.replace("▼", " ").replace("│", " ").split():
            assert piece == "1.2e-03" or set(piece) <= set(_INTO)


def test_arrows_of_one_gap_do_not_run_over_each_other():
    # The first box leads to the right of the second layer, the second to its left: their tracks differ.
    drawing = draw([10, 10, 10, 10], 1, [Arrow(0, 3), Arrow(1, 2), Arrow(0, 2), Arrow(1, 3)])
    signs = set(lines_of(drawing).values())
    assert "▼" in signs
    assert drawing.layers == [0, 0, 1, 1]
