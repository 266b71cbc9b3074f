"""The limits can be set, and each says where it comes from."""

from dataclasses import fields
from pathlib import Path

import gradscope.inspect as gi
from gradscope.inspect.diagnosis.limits import Limits, limits_table

PAGE = Path(__file__).parents[3] / "docs" / "explanations.md"


def codes_with(fw, limits):
    model = fw.nn.Linear(4, 4)
    optimizer = fw.optim.SGD(model.parameters(), lr=0.001)
    with gi.Doctor(limits=limits) as doctor:
        for _ in range(8):
            optimizer.zero_grad()
            (model(fw.randn(8, 4)) - 1).square().mean().backward()
            optimizer.step()
    return [symptom.code for symptom in doctor.diagnosis.symptoms]


def test_a_limit_that_is_set_is_the_one_that_counts(fw):
    assert codes_with(fw, Limits()) == []
    assert codes_with(fw, Limits(small_update=0.1)) == ["D325"]
    assert codes_with(fw, Limits(large_update=1e-6)) == ["D324"]


def test_the_documentation_has_the_table_of_the_limits():
    assert limits_table() in PAGE.read_text(encoding="utf-8")
    assert all(entry.metadata["source"] for entry in fields(Limits))
