"""Linear layers with nothing between them, and those that stand so for a reason."""

import pytest

import gradscope.inspect as gi


def found_in(fw, forward, trained=None, **layers):
    """Return what is found where a model of these layers takes a step; those of `trained` alone, if that is given."""

    class Model(fw.nn.Module):
        def __init__(self):
            super().__init__()
            for name, layer in layers.items():
                setattr(self, name, layer)

        def forward(self, x):
            return forward(self, x)

    fw.manual_seed(0)
    model = Model()
    optimizer = fw.optim.SGD((layers[trained] if trained else model).parameters(), lr=0.01)
    with gi.Doctor() as doctor:
        for _ in range(2):
            optimizer.zero_grad()
            (model(fw.randn(8, 6)) - 1).square().mean().backward()
            optimizer.step()
    return [symptom for symptom in doctor.diagnosis.symptoms if symptom.code == "D359"]


@pytest.mark.parametrize("shape", [(8, 6), (2, 4, 6)])
def test_each_pair_is_named_once(fw, shape):
    linear = fw.nn.Linear
    found = found_in(
        fw,
        lambda model, x: model.c(model.b(model.a(x.reshape(*shape)))),
        a=linear(6, 16),
        b=linear(16, 16),
        c=linear(16, 2),
    )
    assert [symptom.text.split("`")[1::2][:2] for symptom in found] == [["b", "a"], ["c", "b"]]
    assert {symptom.location.filename for symptom in found} == {__file__}


def test_where_something_else_uses_the_first_it_is_no_pair(fw):
    linear = fw.nn.Linear

    def residual(model, x):
        hidden = model.a(x)
        return hidden + model.b(hidden)

    def attention(model, x):
        hidden = model.a(x)
        return model.b(hidden) * fw.sigmoid(model.c(hidden))

    assert found_in(fw, residual, a=linear(6, 8), b=linear(8, 8)) == []
    assert found_in(fw, attention, a=linear(6, 8), b=linear(8, 8), c=linear(8, 8)) == []


def test_a_product_of_less_rank_is_healthy(fw):
    assert found_in(fw, lambda model, x: model.b(model.a(x)), a=fw.nn.Linear(6, 2), b=fw.nn.Linear(2, 8)) == []


def test_a_head_on_another_model_and_a_layer_that_is_not_trained_are_healthy(fw):
    linear = fw.nn.Linear
    backbone = fw.nn.Sequential(linear(6, 16), fw.nn.ReLU(), linear(16, 10))
    assert found_in(fw, lambda model, x: model.head(model.body(x)), body=backbone, head=linear(10, 2)) == []
    body, head = linear(6, 16), linear(16, 2)
    optimizer = fw.optim.SGD([*body.parameters(), *head.parameters()], lr=0.01)
    with gi.Doctor() as doctor:
        (head(body(fw.randn(8, 6))) - 1).square().mean().backward()
        optimizer.step()
    assert [symptom.code for symptom in doctor.diagnosis.symptoms] == []
    frozen = linear(6, 16)
    frozen.requires_grad_(False)
    assert found_in(fw, lambda model, x: model.b(model.a(x)), a=frozen, b=linear(16, 2)) == []
    unrelated = {"a": linear(6, 16), "b": linear(16, 2), "c": linear(6, 2)}
    assert found_in(fw, lambda model, x: model.b(model.a(x)) + model.c(x), trained="c", **unrelated) == []
