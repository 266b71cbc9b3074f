"""The layered drawing."""

import shutil
from itertools import combinations, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradscope.inspect.graphs.formats.graph_layout import lay_out
from gradscope.inspect.graphs.formats.graphviz_layout import graphviz_layout

boxes = st.lists(st.tuples(st.floats(10, 200), st.floats(10, 80)), min_size=1, max_size=14)


@st.composite
def drawings(draw, cyclic=False):
    sizes = draw(boxes)
    count = len(sizes)
    pairs = [(a, b) for a in range(count) for b in range(count) if cyclic or a < b]
    arrows = draw(st.lists(st.sampled_from(pairs), max_size=25, unique=True)) if pairs else []
    return sizes, arrows


def apart(first, second):
    (x, y, width, height), (x2, y2, width2, height2) = first, second
    return abs(x - x2) >= (width + width2) / 2 - 0.2 or abs(y - y2) >= (height + height2) / 2 - 0.2


def check_boxes(layout, sizes):
    placed = [(*centre, *size) for centre, size in zip(layout.boxes, sizes)]
    assert all(apart(a, b) for a, b in combinations(placed, 2))
    for x, y, width, height in placed:
        assert x - width / 2 >= 0
        assert y - height / 2 >= 0
        assert x + width / 2 <= layout.width
        assert y + height / 2 <= layout.height


@given(drawings(cyclic=True))
def test_no_box_covers_another_and_all_lie_inside(drawing):
    sizes, arrows = drawing
    check_boxes(lay_out(sizes, arrows), sizes)


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
@settings(max_examples=15)
@given(drawings(cyclic=True))
def test_graphviz_gives_every_box_its_place_and_every_arrow_its_ends(drawing):
    sizes, arrows = drawing
    layout = graphviz_layout(sizes, arrows)
    check_boxes(layout, sizes)
    for arrow, route in zip(arrows, layout.routes):
        assert len(route) % 3 == 1
        ends = (route[0], route[-1])
        for box, end in zip(arrow, ends if layout.curved else ()):
            assert not apart((*end, 0, 0), (*layout.boxes[box], sizes[box][0] + 2, sizes[box][1] + 2))


@given(drawings())
def test_arrows_point_down_from_box_to_box_and_through_no_other(drawing):
    sizes, arrows = drawing
    layout = lay_out(sizes, arrows)
    assert len(layout.routes) == len(arrows)
    for (source, target), route in zip(arrows, layout.routes):
        (x, y), (width, height) = layout.boxes[source], sizes[source]
        assert abs(route[0][0] - x) <= width / 2
        assert route[0][1] == pytest.approx(y + height / 2, abs=0.2)
        (x, y), (width, height) = layout.boxes[target], sizes[target]
        assert abs(route[-1][0] - x) <= width / 2
        assert route[-1][1] == pytest.approx(y - height / 2, abs=0.2)
        assert all(below[1] >= above[1] for above, below in pairwise(route))
        for bend, after in pairwise(route[1:-1]):
            if bend[0] != after[0]:
                continue
            middle = (bend[0], (bend[1] + after[1]) / 2, 0, 0)
            assert all(apart(middle, (*centre, *size)) for centre, size in zip(layout.boxes, sizes))


@given(drawings())
def test_it_is_the_same_each_time(drawing):
    assert lay_out(*drawing) == lay_out(*drawing)


def test_crossings_are_undone():
    # Two chains whose ends are given crosswise.
    layout = lay_out([(40, 20)] * 6, [(0, 3), (1, 2), (2, 5), (3, 4)])
    order = [[layout.boxes[n][0] for n in row] for row in ((0, 1), (3, 2), (4, 5))]
    assert len({left < right for left, right in order}) == 1


def test_a_chain_stands_in_one_line_and_a_tree_over_its_middle():
    chain = lay_out([(40, 20)] * 5, [(i, i + 1) for i in range(4)])
    assert len({x for x, _ in chain.boxes}) == 1
    tree = lay_out([(40, 20)] * 3, [(0, 1), (0, 2)])
    assert tree.boxes[0][0] == pytest.approx((tree.boxes[1][0] + tree.boxes[2][0]) / 2, abs=0.2)


def test_nothing_and_large_drawings():
    assert lay_out([], []).boxes == ()
    count = 1500
    arrows = [(i, i + 1) for i in range(count - 1)] + [(i, count - 1) for i in range(0, count - 2, 7)]
    assert len(lay_out([(60, 30)] * count, arrows).routes) == len(arrows)
