"""Gradients that are changed in time are no finding."""

import gradscope.inspect as gi


def codes_of(fw, after_backward, after_step):
    model = fw.nn.Linear(2, 1)
    optimizer = fw.optim.SGD(model.parameters(), lr=0.01)
    with gi.Doctor() as doctor:
        for _ in range(3):
            optimizer.zero_grad()
            model(fw.randn(8, 2)).square().mean().backward()
            after_backward(model)
            optimizer.step()
            after_step(model)
    return [symptom.code for symptom in doctor.diagnosis.symptoms]


def nothing(model):
    pass


def test_clipping_by_hand_between_backward_and_step_is_no_finding(fw):
    def clip(model):
        for parameter in model.parameters():
            parameter.grad.clamp_(-1, 1)

    assert codes_of(fw, clip, nothing) == []
    assert codes_of(fw, nothing, clip) == ["D327"]


def test_a_norm_that_is_only_read_after_the_step_is_no_finding(fw):
    def norm(model):
        return [parameter.grad.norm().item() for parameter in model.parameters()]

    assert codes_of(fw, nothing, norm) == []


def test_gradients_set_to_zero_after_the_step_are_no_finding(fw):
    def clear(model):
        for parameter in model.parameters():
            parameter.grad.zero_()

    assert codes_of(fw, nothing, clear) == []


def loop_that_clips(fw, clip_grad_norm_, parameters):
    model = fw.nn.Linear(2, 1)
    optimizer = fw.optim.SGD(model.parameters(), lr=0.01)
    with gi.Doctor() as doctor:
        for _ in range(3):
            optimizer.zero_grad()
            model(fw.randn(8, 2)).square().mean().backward()
            clip_grad_norm_(parameters(model), 0.1)
            optimizer.step()
    return [symptom.code for symptom in doctor.diagnosis.symptoms]


def test_a_line_that_clips_by_a_function_of_its_own_is_no_finding(fw):
    def clip(parameters, most):
        for parameter in parameters:
            parameter.grad.clamp_(-most, most)

    assert loop_that_clips(fw, clip, lambda model: model.parameters()) == []


def test_a_line_that_is_given_no_parameters_clips_without_effect(fw):
    def clip(parameters, most):
        for parameter in parameters:
            parameter.grad.mul_(most)

    assert loop_that_clips(fw, clip, lambda model: iter(())) == ["D343"]


def test_a_condition_may_be_why_nothing_is_clipped(fw):
    model = fw.nn.Linear(2, 1)
    optimizer = fw.optim.SGD(model.parameters(), lr=0.01)
    with gi.Doctor() as doctor:
        for epoch in range(3):
            optimizer.zero_grad()
            model(fw.randn(8, 2)).square().mean().backward()
            if epoch > 10:
                fw.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
            optimizer.step()
    assert not doctor.diagnosis.symptoms


def test_a_gradient_that_the_program_sets_itself_is_no_sign_that_clipping_does_nothing(fw):
    """A program that shards its parameters sets those of the shards, and clips them."""
    model = fw.nn.Linear(2, 1)
    optimizer = fw.optim.SGD(model.parameters(), lr=0.01)
    with gi.Doctor() as doctor:
        for _ in range(3):
            optimizer.zero_grad()
            loss = model(fw.randn(8, 2)).square().mean()
            for parameter, grad in zip(model.parameters(), fw.autograd.grad(loss, model.parameters()), strict=True):
                parameter.grad = grad
            fw.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
            optimizer.step()
    assert not doctor.diagnosis.symptoms
