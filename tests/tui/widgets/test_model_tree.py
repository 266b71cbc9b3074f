"""Modules and parameters as a tree."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradscope.inspect.debugging.session.session_records import ParameterRecord
from gradscope_tui.widgets.graph_rows import ancestors
from gradscope_tui.widgets.model_tree import ModelTree

PATHS = st.sampled_from(["", "a", "a.b", "a.b.c", "a.d", "e", "ab"])
PARAMETERS = st.lists(
    st.builds(
        lambda owner, name, lost: ParameterRecord(f"{owner}.{name}" if owner else name, (2,), unreached=lost),
        PATHS,
        st.sampled_from(["weight", "bias"]),
        st.booleans(),
    ),
    unique_by=lambda parameter: parameter.path,
)


@given(st.lists(PATHS), PARAMETERS)
def test_each_module_and_parameter_has_a_row_below_what_it_is_part_of(modules, parameters):
    rows = ModelTree(modules, parameters).rows()
    owners = {one.path.rpartition(".")[0] for one in parameters}
    expected = {a for path in {*modules, *owners} for a in ancestors(path)}
    assert sorted(row.path for row in rows if row.parameter is None) == sorted(expected)
    assert sorted(row.path for row in rows if row.parameter) == sorted(one.path for one in parameters)
    around: list[str] = []
    for row in rows:
        del around[row.depth :]
        assert ".".join(around) == row.path.rpartition(".")[0]
        if row.parameter is None:
            around.append(row.name)


@given(st.lists(PATHS), PARAMETERS)
def test_what_is_not_reached_stands_first_among_its_neighbours(modules, parameters):
    rows = ModelTree(modules, parameters).rows()
    for kind in (True, False):
        level: dict[str, list[bool]] = {}
        for row in rows:
            if (row.parameter is None) is kind:
                level.setdefault(row.path.rpartition(".")[0], []).append(row.unreached > 0)
        assert all(found == sorted(found, reverse=True) for found in level.values())


@given(st.lists(PATHS), PARAMETERS, st.frozensets(PATHS))
def test_what_is_folded_keeps_its_own_row(modules, parameters, folded):
    tree = ModelTree(modules, parameters)
    shown = {row.path for row in tree.rows(folded)}
    for row in tree.rows():
        around = ancestors(row.path)[:-1]
        assert (row.path in shown) == (not any(part in folded for part in around))


def test_a_module_sums_up_what_is_in_it():
    parameters = [
        ParameterRecord("a.w", (2,), index=1, norm=3.0, recent=(6.0, 3.0)),
        ParameterRecord("a.b.w", (2,), index=2, norm=4.0, recent=(8.0, 4.0)),
        ParameterRecord("a.b.new", (2,), index=-1, recent=(1.0,)),
        ParameterRecord("a.b.lost", (2,), unreached=True),
    ]
    row = ModelTree(["a", "a", "a.b"], parameters).rows()[0]
    assert (row.path, row.norm, row.unreached, list(row.nodes)) == ("a", 5.0, 1, [0, 1, 2])
    assert row.recent == pytest.approx((10.0, 5.0))


def test_nan_stays_nan():
    parameters = [ParameterRecord("a.w", (), norm=math.nan), ParameterRecord("a.b", (), norm=1.0)]
    assert math.isnan(ModelTree([], parameters).rows()[0].norm)
