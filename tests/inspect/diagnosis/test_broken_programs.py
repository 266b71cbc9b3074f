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

PROGRAMS = Path(__file__).parent / "broken_programs"

# The cause is named, by which finding, and nothing else is said.
NAMED = {
    "attention_over_queries": "D321",
    "batch_taken_for_time": "D336",
    "causal_mask_inverted": "D332",
    "cleared_before_the_step": "D309",
    "clipped_after_the_step": "D327",
    "clipped_before_backward": "D327",
    "clipped_while_scaled": "D328",
    "clipped_to_nothing": "D325",
    "column_and_row": "D306",
    "eval_not_undone": "D318",
    "half_without_scaler": "D334",
    "head_replaced": "D308",
    "hidden_detached_each_step": "D333",
    "inputs_not_scaled": "D331",
    "layer_made_in_forward": "D308",
    "learning_rate_too_large": "D324",
    "learning_rate_too_small": "D325",
    "loss_made_anew": "D303",
    "mask_with_an_empty_row": "D302",
    "mask_without_channel": "D306",
    "never_put_into_train_mode": "D318",
    "optimizer_of_the_old_model": "D308",
    "parameter_assigned_in_forward": "D308",
    "predictions_rounded": "D316",
    "schedule_for_epochs_run_for_batches": "D323",
    "sigmoid_before_logits": "D320",
    "softmax_in_the_model": "D320",
    "softmax_over_the_batch": "D321",
    "step_forgotten": "D310",
    "summed_loss": "D324",
    "two_optimizers": "D322",
    "tying_lost": "D335",
    "validated_in_train_mode": "D319",
    "view_instead_of_transpose": "D336",
    "weight_decay_too_strong": "D326",
    "weights_all_alike": "D329",
    "weights_of_variance_one": "D330",
}

CASES = [
    pytest.param(name, framework, marks=pytest.mark.torch if framework == "torch" else ())
    for name in NAMED
    for framework in ("gradscope", "torch")
]


def codes_in(name, framework, folder):
    """Return the codes of what the doctor finds in a program, under a framework."""
    if framework == "torch":
        pytest.importorskip("torch")
    path = folder / f"{name}.py"
    path.write_text((PROGRAMS / f"{name}.py").read_text().replace("torch", framework))
    out = io.StringIO()
    with contextlib.redirect_stdout(out), warnings.catch_warnings(action="ignore"):
        main(["doctor", "--format", "json", str(path)])
    return [symptom["code"] for symptom in json.loads(out.getvalue())["symptoms"]]


@pytest.mark.parametrize(("name", "framework"), CASES)
def test_the_cause_is_named_once(name, framework, tmp_path):
    assert codes_in(name, framework, tmp_path) == [NAMED[name]]
