"""Modes are judged by what a program does with them: what is meant is no finding."""

import gradscope.inspect as gi
from tests.inspect.diagnosis.lines import line


def model_of(fw):
    return fw.nn.Sequential(fw.nn.Linear(3, 4), fw.nn.BatchNorm1d(4), fw.nn.Dropout(0.5), fw.nn.Linear(4, 1))


def train(fw, model, optimizer):
    optimizer.zero_grad()
    model(fw.randn(8, 3)).pow(2).mean().backward()  # HERE: training
    optimizer.step()


def codes(doctor):
    return [symptom.code for symptom in doctor.diagnosis.symptoms]


def test_a_model_left_in_eval_mode_is_found_where_it_trains(fw):
    model = model_of(fw)
    optimizer = fw.optim.SGD(model.parameters(), lr=0.01)
    with gi.Doctor() as doctor:
        train(fw, model, optimizer)
        model.eval()
        train(fw, model, optimizer)
    (symptom,) = doctor.diagnosis.symptoms
    assert (symptom.code, symptom.location.lineno) == ("D318", line(__file__, "training"))
    assert "in 1 of the 2 steps" in symptom.text
    assert "a validation has left it in eval mode" in symptom.text


def test_gradients_taken_in_eval_mode_beside_a_training_are_no_finding(fw):
    model = model_of(fw)
    optimizer = fw.optim.SGD(model.parameters(), lr=0.01)
    with gi.Doctor() as doctor:
        for _ in range(2):
            model.eval()
            x = fw.randn(8, 3).requires_grad_()
            (gradient,) = fw.autograd.grad(model(x).sum(), x)
            model.train()
            optimizer.zero_grad()
            model((x + gradient.sign()).detach()).pow(2).mean().backward()
            optimizer.step()
    assert codes(doctor) == []


def test_frozen_batch_norms_in_a_model_that_trains_are_no_finding(fw):
    model = model_of(fw)
    optimizer = fw.optim.SGD(model.parameters(), lr=0.01)
    model[1].eval()
    with gi.Doctor() as doctor:
        for _ in range(3):
            train(fw, model, optimizer)
    assert codes(doctor) == []


def test_a_generator_under_no_grad_whose_result_is_learned_from_is_no_validation(fw):
    generator, critic = model_of(fw), fw.nn.Linear(1, 1)
    first = fw.optim.SGD(generator.parameters(), lr=0.01)
    second = fw.optim.SGD(critic.parameters(), lr=0.01)
    with gi.Doctor() as doctor:
        for _ in range(3):
            with fw.no_grad():
                made = generator(fw.randn(8, 3))
            second.zero_grad()
            critic(made).pow(2).mean().backward()
            second.step()
            first.zero_grad()
            critic(generator(fw.randn(8, 3))).mean().backward()
            first.step()
    assert codes(doctor) == []


def test_a_batch_that_is_tried_before_the_training_is_no_validation(fw):
    model = model_of(fw)
    optimizer = fw.optim.SGD(model.parameters(), lr=0.01)
    with gi.Doctor() as doctor:
        with fw.no_grad():
            model(fw.randn(8, 3))
        for _ in range(3):
            train(fw, model, optimizer)
    assert codes(doctor) == []
