"""Weights that start at one number are no finding where that is meant, and does no harm."""

import gradscope.inspect as gi


def train(fw, forward, parameters):
    optimizer = fw.optim.SGD(parameters, lr=0.01)
    with gi.Doctor() as doctor:
        for _ in range(3):
            optimizer.zero_grad()
            (forward(fw.randn(8, 4)) - fw.arange(3.0)).square().mean().backward()
            optimizer.step()
    return doctor.diagnosis.symptoms


def test_a_last_layer_that_starts_at_zero_is_no_finding(fw):
    model = fw.nn.Sequential(fw.nn.Linear(4, 8), fw.nn.Tanh(), fw.nn.Linear(8, 3))
    with fw.no_grad():
        model[2].weight.zero_()
    assert train(fw, model, model.parameters()) == ()


def test_an_adapter_of_which_one_half_is_zero_is_no_finding(fw):
    base, down, up = fw.nn.Linear(4, 3), fw.nn.Linear(4, 2, bias=False), fw.nn.Linear(2, 3, bias=False)
    base.requires_grad_(False)
    with fw.no_grad():
        up.weight.zero_()
    assert train(fw, lambda x: base(x) + up(down(x)), [*down.parameters(), *up.parameters()]) == ()


def test_the_line_that_filled_the_weights_is_named(fw):
    model = fw.nn.Sequential(fw.nn.Linear(4, 8, bias=False), fw.nn.Tanh(), fw.nn.Linear(8, 3, bias=False))
    with gi.Doctor() as doctor:
        for layer in (model[0], model[2]):
            fw.nn.init.constant_(layer.weight, 0.5)  # HERE: filled
        for _ in range(2):
            model(fw.randn(8, 4)).square().mean().backward()
    (symptom,) = doctor.diagnosis.symptoms
    assert (symptom.code, symptom.kind) == ("D329", "initialisation")
    assert "# HERE: filled" in symptom.text
