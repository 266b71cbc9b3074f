from __future__ import annotations

from dataclasses import replace

import numpy
import pytest

from gradscope.inspect.diagnosis.nan.bad_values import bad_value_text, inherited_in, produced_bad
from gradscope.inspect.records.records import NodeRecord, SavedRecord
from gradscope.inspect.records.tensor_statistics import summarize

CLEAN, NAN, INF = (summarize(numpy.array([value, 1.0])) for value in (2.0, numpy.nan, numpy.inf))


def node(given, produced, *saved, **more):
    kept = tuple(SavedRecord(f"s{nr}", (2,), "float64", 16, 0, 0, "ok", summary) for nr, summary in enumerate(saved))
    return NodeRecord(
        0, 0, "PowBackward0", "Pow", 1, "", "", None, (), "done", (given,), (produced, None), kept, **more
    )  # fmt: skip


def test_a_bad_value_came_out_of_a_node_only_where_none_of_its_kind_had_gone_in():
    assert [produced_bad(node(*pair)) for pair in ((CLEAN, NAN), (INF, NAN), (CLEAN, INF))] == ["NaN", "NaN", "Inf"]
    assert [produced_bad(node(*pair)) for pair in ((NAN, NAN), (INF, INF), (NAN, CLEAN))] == ["", "", ""]
    assert produced_bad(replace(node(CLEAN, NAN), grad_inputs=None)) == ""


@pytest.mark.parametrize(
    ("saved", "inherited", "expected"),
    [((), None, ""), ((CLEAN,), None, ""), ((CLEAN, NAN), None, "s1"), ((None, INF), None, "s1"),
     ((CLEAN, None), None, None), ((None,), "", ""), ((CLEAN,), "self", "self")],
)  # fmt: skip
def test_what_is_known_of_the_saved_tensors_decides_whether_a_node_has_made_it(saved, inherited, expected):
    assert inherited_in(node(CLEAN, NAN, *saved, inherited=inherited)) == expected


def test_nothing_is_claimed_of_a_node_that_nobody_looked_at():
    assert inherited_in(replace(node(CLEAN, NAN), grad_inputs=None)) is None


def test_each_judgement_has_its_own_words():
    texts = {bad_value_text("PowBackward0", "nan", inherited) for inherited in ("", "self", None)}
    assert len(texts) == 3
    assert all("PowBackward0" in text and "a NaN" in text for text in texts)
