"""The limits can be set, and each says where it comes from."""

import textwrap
from dataclasses import fields
from pathlib import Path

import pytest

import gradscope.inspect as gi
from gradscope.inspect.diagnosis.finding_limits import DEBUGGER, DOCTOR, Limits, limits_from, limits_of, limits_table
from gradscope.inspect.diagnosis.rules.gradients.d314_vanishing_gradients import VanishingGradients
from gradscope.inspect.diagnosis.rules.layers.d321_softmax_dimension import SoftmaxDimension
from gradscope.inspect.diagnosis.rules.layers.d329_units_start_alike import UnitsStartAlike
from gradscope.inspect.diagnosis.rules.layers.d332_inverted_mask import InvertedMask
from gradscope.inspect.diagnosis.rules.layers.d333_detached_hidden_state import DetachedHiddenState
from gradscope.inspect.diagnosis.rules.layers.d341_excessive_dropout import ExcessiveDropout
from gradscope.inspect.diagnosis.rules.optimizers.d310_unstepped_optimizer import UnsteppedOptimizer
from gradscope.inspect.diagnosis.rules.optimizers.d324_oversized_updates import OversizedUpdates
from gradscope.inspect.diagnosis.rules.optimizers.d325_undersized_updates import UndersizedUpdates

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


# By rule: a limit that none of its bad program's numbers is beyond.
OUT_OF_REACH = [
    (SoftmaxDimension, {"sum_to_one": 100.0}),
    (OversizedUpdates, {"finite_steps": 100}),
    (InvertedMask, {"mask_length": 100}),
    (DetachedHiddenState, {"recurrent_calls": 100}),
    (UnsteppedOptimizer, {"cleared": 100}),
    (VanishingGradients, {"flow_ratio": 1e30}),
    (UndersizedUpdates, {"sampled_steps": 1}),
    (UnitsStartAlike, {"alike_units": 1000}),
    (UnitsStartAlike, {"first_backwards": 100}),
    (ExcessiveDropout, {"dropped": 0.95}),
]


@pytest.mark.parametrize(("rule", "values"), OUT_OF_REACH)
def test_a_rule_is_silent_where_its_limit_is_out_of_reach(fw, rule, values):
    program = compile(textwrap.dedent(rule.bad), rule.code, "exec")
    found = []
    for limits in (Limits(), Limits(**values)):
        fw.manual_seed(0)
        with gi.Doctor(limits=limits) as doctor:
            exec(program, {"gs": fw})
        found.append(rule.code in {symptom.code for symptom in doctor.diagnosis.symptoms})
    assert found == [True, False]


def test_results_are_as_near_to_an_end_as_the_limit_says(fw):
    def is_found(limits):
        layer = fw.nn.Linear(1, 1, bias=False)
        fw.nn.init.constant_(layer.weight, 1.0)
        with gi.Doctor(limits=limits) as doctor:
            for _ in range(2):
                fw.tanh(layer(fw.full((4, 1), 1.5))).sum().backward()  # tanh(1.5) is 0.905
        return "D331" in {symptom.code for symptom in doctor.diagnosis.symptoms}

    assert [is_found(Limits()), is_found(Limits(near_end=0.2))] == [False, True]


def test_a_gradient_explodes_beyond_the_limit(fw):
    def is_found(limits):
        layer = fw.nn.Linear(4, 4)
        with gi.Doctor(limits=limits) as doctor:
            (layer(fw.ones(8, 4)) * 1e3).sum().backward()
        return "D315" in {symptom.code for symptom in doctor.diagnosis.symptoms}

    assert [is_found(Limits(wild_gradient=1e9)), is_found(Limits(wild_gradient=10.0))] == [False, True]


def test_each_limit_is_of_the_doctors_findings_or_the_debuggers():
    names = {entry.name for entry in fields(Limits)}
    assert set(limits_of(DOCTOR)) | set(limits_of(DEBUGGER)) == names
    with pytest.raises(ValueError, match="gradscope debug --limit faded_signal=1e-6"):
        limits_from(["faded_signal=1e-6"])
    assert limits_from(["faded_signal=1e-6"], DEBUGGER, Limits(norm_spread=5.0)) == Limits(
        norm_spread=5.0, faded_signal=1e-6
    )


def test_the_documentation_has_the_table_of_the_limits():
    assert limits_table() in PAGE.read_text(encoding="utf-8")
    assert all(entry.metadata["source"] for entry in fields(Limits))
