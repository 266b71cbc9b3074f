"""Dropouts behind the last layer, and those that belong where they are."""

import pytest

import gradscope.inspect as gi


def found_in(fw, loss):
    """Return the codes of what is found in a backward of a loss."""
    fw.manual_seed(0)
    with gi.Doctor() as doctor:
        loss(fw.nn.Linear(6, 4), fw.randn(8, 6), fw.nn.functional).backward()
    return [symptom for symptom in doctor.diagnosis.symptoms if symptom.code == "D362"]


@pytest.mark.parametrize(
    ("what", "loss"),
    [
        ("logits", lambda fw, model, x, f: f.cross_entropy(f.dropout(model(x), 0.5), fw.arange(8) % 4)),
        ("logits", lambda fw, model, x, f: f.nll_loss(f.log_softmax(f.dropout(model(x)), 1), fw.arange(8) % 4)),
        (
            "logits",
            lambda fw, model, x, f: f.binary_cross_entropy_with_logits(fw.nn.Dropout(0.3)(model(x)), fw.ones(8, 4)),
        ),
        ("logits", lambda fw, model, x, f: f.cross_entropy(f.dropout(model(x)).view(16, 2), fw.arange(16) % 2)),
        ("predictions", lambda fw, model, x, f: f.mse_loss(f.dropout(model(x)[:, :1].mean(1)), fw.ones(8))),
    ],
)
def test_a_dropout_of_what_is_judged_is_found(fw, what, loss):
    (found,) = found_in(fw, lambda model, x, f: loss(fw, model, x, f))
    assert f"sets {what} to 0" in found.text


@pytest.mark.parametrize(
    "loss",
    [
        lambda fw, model, x, f: f.cross_entropy(model(f.dropout(x, 0.5)), fw.arange(8) % 4),
        lambda fw, model, x, f: f.cross_entropy(fw.nn.Dropout(0.5).eval()(model(x)), fw.arange(8) % 4),
        lambda fw, model, x, f: f.cross_entropy(f.dropout(model(x), training=False), fw.arange(8) % 4),
        lambda fw, model, x, f: f.cross_entropy(model(x) * (fw.rand(8, 4) > 0.5), fw.arange(8) % 4),
        lambda fw, model, x, f: f.mse_loss(f.dropout(model(x)), model(x).detach()),
        lambda fw, model, x, f: f.cross_entropy(model(x) + f.dropout(model(x)), fw.arange(8) % 4),
    ],
)
def test_other_dropouts_are_healthy(fw, loss):
    assert found_in(fw, lambda model, x, f: loss(fw, model, x, f)) == []
