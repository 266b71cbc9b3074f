"""All explanations at once, over a program that runs by itself."""

import json

import gradscope.inspect as gi
from tests.inspect.explanations.lines import line


def model_of(fw):
    class Model(fw.nn.Module):
        def __init__(self):
            super().__init__()
            self.body = fw.nn.Linear(3, 4)
            self.head = fw.nn.Linear(4, 1)

        def forward(self, x):
            return self.head(self.body(x).detach())  # HERE: detach

    return Model()


def healthy(fw):
    return fw.nn.Sequential(fw.nn.Linear(3, 4), fw.nn.Tanh(), fw.nn.Linear(4, 1))


def train(fw, model, steps=6, keep=None):
    optimizer = fw.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(steps):
        loss = (model(fw.ones(2, 3)) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if keep is not None:
            keep.append(loss)


def test_a_healthy_program(fw):
    with gi.Doctor() as doctor:
        train(fw, healthy(fw))
    diagnosis = doctor.diagnosis
    assert (diagnosis.symptoms, diagnosis.backwards) == ((), 6)
    assert str(diagnosis).startswith("Nothing found in 6 backward passes. The largest graph held ")
    assert diagnosis.memory.total > 0


def test_missing_gradients_and_a_kept_loss(fw):
    losses = []
    with gi.Doctor() as doctor:
        train(fw, model_of(fw), keep=losses)
    diagnosis = doctor.diagnosis
    assert [s.kind for s in diagnosis.symptoms] == ["no gradient", "growth"]
    assert [e.name for e in diagnosis.missing.parameters] == ["body.weight", "body.bias"]
    assert diagnosis.symptoms[0].location.lineno == line(__file__, "detach")
    assert str(diagnosis).startswith("no gradient: 2 of 4 parameters without a gradient:")
    assert "2 findings in 6 backward passes." in str(diagnosis)


def test_a_parameter_that_a_later_backward_reaches_is_not_missing(fw):
    model = fw.nn.Sequential(fw.nn.Linear(3, 3), fw.nn.Linear(3, 1))
    x = fw.ones(2, 3)
    with gi.Doctor() as doctor:
        model(x)
        model[1](model[0](x).detach()).sum().backward()
        model(x).sum().backward()
    assert doctor.diagnosis.missing.parameters == ()


def test_nan(fw):
    model = fw.nn.Linear(3, 1)
    with gi.Doctor() as doctor:
        (model(fw.ones(2, 3)) * 0).sqrt().sum().backward()
    diagnosis = doctor.diagnosis
    assert diagnosis.symptoms[0].kind == "NaN"
    assert diagnosis.nan.first.name == "SqrtBackward0"


def test_dead_units(fw):
    model = fw.nn.Sequential(fw.nn.Linear(3, 4), fw.nn.ReLU(), fw.nn.Linear(4, 1))
    with fw.no_grad():
        model[0].bias.fill_(-100.0)
    with gi.Doctor() as doctor:
        train(fw, model)
    kinds = [(s.kind, s.text) for s in doctor.diagnosis.symptoms]
    assert any(kind == "gradient flow" and "`1`: 4 of 4 units dead" in text for kind, text in kinds)
    assert any("`0.weight`: its gradient is zero everywhere" in text for _, text in kinds)


def test_shared_gradients(fw):
    model = fw.nn.Sequential(fw.nn.Linear(3, 3, bias=False), fw.nn.Linear(3, 3, bias=False))
    model[0].weight.grad = model[1].weight.grad = fw.zeros(3, 3)
    with gi.Doctor() as doctor:
        model(fw.ones(1, 3)).sum().backward()
    assert "aliasing" in [s.kind for s in doctor.diagnosis.symptoms]


def test_frozen_parameters_are_no_finding(fw):
    model = healthy(fw)
    model[0].requires_grad_(False)
    with gi.Doctor() as doctor:
        train(fw, model)
    assert not doctor.diagnosis


def test_forms(fw):
    with gi.Doctor() as doctor:
        train(fw, model_of(fw), steps=1)
    data = json.loads(doctor.diagnosis.to_json())
    assert data["symptoms"][0]["kind"] == "no gradient"
    assert data["missing"]["parameters"][0]["reason"] == "detached"
    assert doctor.diagnosis.table().row_count == 1


def test_numbers_are_the_same_with_and_without(fw):
    def trained():
        fw.manual_seed(0)
        model = healthy(fw)
        train(fw, model)
        return [p.detach().numpy().tobytes() for p in model.parameters()]

    plain = trained()
    with gi.Doctor():
        watched = trained()
    assert watched == plain
