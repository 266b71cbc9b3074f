"""How far steps move the weights is measured, and what is meant is no finding."""

import gradscope.inspect as gi


def codes_of(fw, model, optimizer, *, steps=8, schedule=None, reduction="mean"):
    with gi.Doctor() as doctor:
        for _ in range(steps):
            optimizer.zero_grad()
            fw.nn.functional.mse_loss(model(fw.randn(64, 4)), fw.zeros(64, 4), reduction=reduction).backward()
            optimizer.step()
            if schedule is not None:
                schedule.step()
    return [symptom.code for symptom in doctor.diagnosis.symptoms]


def test_an_adapter_that_starts_at_zero_is_no_finding(fw):
    model = fw.nn.Linear(4, 4)
    with fw.no_grad():
        model.weight.zero_()
    assert codes_of(fw, model, fw.optim.Adam(model.parameters(), lr=0.01)) == []


def test_a_warm_up_that_starts_at_nothing_is_no_finding(fw):
    model = fw.nn.Linear(4, 4)
    optimizer = fw.optim.SGD(model.parameters(), lr=0.01)
    schedule = fw.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1e-9 * (step + 1))
    assert codes_of(fw, model, optimizer, schedule=schedule) == []


def test_a_schedule_that_ends_at_zero_is_no_finding(fw):
    model = fw.nn.Linear(4, 4)
    optimizer = fw.optim.SGD(model.parameters(), lr=0.01)
    schedule = fw.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=12)
    assert codes_of(fw, model, optimizer, steps=12, schedule=schedule) == []


def test_a_sum_whose_steps_are_small_is_no_finding(fw):
    model = fw.nn.Linear(4, 4)
    assert codes_of(fw, model, fw.optim.SGD(model.parameters(), lr=1e-5), reduction="sum") == []


def test_a_sum_is_blamed_for_the_steps_that_it_makes_large(fw):
    model = fw.nn.Linear(4, 4)
    optimizer = fw.optim.SGD(model.parameters(), lr=0.1)
    with gi.Doctor() as doctor:
        for _ in range(3):
            optimizer.zero_grad()
            fw.nn.functional.mse_loss(model(fw.randn(64, 4)), fw.ones(64, 4), reduction="sum").backward()
            optimizer.step()
    (symptom,) = doctor.diagnosis.symptoms
    assert symptom.code == "D324"
    assert "a sum over 256 elements" in symptom.text
