"""Norms, ratios, vanishing and exploding gradients."""

import json

import pytest

import gradscope.inspect as gi


def test_numbers_of_a_parameter(fw):
    w = fw.ones(2, 3, requires_grad=True)
    mask = fw.tensor([[1.0, 0.0, 1.0], [0.0, 0.0, 0.0]])
    (w * mask * 2).sum().backward()
    (p,) = gi.gradient_flow({"layer.w": w}).parameters
    assert (p.name, p.module, p.shape) == ("layer.w", "layer", (2, 3))
    assert p.grad_norm == pytest.approx(8**0.5)
    assert p.weight_norm == pytest.approx(6**0.5)
    assert p.ratio == pytest.approx((8 / 6) ** 0.5)
    assert p.grad_rms == pytest.approx((8 / 6) ** 0.5)
    assert (p.dead_rows, p.bad) == (1, 0)
    assert p.zeros == pytest.approx(4 / 6)


def test_of_a_loss_without_accumulating(fw):
    model = fw.nn.Linear(3, 2)
    loss = (model(fw.ones(4, 3)) ** 2).sum()
    flow = gi.gradient_flow(model, loss)
    assert model.weight.grad is None
    loss.backward()
    assert flow.parameters == gi.gradient_flow(model).parameters
    assert set(flow.modules) == {""}


@pytest.mark.parametrize(
    ("first", "verdict"),
    [(1e-4, "vanishing"), (1e4, "exploding"), (0.5, "ok"), (0.0, "zero"), (float("nan"), "not finite")],
)
def test_verdicts(fw, first, verdict):
    weights = [fw.ones(4, 4, requires_grad=True) for _ in range(2)]
    weights[0].grad, weights[1].grad = fw.full((4, 4), first), fw.ones(4, 4)
    assert gi.gradient_flow([("first", weights[0]), ("last", weights[1])]).verdict == verdict


def test_before_any_gradient_has_arrived(fw):
    model = fw.nn.Linear(3, 2)
    flow = gi.gradient_flow(model)
    assert flow.verdict == "none"
    assert str(flow) == (
        "0 of 2 parameters have a gradient: none\n"
        "  no gradient has arrived yet: call backward() first, or pass the loss: gi.gradient_flow(model, loss)"
    )


def test_of_a_loss_that_reaches_no_parameter(fw):
    flow = gi.gradient_flow(fw.nn.Linear(3, 2), fw.ones(1, requires_grad=True).sum())
    assert str(flow) == (
        "0 of 2 parameters have a gradient: none\n  the loss reaches none of them; why_no_grad() tells why"
    )


def test_vanishing_through_saturated_layers(fw):
    fw.manual_seed(0)
    layers = []
    for _ in range(6):
        layers += [fw.nn.Linear(8, 8), fw.nn.Sigmoid()]
    model = fw.nn.Sequential(*layers, fw.nn.Linear(8, 1))
    flow = gi.gradient_flow(model, model(fw.ones(4, 8)).sum())
    assert flow.verdict == "vanishing"
    assert flow.findings[0].startswith("gradients vanish from `12.weight` to `0.weight`: their RMS falls from ")


def test_not_finite_and_missing(fw):
    a, b = fw.ones(2, requires_grad=True), fw.ones(2, requires_grad=True)
    a.grad = fw.tensor([float("nan"), 1.0])
    flow = gi.gradient_flow({"a": a, "b": b})
    assert flow.verdict == "not finite"
    assert "1 element of its gradient NaN or Inf" in str(flow)
    assert flow.parameters[1].grad_norm is None
    assert str(flow).startswith("1 of 2 parameters have a gradient")


def test_forms(fw):
    w = fw.ones(2, requires_grad=True)
    flow = gi.gradient_flow([("w", w)])
    assert json.loads(flow.to_json())["parameters"][0]["grad_norm"] is None
    assert flow.table().row_count == 1


def test_a_dead_rectifier_is_told_by_what_comes_before(fw):
    class Net(fw.nn.Module):
        def __init__(self):
            super().__init__()
            self.body = fw.nn.Linear(3, 4)

        def forward(self, x):
            return (self.body(x) * 0 - 1).relu() + self.body(x).relu() + (self.body(x) - 100).relu()

    flow = gi.gradient_flow(loss=Net()(fw.ones(2, 3)).sum())
    told = [(unit.module, unit.after, unit.dead) for unit in flow.rectifiers]
    assert ("", "", 4) in told  # after a subtraction, which has no parameters
    model = fw.nn.Sequential(fw.nn.Linear(3, 4), fw.nn.ReLU())
    with fw.no_grad():
        model[0].bias.fill_(-100.0)
    (unit,) = gi.gradient_flow(loss=model(fw.ones(2, 3)).sum()).rectifiers
    assert str(unit) == "ReluBackward0 after `0`: 4 of 4 units dead, zero for the whole batch"


def test_bad_input(fw):
    with pytest.raises(TypeError, match="needs parameters or a loss"):
        gi.gradient_flow()
    for wrong in (1, "weights", [1.5], [("w", 1.5)]):
        with pytest.raises(TypeError, match=r"parameters are a module.* got an item of (int|str|float)"):
            gi.gradient_flow(wrong)
    assert gi.gradient_flow([]).parameters == ()
    with pytest.raises(RuntimeError, match="no graph"):
        gi.gradient_flow(loss=fw.ones(3).sum())
