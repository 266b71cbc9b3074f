from __future__ import annotations

import pytest

import gradscope as gs
from gradscope.inspect import Doctor


def codes(lib, layers):
    """Return what the doctor finds where such layers are trained for three steps."""
    with Doctor() as doctor:
        model = lib.nn.Sequential(*layers())
        optimizer = lib.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            model(lib.randn(16, 32)).square().mean().backward()
            optimizer.step()
    return {symptom.code: symptom for symptom in doctor.diagnosis.symptoms}


def linear(lib, std):
    layer = lib.nn.Linear(32, 32)
    lib.nn.init.normal_(layer.weight, std=std)
    lib.nn.init.zeros_(layer.bias)
    return layer


@pytest.mark.parametrize("name", ["gradscope", "torch"])
def test_weights_that_start_too_small_are_the_cause_of_all_that_vanishes(name):
    lib = pytest.importorskip(name)
    lib.manual_seed(0)
    found = codes(lib, lambda: [layer for _ in range(8) for layer in (linear(lib, 0.02), lib.nn.GELU())])
    assert list(found) == ["D330"]
    assert "the weights of 8 layers start too small" in found["D330"].text
    assert found["D330"].location.source == "lib.nn.init.normal_(layer.weight, std=std)"


def test_small_weights_between_norms_and_those_of_one_last_layer_are_meant():
    gs.manual_seed(0)
    normed = codes(gs, lambda: [layer for _ in range(8) for layer in (linear(gs, 0.02), gs.nn.LayerNorm(32))])
    assert "D330" not in normed
    assert "D330" not in codes(gs, lambda: [linear(gs, 1 / 32**0.5), gs.nn.Tanh(), linear(gs, 1e-6)])
