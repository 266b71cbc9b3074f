"""Targets that the last function of a model cannot reach, and those that it nearly can."""

import pytest

import gradscope.inspect as gi


def codes_of(fw, function, target, loss="mse_loss"):
    fw.manual_seed(0)
    model = fw.nn.Linear(3, 4)
    with gi.Doctor() as doctor:
        getattr(fw.nn.functional, loss)(function(model(fw.randn(16, 3))), target).backward()
    return [symptom.code for symptom in doctor.diagnosis.symptoms]


@pytest.mark.parametrize("loss", ["mse_loss", "smooth_l1_loss", "huber_loss"])
def test_each_function_with_ends_is_asked(fw, loss):
    target = 3 + fw.rand(16, 4)
    for function in (fw.sigmoid, fw.tanh, lambda result: fw.softmax(result, 1)):
        assert codes_of(fw, function, target, loss) == ["D358"]
    assert codes_of(fw, lambda result: fw.sigmoid(result).reshape(4, 16), target.reshape(4, 16), loss) == ["D358"]


def test_targets_of_variance_one_are_far_from_a_sigmoid_and_not_from_tanh(fw):
    fw.manual_seed(1)
    target = fw.randn(16, 4)
    assert codes_of(fw, fw.sigmoid, target) == ["D358"]
    assert codes_of(fw, fw.tanh, target) == []


def test_noisy_labels_and_scaled_results_are_healthy(fw):
    fw.manual_seed(1)
    noisy = fw.rand(16, 4) * 0.5 + 0.7
    assert codes_of(fw, fw.sigmoid, noisy) == []
    assert codes_of(fw, lambda result: 30 * fw.sigmoid(result), 20 + fw.randn(16, 4)) == []
