"""Programs as people break them, written before the rules were: how many causes the doctor names.

The table in docs/explanations.md is made of :data:`NAMED`, :data:`SYMPTOM` and :data:`MISSED`.
"""

import contextlib
import io
import json
import warnings
from pathlib import Path

import pytest

from gradscope.cli import main
from tests.pytorch_versions import require_pytorch

PROGRAMS = Path(__file__).parent / "broken_programs"
PAGE = Path(__file__).parents[3] / "docs" / "explanations.md"

# The cause is named, by which finding, and nothing else is said.
NAMED = {
    "all_zero_linear": "D329",
    "attention_batch_second": "D336",
    "attention_over_queries": "D321",
    "batch_norm_of_one": "D318",
    "batch_taken_for_time": "D336",
    "causal_mask_inverted": "D332",
    "cleared_before_the_step": "D309",
    "clipped_after_the_step": "D327",
    "clipped_before_backward": "D327",
    "clipped_to_nothing": "D325",
    "clipped_while_scaled": "D328",
    "column_and_row": "D306",
    "critic_steps_on_the_generator": "D322",
    "dead_bias": "D316",
    "decoder_copied": "D335",
    "detached_metric_as_loss": "D303",
    "dropout_in_functional_form": "D349",
    "eval_not_undone": "D318",
    "exponential_decay_per_batch": "D323",
    "half_without_scaler": "D334",
    "head_replaced": "D308",
    "hidden_detached_each_step": "D333",
    "inputs_not_scaled": "D331",
    "layer_made_in_forward": "D308",
    "layers_in_a_list": "D308",
    "learning_rate_too_large": "D324",
    "learning_rate_too_small": "D325",
    "loss_made_anew": "D303",
    "mask_with_an_empty_row": "D302",
    "mask_without_channel": "D306",
    "never_put_into_train_mode": "D318",
    "norm_clipped_far_too_low": "D325",
    "optimizer_of_the_old_model": "D308",
    "parameter_assigned_in_forward": "D308",
    "predictions_rounded": "D316",
    "prior_state_detached_in_module": "D333",
    "probabilities_into_nll": "D320",
    "relu_on_the_logits": "D320",
    "schedule_before_the_step": "D363",
    "schedule_for_epochs_run_for_batches": "D323",
    "shared_optimizer_after_refit": "D308",
    "sigmoid_before_logits": "D320",
    "softmax_in_the_model": "D320",
    "softmax_of_one_logit": "D321",
    "softmax_over_the_batch": "D321",
    "step_forgotten": "D310",
    "summed_loss": "D324",
    "targets_in_a_column": "D306",
    "two_optimizers": "D322",
    "tying_lost": "D335",
    "validated_in_train_mode": "D319",
    "view_instead_of_transpose": "D337",
    "weight_decay_too_strong": "D326",
    "weights_all_alike": "D329",
    "weights_of_variance_one": "D330",
    "wrong_backward_by_sign": "D304",
    "wrong_derivative": "D304",
}
# What is named is what the cause leads to, or the cause and what it leads to.
SYMPTOM = {"hidden_never_detached": ["D310", "D311"], "sgd_explodes": ["D324"]}
# Nothing is said, and why.
MISSED = {
    "accumulated_without_dividing": "a sum over micro-batches is as good as their mean with another learning rate",
    "frozen_by_accident": "frozen parameters are listed below the findings: they may be meant",
    "loss_of_the_wrong_sign": "nothing tells a loss that is to grow from one that is to fall",
}
# Those that were written when the rules were there: of these 14 were named at first sight, and two by a symptom.
LATER = {
    "all_zero_linear",
    "attention_batch_second",
    "batch_norm_of_one",
    "critic_steps_on_the_generator",
    "dead_bias",
    "decoder_copied",
    "detached_metric_as_loss",
    "dropout_in_functional_form",
    "exponential_decay_per_batch",
    "frozen_by_accident",
    "layers_in_a_list",
    "loss_of_the_wrong_sign",
    "norm_clipped_far_too_low",
    "prior_state_detached_in_module",
    "probabilities_into_nll",
    "relu_on_the_logits",
    "sgd_explodes",
    "shared_optimizer_after_refit",
    "softmax_of_one_logit",
    "targets_in_a_column",
    "wrong_backward_by_sign",
}

EXPECTED = {name: [code] for name, code in NAMED.items()} | SYMPTOM | {name: [] for name in MISSED}

CASES = [
    pytest.param(name, framework, marks=pytest.mark.torch if framework == "torch" else ())
    for name in EXPECTED
    for framework in ("gradscope", "torch")
]


def codes_in(name, framework, folder):
    """Return the codes of what the doctor finds in a program, under a framework."""
    if framework == "torch":
        torch = pytest.importorskip("torch")
        if {"D336", "D337"}.intersection(EXPECTED[name]):
            require_pytorch(torch, "2.8")  # 2.4 does not tell what gradients its nodes expect
    path = folder / f"{name}.py"
    path.write_text((PROGRAMS / f"{name}.py").read_text().replace("torch", framework))
    out = io.StringIO()
    with contextlib.redirect_stdout(out), warnings.catch_warnings(action="ignore"):
        main(["doctor", "--format", "json", str(path)])
    return [symptom["code"] for symptom in json.loads(out.getvalue())["symptoms"]]


@pytest.mark.parametrize(("name", "framework"), CASES)
def test_the_cause_is_named_once(name, framework, tmp_path):
    assert codes_in(name, framework, tmp_path) == EXPECTED[name]


def test_the_documentation_counts_them():
    assert set(EXPECTED) == {path.stem for path in PROGRAMS.glob("*.py")}
    assert table() in PAGE.read_text(encoding="utf-8")


def table():
    """Return how many causes are named, as a table in Markdown."""
    lines = ["| programs | cause named | symptom | missed |", "|---|--:|--:|--:|"]
    for title, group in (("before the rules", set(EXPECTED) - LATER), ("after them", LATER)):
        counts = [len(group & set(kind)) for kind in (NAMED, SYMPTOM, MISSED)]
        lines.append(f"| {len(group)} written {title} | {counts[0]} | {counts[1]} | {counts[2]} |")
    lines += ["", "| missed | why |", "|---|---|"]
    lines += [f"| `{name}` | {why} |" for name, why in MISSED.items()]
    return "\n".join(lines)
