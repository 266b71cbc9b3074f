"""Seeds that are set in a loop: where noise repeats, and where it does not."""

import contextlib

import pytest

import gradscope.inspect as gi


def found_in(fw, before_step=lambda fw, number: None, draw=True, steps=6):
    """Return what is found where a model with a dropout, or without, takes some steps."""
    layers = [fw.nn.Linear(4, 8), fw.nn.Dropout(0.5 if draw else 0.0), fw.nn.Linear(8, 4)]
    model = fw.nn.Sequential(*layers)
    optimizer = fw.optim.SGD(model.parameters(), lr=0.01)
    batches = fw.randn(steps, 8, 4)
    with gi.Doctor() as doctor:
        for number in range(steps):
            before_step(fw, number)
            optimizer.zero_grad()
            fw.nn.functional.mse_loss(model(batches[number]), batches[number]).backward()
            optimizer.step()
    return [symptom for symptom in doctor.diagnosis.symptoms if symptom.code == "D361"]


def seeded(fw, number):
    fw.manual_seed(7)


def test_the_line_is_that_of_the_loop(fw):
    (found,) = found_in(fw, before_step=seeded)
    assert "before_step(fw, number)" in found.location.source
    assert "the seed 7 is set" in found.text
    assert "5 steps of SGD in a row" in found.text


def test_another_seed_each_time_is_healthy(fw):
    assert found_in(fw, before_step=lambda fw, number: fw.manual_seed(number)) == []


def test_where_nothing_is_drawn_nothing_repeats(fw):
    assert found_in(fw, before_step=seeded, draw=False) == []


def test_a_seed_of_a_block_that_is_left_is_healthy(fw):
    def before_step(fw, number):
        with fw.random.fork_rng():
            fw.manual_seed(7)
            fw.randn(3)

    assert found_in(fw, before_step=before_step) == []


def test_runs_that_start_alike_are_healthy(fw):
    with gi.Doctor() as doctor:
        for rate in (0.1, 0.01, 0.001, 0.1, 0.01):
            fw.manual_seed(0)
            model = fw.nn.Sequential(fw.nn.Linear(4, 8), fw.nn.Dropout(0.5), fw.nn.Linear(8, 4))
            optimizer = fw.optim.SGD(model.parameters(), lr=rate)
            for _ in range(2):
                x = fw.randn(8, 4)
                optimizer.zero_grad()
                fw.nn.functional.mse_loss(model(x), x).backward()
                optimizer.step()
    assert [symptom for symptom in doctor.diagnosis.symptoms if symptom.code == "D361"] == []


@pytest.mark.parametrize("error", [None, ZeroDivisionError])
def test_the_functions_are_put_back(fw, error):
    before, inner = fw.manual_seed, fw.random.manual_seed
    with contextlib.suppress(ZeroDivisionError), gi.Doctor():
        fw.ones(1, requires_grad=True).sum().backward()
        assert fw.manual_seed is not before
        if error is not None:
            raise error
    assert fw.manual_seed is before
    assert fw.random.manual_seed is inner
