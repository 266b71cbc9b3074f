"""Schedules that are stepped too early, and those that only look so."""

import warnings

import pytest

import gradscope.inspect as gi


def codes_of(fw, train):
    """Return what is found where `train` is given a model, an optimizer, a schedule and what runs one backward."""
    model = fw.nn.Linear(4, 1)
    optimizer = fw.optim.SGD(model.parameters(), lr=0.1)
    schedule = fw.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.9)

    def backward():
        optimizer.zero_grad()
        (model(fw.randn(8, 4)) - 1).square().mean().backward()

    with gi.Doctor() as doctor, warnings.catch_warnings(action="ignore"):
        train(optimizer, schedule, backward)
    return [symptom.code for symptom in doctor.diagnosis.symptoms]


@pytest.mark.parametrize("batches", [1, 3])
def test_a_schedule_before_the_steps_of_an_epoch_is_found(fw, batches):
    def train(optimizer, schedule, backward):
        for _ in range(3):
            schedule.step()
            for _ in range(batches):
                backward()
                optimizer.step()

    assert codes_of(fw, train) == ["D363"]


def test_a_step_that_a_scaler_left_out_is_healthy(fw):
    def train(optimizer, schedule, backward):
        for number in range(3):
            backward()
            if number:  # a GradScaler leaves out the step of gradients that overflow
                optimizer.step()
            schedule.step()

    assert codes_of(fw, train) == []


def test_a_training_that_goes_on_is_healthy(fw):
    def train(optimizer, schedule, backward):
        schedule.load_state_dict({**schedule.state_dict(), "last_epoch": 5, "_step_count": 6})
        for _ in range(3):
            backward()
            optimizer.step()
            schedule.step()

    assert codes_of(fw, train) == []


def test_a_first_step_whose_closure_calls_the_first_backward_has_come_before_the_schedule(fw):
    model = fw.nn.Linear(2, 1)
    optimizer = fw.optim.SGD(model.parameters(), lr=0.1)
    schedule = fw.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)

    def closure():
        optimizer.zero_grad()
        loss = model(fw.ones(8, 2)).square().mean()
        loss.backward()
        return loss

    with gi.Doctor() as doctor:
        for _ in range(3):
            optimizer.step(closure)
            schedule.step()
    assert "D363" not in {symptom.code for symptom in doctor.diagnosis.symptoms}
