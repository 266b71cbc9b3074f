"""All explanations at once, over a program that runs by itself."""

import gc
import json

import pytest

import gradscope as gs
import gradscope.inspect as gi
from gradscope.inspect.diagnosis.functions import custom_derivatives
from gradscope.inspect.diagnosis.nan import nan_producers
from gradscope.inspect.diagnosis.no_gradient import dataflow
from gradscope.inspect.diagnosis.program_facts import NAN
from tests.inspect.diagnosis.lines import line


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
    assert str(diagnosis).startswith("D303 no gradient: 2 of 4 parameters without a gradient:")
    assert "2 findings in 6 backward passes." in str(diagnosis)


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors:UserWarning")
def test_a_nested_tensor_has_no_shape_to_ask_for():
    torch = pytest.importorskip("torch")
    model = torch.nn.Linear(3, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with gi.Doctor() as doctor:
        for _ in range(2):
            made = model(torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(4, 3)]))
            torch.nested.to_padded_tensor(made * made, 0.0).mean().backward()
            optimizer.step()
            optimizer.zero_grad()
    assert (doctor.diagnosis.symptoms, doctor.diagnosis.backwards) == ((), 2)


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
    texts = [s.text for s in doctor.diagnosis.symptoms if s.kind == "gradient flow"]
    # The dead units are told of as the cause, and not once more for themselves.
    assert [text.partition(":")[0] for text in texts] == ["the gradient of `0.weight`, `0.bias`, `2.weight` is zero"]
    assert "the ReLU in `1` is not active for any of its 8 " in texts[0]


def test_some_dead_units(fw):
    model = fw.nn.Sequential(fw.nn.Linear(3, 8), fw.nn.ReLU(), fw.nn.Linear(8, 1))
    with fw.no_grad():
        model[0].bias[:7] = -100.0
        model[0].bias[7:] = 2.0
        model[2].weight.fill_(0.5)  # one that is drawn may be so small that the gradient vanishes there
    with gi.Doctor() as doctor:
        train(fw, model)
    assert [s.text.partition(" at ")[0] for s in doctor.diagnosis.symptoms] == [
        "`1`: 7 of 8 units dead, zero for all of 2 batches"
    ]


def test_units_that_rest_by_chance_are_not_dead(fw):
    model = fw.nn.Sequential(fw.nn.Linear(1, 8), fw.nn.ReLU(), fw.nn.Linear(8, 1))
    with fw.no_grad():
        model[0].weight.copy_(fw.tensor([[1.0]] * 3 + [[-1.0]] * 5))
        model[0].bias.fill_(0.0)
    with gi.Doctor() as doctor:
        model(fw.ones(4, 1)).sum().backward()
    assert doctor.diagnosis.rectifiers[0].dead == 5
    assert not doctor.diagnosis.symptoms


def test_units_that_another_batch_activates_are_not_dead(fw):
    model = fw.nn.Sequential(fw.nn.Linear(1, 8), fw.nn.ReLU(), fw.nn.Linear(8, 1))
    with fw.no_grad():
        model[0].weight.fill_(1.0)
        model[0].bias.copy_(fw.tensor([0.0] * 7 + [2.0]))
    found = []
    for signs in ((-1.0,), (-1.0, 1.0), (1.0, -1.0), (-1.0, -1.0)):
        with gi.Doctor() as doctor:
            for sign in signs:
                model(fw.full((4, 1), sign)).sum().backward()
        found.append([unit.dead for unit in doctor.diagnosis.rectifiers])
    assert found == [[7], [], [], [7]]


def test_a_step_function(fw):
    layer = fw.nn.Linear(3, 4)
    with gi.Doctor() as doctor:
        for _ in range(2):
            layer(fw.ones(2, 3)).round().sum().backward()  # HERE: round
    (symptom,) = [s for s in doctor.diagnosis.symptoms if s.kind == "gradient flow"]
    assert symptom.location.lineno == line(__file__, "round")
    assert symptom.text.startswith("the gradient of `weight`, `bias` is zero: round is a step function")
    assert symptom.text.endswith("\n  Let the gradient pass straight through: x + (x.round() - x).detach().")


def test_contributions_that_cancel_are_no_finding(fw):
    model = fw.nn.Linear(3, 1)
    with gi.Doctor() as doctor:
        (model(fw.ones(2, 3)) - model(fw.ones(2, 3) * 2)).mean().backward()  # the bias cancels
    assert doctor.diagnosis.symptoms == ()


CANCELLING = {
    "a bias": lambda fw, x, w, b: fw.nn.functional.linear(x, w, b),
    "a bias added": lambda fw, x, w, b: x @ w.t() + b,
    "a factor": lambda fw, x, w, b: (x @ w.t() + 5) * (b + fw.ones(1)),
    "a bias expanded": lambda fw, x, w, b: x @ w.t() + b.expand(4, 1),
}


@pytest.mark.parametrize("function", CANCELLING.values(), ids=CANCELLING)
def test_rows_that_pull_a_parameter_up_and_down_alike_are_no_finding(fw, function):
    x, w, b = fw.ones(4, 3), fw.nn.Parameter(fw.ones(1, 3)), fw.nn.Parameter(fw.zeros(1))
    signs = fw.tensor([[1.0], [-1.0], [1.0], [-1.0]])
    with gi.Doctor() as doctor:
        loss = (function(fw, x, w, b) * signs).mean()
        (loss + (w * w).sum()).backward()
    assert b.grad.tolist() == [0.0]
    assert doctor.diagnosis.symptoms == ()


def test_a_layer_that_writes_its_parameter_through_a_view_under_no_grad_is_no_finding(fw):
    with gi.Doctor() as doctor:
        embedding = fw.nn.Embedding(3, 2, padding_idx=0)
        with fw.no_grad():
            row = embedding.weight[1]
            row.fill_(1.0)
        embedding(fw.tensor([1, 2])).sum().backward()
    assert doctor.diagnosis.symptoms == ()
    with pytest.raises(RuntimeError, match="A view was created in no_grad mode"):
        _ = row.grad_fn


def test_vanishing_and_what_does_it(fw):
    layers = [layer for _ in range(10) for layer in (fw.nn.Linear(8, 8), fw.nn.Sigmoid())]
    model = fw.nn.Sequential(*layers, fw.nn.Linear(8, 1))
    with gi.Doctor() as doctor:
        model(fw.ones(2, 8)).sum().backward()
    (trouble,) = doctor.diagnosis.trouble
    assert trouble.verdict == "vanishing"
    assert trouble.causes[0].startswith("SigmoidBackward0 at ")
    assert "multiplies them 10 times, by 0.2" in trouble.causes[0]


def test_exploding_and_what_does_it(fw):
    model = fw.nn.Linear(8, 8, bias=False)
    with fw.no_grad():
        model.weight.fill_(1.0)
    with gi.Doctor() as doctor:
        hidden = fw.ones(1, 8)
        for _ in range(10):
            hidden = model(hidden)  # HERE: explode
        hidden.sum().backward()
    (trouble,) = doctor.diagnosis.trouble
    assert (trouble.verdict, trouble.location.lineno) == ("exploding", line(__file__, "explode"))
    assert "multiplies them 9 times, by 8 each" in trouble.causes[0]
    assert "clip_grad_norm_" in trouble.help


def test_gradients_used_twice(fw):
    model = healthy(fw)
    optimizer = fw.optim.SGD(model.parameters(), lr=0.01)
    with gi.Doctor() as doctor:
        for _ in range(3):
            (model(fw.ones(2, 3)) ** 2).mean().backward()  # HERE: twice
            optimizer.step()
    (symptom,) = doctor.diagnosis.symptoms
    assert (symptom.kind, symptom.location.lineno) == ("updates", line(__file__, "twice"))


def test_a_gan_whose_generator_is_cut_off_from_its_own_loss(fw):
    generator, critic = fw.nn.Linear(2, 3), fw.nn.Linear(3, 1)
    opt_g, opt_c = (fw.optim.SGD(model.parameters(), lr=0.01) for model in (generator, critic))
    with gi.Doctor() as doctor:
        for _ in range(3):
            fake = generator(fw.ones(1, 2))
            opt_c.zero_grad()
            critic(fake.detach()).mean().backward()  # as it should be
            opt_c.step()
            opt_g.zero_grad()
            critic(fake.detach()).mean().backward()  # HERE: cut
            opt_g.step()
    (symptom,) = doctor.diagnosis.symptoms
    assert symptom.location.lineno == line(__file__, "cut")
    assert [e.name for e in doctor.diagnosis.missing.parameters] == ["generator.weight", "generator.bias"]


def test_a_gan_that_is_gone_when_the_doctor_reports(fw):
    """As a script's variables are at its end; and the generator has had its gradient after its first answer."""

    def program():
        generator, critic = fw.nn.Linear(2, 3), fw.nn.Linear(3, 1)
        opt_g, opt_c = (fw.optim.SGD(model.parameters(), lr=0.01) for model in (generator, critic))
        for _ in range(2):
            opt_c.zero_grad()
            critic(generator(fw.ones(1, 2)).detach()).mean().backward()
            opt_c.step()
            opt_g.zero_grad()
            critic(generator(fw.ones(1, 2))).mean().backward()
            opt_g.step()

    with gi.Doctor() as doctor:
        program()
        gc.collect()
    assert doctor.diagnosis.symptoms == ()


def test_autograd_grad_leaves_no_gradient_and_that_is_no_finding(fw):
    model = healthy(fw)
    with gi.Doctor() as doctor:
        loss = (model(fw.ones(2, 3)) ** 2).mean()
        fw.autograd.grad(loss, list(model.parameters()))
    assert doctor.diagnosis.symptoms == ()


def penalised(fw, treat, **options):
    """Train a critic with a gradient penalty, whose slope goes through `treat`."""
    critic = fw.nn.Sequential(fw.nn.Linear(3, 4), fw.nn.Tanh(), fw.nn.Linear(4, 1))
    with gi.Doctor() as doctor:
        for _ in range(2):
            critic.zero_grad()
            between = fw.randn(8, 3, requires_grad=True)
            scores = critic(between)
            slope = fw.autograd.grad(scores.sum(), between, retain_graph=True, **options)[0]  # HERE: slope
            treat(critic, scores, between, slope).backward()
    return doctor.diagnosis


def test_a_penalty_that_is_a_constant(fw):
    diagnosis = penalised(fw, lambda c, scores, x, g: scores.mean() + 10 * ((g.norm(2, 1) - 1) ** 2).mean())
    (symptom,) = diagnosis.symptoms
    assert symptom.kind == "constant gradient"
    assert symptom.location.lineno == line(__file__, "slope")
    assert "Pass create_graph=True" in symptom.text


def test_a_penalty_with_a_graph_is_no_finding(fw):
    diagnosis = penalised(fw, lambda c, scores, x, g: scores.mean() + (g.norm(2, 1) - 1).mean(), create_graph=True)
    assert diagnosis.symptoms == ()


@pytest.mark.parametrize(
    "treat",
    [
        lambda critic, scores, x, g: scores.mean() + g.detach().norm(),
        lambda critic, scores, x, g: critic(x + 0.1 * g.sign()).mean(),
        lambda critic, scores, x, g: critic(x.detach() + 0.1 * g).mean() + scores.mean(),
        lambda critic, scores, x, g: scores.mean() * (1 + g.norm()),
    ],
)
def test_a_gradient_that_is_meant_to_be_a_constant(fw, treat):
    assert penalised(fw, treat).terms == ()


def compared(fw, loss):
    model = fw.nn.Linear(3, 1)
    with gi.Doctor() as doctor:
        loss(model(fw.randn(8, 3)), fw.randn(8)).backward()
    return doctor.diagnosis


@pytest.mark.filterwarnings("ignore:Using a target size")
def test_a_column_compared_with_a_row(fw):
    for diagnosis in (
        compared(fw, lambda y, t: 2 * ((y - t) ** 2).mean() + 1),
        compared(fw, lambda y, t: (t - y).abs().sum()),
        compared(fw, fw.nn.functional.mse_loss),
    ):
        (symptom,) = diagnosis.symptoms
        assert symptom.kind == "broadcast"
        assert " broadcast to (8, 8) in " in symptom.text
        assert "Give both the same shape" in symptom.text


@pytest.mark.parametrize(
    "loss",
    [
        lambda y, t: ((y - t[:, None]) ** 2).mean(),
        lambda y, t: (y - t[:4]).pow(2).mean(),
        lambda y, t: (-((y - t) ** 2)).exp().sum(),
        lambda y, t: (y * t).sum(),
    ],
)
def test_shapes_that_may_be_meant(fw, loss):
    assert compared(fw, loss).terms == ()


def refused(fw, loss):
    try:
        loss.backward()
    except RuntimeError as error:
        return error
    raise AssertionError("it has a graph")


def test_a_loss_without_a_graph(fw):
    model = healthy(fw)
    with gi.Doctor() as doctor:
        loss = model(fw.ones(2, 3)).argmax().float()  # HERE: argmax
        explained = doctor.explain(refused(fw, loss))
    assert explained
    (symptom,) = doctor.diagnosis.symptoms
    assert symptom.location.lineno == line(__file__, "argmax")
    assert "argmax gives integers or booleans" in symptom.text


def test_a_loss_without_a_graph_after_others_that_had_one(fw):
    model = healthy(fw)
    with gi.Doctor() as doctor:
        model(fw.ones(2, 3)).sum().backward()
        with fw.no_grad():
            loss = model(fw.ones(2, 3)).sum()  # HERE: quiet
        doctor.explain(refused(fw, loss))
    (symptom,) = doctor.diagnosis.symptoms
    assert symptom.location.lineno == line(__file__, "quiet")
    assert f"the no_grad() block that begins at line {line(__file__, 'quiet') - 1}." in symptom.text


def test_another_error_is_not_explained(fw):
    with gi.Doctor() as doctor:
        assert not doctor.explain(ValueError("no data"))
        assert not doctor.explain(None)
    assert doctor.diagnosis.symptoms == ()


def test_shared_gradients(fw):
    model = fw.nn.Sequential(fw.nn.Linear(3, 3, bias=False), fw.nn.Linear(3, 3, bias=False))
    model[0].weight.grad = model[1].weight.grad = fw.zeros(3, 3)
    with gi.Doctor() as doctor:
        model(fw.ones(1, 3)).sum().backward()
    assert "aliasing" in [s.kind for s in doctor.diagnosis.symptoms]


def test_frozen_parameters_are_no_finding_and_told_of(fw):
    model = healthy(fw)
    model[0].requires_grad_(False)
    with gi.Doctor() as doctor:
        train(fw, model)
    assert (not doctor.diagnosis, doctor.diagnosis.frozen) == (True, ("0.weight", "0.bias"))
    assert str(doctor.diagnosis).endswith("\nFrozen (requires_grad is False): `0.weight`, `0.bias`, 2 of 4 parameters.")


def test_an_average_of_a_model_is_no_finding(fw):
    model, average = healthy(fw), healthy(fw).requires_grad_(False)
    with gi.Doctor() as doctor:
        for _ in range(3):
            train(fw, model, steps=2)
            with fw.no_grad():
                for new, kept in zip(model.parameters(), average.parameters(), strict=True):
                    kept.lerp_(new, 0.1)
            average(fw.ones(2, 3))
    assert (doctor.diagnosis.symptoms, len(doctor.diagnosis.frozen)) == ((), 4)


def test_all_parameters_frozen(fw):
    model = healthy(fw)
    for parameter in model.parameters():
        parameter.requires_grad = False  # HERE: frozen
    with gi.Doctor() as doctor:
        loss = model(fw.ones(2, 3)).sum()
        with pytest.raises(RuntimeError) as raised:
            loss.backward()
        assert doctor.explain(raised.value)
    (symptom,) = doctor.diagnosis.symptoms
    assert symptom.text.startswith("4 of 4 parameters without a gradient:\n  `0.weight`, `0.bias`, `2.weight`, ")
    assert f":{line(__file__, 'frozen')} (parameter.requires_grad = False" in symptom.text
    assert "Frozen (" not in str(doctor.diagnosis)


def test_what_a_backward_that_failed_would_have_reached_is_not_missing(fw):
    policy, value, body = fw.nn.Linear(3, 1), fw.nn.Linear(3, 1), fw.nn.Linear(3, 3)
    with gi.Doctor() as doctor:
        h = body(fw.ones(2, 3)).exp()
        advantage = 1 - value(h)
        (policy(h) * advantage.detach()).sum().backward()
        with pytest.raises(RuntimeError):
            (advantage**2).sum().backward()
    assert doctor.diagnosis.missing.parameters == ()


def test_a_loss_is_no_second_model(fw):
    criterion, model = fw.nn.MSELoss(), model_of(fw)
    with gi.Doctor() as doctor:
        criterion(model(fw.ones(2, 3)), fw.ones(2, 1)).backward()
    assert [entry.name for entry in doctor.diagnosis.missing.parameters] == ["body.weight", "body.bias"]


def test_a_column_and_a_row_without_a_module(fw):
    weight = fw.ones(3, 1, requires_grad=True)
    with gi.Doctor() as doctor:
        ((fw.ones(4, 3) @ weight - fw.ones(4)) ** 2).mean().backward()  # HERE: crossed
    (symptom,) = doctor.diagnosis.symptoms
    assert (symptom.kind, symptom.location.lineno) == ("broadcast", line(__file__, "crossed"))


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


def test_a_backward_that_returns_none(fw):
    class Through(fw.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            grad * 2

    layer = fw.nn.Linear(3, 4)
    with gi.Doctor() as doctor:
        for _ in range(3):
            Through.apply(layer(fw.ones(2, 3))).sum().backward()
    (symptom,) = doctor.diagnosis.symptoms
    assert symptom.text.startswith("2 of 2 parameters without a gradient:\n  `weight`, `bias`: reached, but Through.")


def test_two_branches_are_not_the_two_ends_of_one_model(fw):
    model = fw.nn.ModuleDict({"policy": fw.nn.Linear(4, 4), "value": fw.nn.Linear(4, 4)})
    with gi.Doctor() as doctor:
        hidden = fw.ones(2, 4)
        (model["policy"](hidden).sum() * 1e-6 + model["value"](hidden).sum()).backward()
    assert not doctor.diagnosis.symptoms


def test_an_attention_that_is_still_even_is_no_vanishing_gradient(fw):
    class Model(fw.nn.Module):
        def __init__(self):
            super().__init__()
            names = ("query", "key", "value", "head")
            self.layers = fw.nn.ModuleList([fw.nn.ModuleDict({name: fw.nn.Linear(4, 4) for name in names})])
            self.head = fw.nn.Linear(4, 4)
            with fw.no_grad():
                for name in ("query", "key"):
                    self.layers[0][name].weight.mul_(1e-3)
                    self.layers[0][name].bias.fill_(0.0)

        def forward(self, x):
            (layer,) = self.layers
            scores = layer["query"](x) @ layer["key"](x).T
            return self.head(layer["head"](fw.softmax(scores, -1) @ layer["value"](x)))

    model = Model()
    with gi.Doctor() as doctor:
        model(fw.randn(6, 4)).sum().backward()
    norms = {flow.name: flow.grad_rms for flow in doctor.diagnosis.flow.parameters}
    assert norms["layers.0.query.weight"] < 1e-3 * norms["head.weight"]
    assert not doctor.diagnosis.trouble


def test_losses_of_their_own_are_not_the_two_ends_of_one_model(fw):
    large, small = fw.nn.Linear(3, 2), fw.nn.Linear(3, 2)
    with gi.Doctor() as doctor:
        (large(fw.ones(2, 3)) * 1000).sum().backward()
        (small(fw.ones(2, 3)) / 1000).sum().backward()
    assert doctor.diagnosis.symptoms == ()


def test_an_adapter_that_starts_at_zero_is_no_vanishing_gradient(fw):
    down, up = [fw.nn.Linear(4, 2) for _ in range(2)], [fw.nn.Linear(2, 4) for _ in range(2)]
    model = fw.nn.ModuleList([down[0], up[0], down[1], up[1]])
    with fw.no_grad():
        for layer, value in [*zip(down, (0.5, 0.5)), *zip(up, (1e-4, 1e-4))]:
            layer.weight.fill_(value)
            layer.bias.fill_(0.0)
    with gi.Doctor() as doctor:
        x = fw.ones(2, 4)
        for first, second in zip(down, up):
            x = x + second(first(x))
        ((x**2).sum() / 100).backward()
    assert gi.gradient_flow([("first", down[0].weight), ("last", up[1].weight)]).verdict == "vanishing"
    assert gi.gradient_flow(model).verdict == "ok"
    assert doctor.diagnosis.symptoms == ()


@pytest.mark.parametrize(("scale", "kinds"), [(2.0**16, []), (60_000.0, ["gradient flow"])])
def test_a_loss_that_is_scaled_by_a_power_of_two_is_not_exploding(fw, scale, kinds):
    model = fw.nn.Linear(3, 2)
    with gi.Doctor() as doctor:
        (model(fw.ones(8, 3)).sum() * fw.tensor(scale)).backward()
    assert [symptom.kind for symptom in doctor.diagnosis.symptoms] == kinds


def test_results_in_the_place_of_parameters_are_not_asked_for_a_gradient(fw):
    model = fw.nn.Linear(3, 2)
    own = dict(model._parameters)
    with gi.Doctor() as doctor:
        for name, parameter in own.items():
            model._parameters[name] = parameter * 0.5
        model(fw.ones(2, 3)).sum().backward()
        assert own["weight"].grad is not None
    assert doctor.diagnosis.symptoms == ()


@pytest.mark.parametrize("held", [False, True])
def test_parameters_that_are_only_there_to_be_replaced(fw, held):
    base, fast = fw.nn.Linear(3, 2), {"weight": fw.ones(2, 3, requires_grad=True), "bias": None}
    own = dict(base._parameters)
    optimizer = fw.optim.SGD([*fast.values()][:1] + (list(own.values()) if held else []), lr=0.1)
    with gi.Doctor() as doctor:
        base._parameters.update(fast)
        loss = base(fw.ones(2, 3)).sum()
        base._parameters.update(own)
        loss.backward()
        optimizer.step()
    assert [entry.name for entry in doctor.diagnosis.missing.parameters] == (["weight", "bias"] if held else [])


def test_a_loss_of_frozen_parameters_alone(fw):
    model = fw.nn.Linear(3, 2)
    model.requires_grad_(False)
    with gi.Doctor() as doctor:
        with pytest.raises(RuntimeError) as caught:
            model(fw.ones(2, 3)).sum().backward()
        assert doctor.explain(caught.value)
    assert [entry.reason.value for entry in doctor.diagnosis.missing.parameters] == ["frozen"] * 2


@pytest.mark.parametrize("way", ["no_grad", "detach"])
@pytest.mark.parametrize("held", [False, True])
def test_a_target_network_is_not_to_be_trained_unless_an_optimizer_holds_it(fw, way, held):
    network, target = fw.nn.Linear(3, 1), fw.nn.Linear(3, 1)
    optimizer = fw.optim.SGD([*network.parameters(), *(target.parameters() if held else ())], lr=0.1)
    with gi.Doctor() as doctor:
        for _ in range(2):
            x = fw.ones(2, 3)
            if way == "no_grad":
                with fw.no_grad():
                    wanted = target(x)
            else:
                wanted = target(x).detach()
            loss = ((network(x) - wanted) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    assert [e.name for e in doctor.diagnosis.missing.parameters] == (["target.weight", "target.bias"] if held else [])


@pytest.mark.parametrize("held", [False, True])
def test_an_average_that_is_only_evaluated_is_not_to_be_trained_unless_an_optimizer_holds_it(fw, held):
    network, average = fw.nn.Linear(3, 1), fw.nn.Linear(3, 1)
    optimizer = fw.optim.SGD([*network.parameters(), *(average.parameters() if held else ())], lr=0.1)
    with gi.Doctor() as doctor:
        for _ in range(3):
            optimizer.zero_grad()
            network(fw.ones(2, 3)).square().mean().backward()
            optimizer.step()
            with fw.no_grad():
                for mean, parameter in zip(average.parameters(), network.parameters()):
                    mean.lerp_(parameter, 0.1)
                average(fw.ones(2, 3)).argmax(1)
    found = [entry.name for entry in doctor.diagnosis.missing.parameters]
    assert found == (["average.weight", "average.bias"] if held else [])


def test_recording_that_is_turned_off_after_a_step(fw):
    model = fw.nn.Linear(3, 1)
    with gi.Doctor() as doctor:
        train(fw, model, steps=1)
        with fw.no_grad():
            loss = model(fw.ones(2, 3)).sum()
        with pytest.raises(RuntimeError) as caught:
            loss.backward()
        assert doctor.explain(caught.value)
    assert [entry.reason.value for entry in doctor.diagnosis.missing.parameters] == ["no_grad"] * 2


def test_a_program_that_moves_gradients_from_where_they_arrive_to_what_its_optimizer_holds(fw):
    """So does one that shards its parameters (FSDP): the optimizer holds the shard, the module calls with the whole."""

    class Sharded(fw.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = fw.nn.Parameter(fw.ones(2, 3))

        def forward(self, x):
            self.whole = fw.nn.Parameter(self.weight.detach().clone())
            self.whole.register_post_accumulate_grad_hook(self.move)
            return x @ self.whole.T

        def move(self, whole):
            self.weight.grad, whole.grad = whole.grad, None

    class Holder(Sharded):
        def forward(self, x):
            out = super().forward(x)
            kept.append(self.__dict__.get("_parameters").pop("whole"))
            return out

    kept = []
    model = Holder()
    optimizer = fw.optim.SGD([model.weight], lr=0.1)
    with gi.Doctor() as doctor:
        for _ in range(3):
            model(fw.ones(1, 3)).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
        # Another loss, whose backward does not reach the model.
        fw.nn.Linear(3, 1)(fw.ones(1, 3)).sum().backward()
    assert doctor.diagnosis.symptoms == ()


def train_two(fw, *, shared):
    """Train a model at far too large a rate, and round the results of another one; or of the same."""
    fw.manual_seed(0)
    wild = fw.nn.Sequential(fw.nn.Linear(4, 32), fw.nn.Tanh(), fw.nn.Linear(32, 1))
    rounded = wild if shared else fw.nn.Sequential(fw.nn.Linear(4, 8), fw.nn.Tanh(), fw.nn.Linear(8, 1))
    optimizer = fw.optim.Adam([*{*wild.parameters(), *rounded.parameters()}], lr=1e-3 if shared else 1e-9)
    hasty = fw.optim.Adam(wild.parameters(), lr=5.0)
    with gi.Doctor() as doctor:
        for _ in range(5):
            x = fw.randn(8, 4)
            optimizer.zero_grad()
            (wild(x) - 1).square().mean().backward()
            hasty.step()
            optimizer.zero_grad()
            (rounded(x) * 1e-3).round().square().mean().backward()
            optimizer.step()
    return {symptom.code for symptom in doctor.diagnosis.symptoms}


def test_an_explosion_hides_what_it_leads_to_and_nothing_of_another_model(fw):
    assert {"D324", "D316"} <= train_two(fw, shared=False)
    assert "D316" not in train_two(fw, shared=True)


def test_what_a_package_leaves_unused_is_no_finding(tmp_path, monkeypatch):
    package = tmp_path / "site-packages"
    package.mkdir()
    (package / "some_package_with_a_model.py").write_text(
        "import gradscope as gs\n\n\n"
        "class PackagedModel(gs.nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.used, self.spare, self.pooler = gs.nn.Linear(2, 1), PackagedLayer(), gs.nn.Linear(2, 1)\n\n"
        "    def forward(self, x):\n"
        "        self.pooled = self.pooler(x).tanh()\n"
        "        return self.used(x)\n\n\n"
        "class PackagedLayer(gs.nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.norm = gs.nn.LayerNorm(2)\n"
    )
    monkeypatch.syspath_prepend(str(package))
    from some_package_with_a_model import PackagedModel

    class OwnModel(PackagedModel):
        """The same, of the program's own."""

    def examined(model):
        optimizer = gs.optim.SGD(model.parameters(), lr=0.1)
        with gi.Doctor() as doctor:
            model(gs.ones(3, 2)).sum().backward()
            optimizer.step()
        return doctor.diagnosis

    found = examined(PackagedModel())
    assert found.symptoms == ()
    names = ("spare.norm.weight", "spare.norm.bias", "pooler.weight", "pooler.bias")
    assert found.spare == names
    shown = ", ".join(f"`{name}`" for name in names)
    assert f"Not used by the package that has it: {shown}, 4 parameters." in str(found)
    own = examined(OwnModel())
    assert [symptom.code for symptom in own.symptoms] == ["D303"]
    assert own.spare == ()


def codes_of_two_towers(fw, left):
    """Return what is found in a model whose right half rounds, so that no gradient comes to it."""

    class Towers(fw.nn.Module):
        def __init__(self):
            super().__init__()
            self.left, self.right, self.head = fw.nn.Linear(8, 4), fw.nn.Linear(8, 4), fw.nn.Linear(8, 1)

        def forward(self, x):
            return self.head(fw.cat([left(self.left, x), self.right(x).round()], 1))

    fw.manual_seed(0)
    model = Towers()
    optimizer = fw.optim.SGD(model.parameters(), lr=0.01)
    with gi.Doctor() as doctor:
        for _ in range(3):
            optimizer.zero_grad()
            model(fw.randn(8, 8)).square().mean().backward()
            optimizer.step()
    return {symptom.code for symptom in doctor.diagnosis.symptoms}


def test_saturated_units_explain_what_is_behind_them_and_not_the_zero_gradient_of_another_layer(fw):
    assert codes_of_two_towers(fw, lambda layer, x: fw.tanh(layer(1000 * x))) == {"D316", "D331"}
    assert codes_of_two_towers(fw, lambda layer, x: fw.tanh(layer(x))) == {"D316"}


def test_a_softmax_explains_what_is_behind_it_and_not_the_zero_gradient_of_another_layer(fw):
    def of_one(layer, x):
        return fw.softmax(layer(x).sum(1, keepdim=True), 1).expand(-1, 4)

    assert codes_of_two_towers(fw, of_one) == {"D316", "D321"}


@pytest.mark.parametrize(("loss", "reduction"), [("kl_div", "batchmean"), ("nll_loss", "mean")])
def test_a_loss_without_log_probabilities_explains_the_steps_of_its_own_model_alone(fw, loss, reduction):
    """Both models take steps that are too large: one by its loss, the other by its learning rate."""
    fw.manual_seed(0)
    functional, x = fw.nn.functional, fw.randn(8, 4)
    log, other = (fw.nn.Sequential(fw.nn.Linear(4, 16), fw.nn.Tanh(), fw.nn.Linear(16, 3)) for _ in range(2))
    target = fw.arange(8) % 3 if loss == "nll_loss" else fw.ones(8, 3)
    optimizers = [fw.optim.SGD(log.parameters(), lr=100.0), fw.optim.Adam(other.parameters(), lr=2.0)]
    with gi.Doctor() as doctor:
        for _ in range(6):
            for optimizer in optimizers:
                optimizer.zero_grad()
            getattr(functional, loss)(log(x), target, reduction=reduction).backward()
            (other(x) - 1).square().mean().backward()
            for optimizer in optimizers:
                optimizer.step()
    symptoms = {symptom.code: symptom for symptom in doctor.diagnosis.symptoms}
    assert "D338" in symptoms
    assert "Adam" in symptoms["D324"].text
    assert sum(symptom.code == "D324" for symptom in doctor.diagnosis.symptoms) == 1


def test_a_loss_in_the_forward_pass_is_seen_with_the_backward_that_follows(fw):
    model, target = fw.nn.Linear(4, 3), fw.ones(8, 3) / 3
    with gi.Doctor() as doctor:
        for number in range(1, 4):
            result = model(fw.ones(8, 4))
            given = fw.softmax(result, 1) if number == 3 else fw.log_softmax(result, 1)
            fw.nn.functional.kl_div(given, target, reduction="batchmean").backward()
    assert [(symptom.code, symptom.since) for symptom in doctor.diagnosis.symptoms] == [("D338", 3)]


def test_a_finding_tells_with_which_backward_it_was_first_seen(fw):
    model = fw.nn.Linear(3, 1)
    with gi.Doctor() as doctor:
        for number in range(6):
            model.zero_grad()
            (model(fw.ones(4, 3)) * (0.0 if number >= 3 else 1.0)).square().mean().backward()
    assert {symptom.code: symptom.since for symptom in doctor.diagnosis.symptoms} == {"D316": 4}
    assert "D316 gradient flow (first seen in backward 4): the gradient of" in str(doctor.diagnosis)
    assert doctor.diagnosis.to_dict()["symptoms"][0]["since"] == 4


@pytest.mark.parametrize(("shared", "codes"), [(True, {"D340"}), (False, {"D340", "D316"})])
def test_a_cause_explains_what_happens_to_its_own_parameters_alone(fw, shared, codes):
    class Model(fw.nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.body, self.other = fw.nn.LayerNorm(1), fw.nn.Linear(1, 2), fw.nn.Linear(3, 2)

        def forward(self, x):
            out = self.body(self.norm(x[:, :1]))
            return out if shared else out + self.other(x).round()

    model = Model()
    if shared:
        del model.other
    with gi.Doctor() as doctor:
        (model(fw.randn(8, 3)) - 1).square().mean().backward()
    assert {symptom.code for symptom in doctor.diagnosis.symptoms} == codes


@pytest.mark.parametrize(("when", "codes"), [(1, {"D340"}), (20, {"D340", "D316"})])
def test_what_begins_much_later_is_not_why(fw, when, codes):
    model = fw.nn.Sequential(fw.nn.Linear(3, 1), fw.nn.Identity(), fw.nn.Linear(1, 1))
    with fw.no_grad():
        model[2].weight.fill_(1.0)
    with gi.Doctor() as doctor:
        for number in range(1, 33):
            model.zero_grad()
            hidden = model[0](fw.randn(8, 3))
            if number >= when:
                hidden = fw.nn.functional.layer_norm(hidden, (1,))
            if number < when:
                hidden = hidden.round()
            (model[2](hidden) - 1).square().mean().backward()
    assert {symptom.code for symptom in doctor.diagnosis.symptoms} == codes


def codes_of(doctor):
    return {symptom.code for symptom in doctor.diagnosis.symptoms}


def test_as_many_classes_as_samples_mix_nothing(fw):
    """A network that pools its images to one position: its bias has as many rows as its batch."""

    class Network(fw.nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.norm, self.head = fw.nn.Conv2d(3, 8, 3), fw.nn.BatchNorm2d(8), fw.nn.Linear(8, 4)
            self.narrow = fw.nn.Conv2d(8, 4, 1)

        def forward(self, x):
            hidden = fw.nn.functional.adaptive_avg_pool2d(self.norm(self.body(x)), 1)
            return self.head(fw.flatten(hidden, 1)) + fw.flatten(self.narrow(hidden), 1)

    model = Network()
    with gi.Doctor() as doctor:
        fw.nn.functional.cross_entropy(model(fw.randn(4, 3, 8, 8)), fw.arange(4)).backward()
    assert codes_of(doctor) == set()


def test_large_weights_between_norm_layers_do_not_explode(fw):
    layers = [layer for _ in range(7) for layer in (fw.nn.Linear(16, 16), fw.nn.LayerNorm(16))]
    model = fw.nn.Sequential(*layers)
    with fw.no_grad():
        for layer in layers[::2]:
            layer.weight.copy_(fw.randn(16, 16))
    with gi.Doctor() as doctor:
        model(fw.randn(8, 16)).square().mean().backward()
    assert codes_of(doctor) == set()


def test_a_token_that_starts_next_to_zero_before_a_norm_layer_does_not_explode(fw):
    class Network(fw.nn.Module):
        def __init__(self):
            super().__init__()
            self.token = fw.nn.Parameter(1e-6 * fw.randn(1, 1, 8))
            self.norm, self.body, self.head = fw.nn.LayerNorm(8), fw.nn.Linear(8, 8), fw.nn.Linear(8, 3)

        def forward(self, x):
            rows = fw.cat([self.token.expand(x.shape[0], 1, 8), x], 1)
            return self.head(self.body(self.norm(rows)).mean(1))

    model = Network()
    with gi.Doctor() as doctor:
        fw.nn.functional.cross_entropy(model(fw.randn(6, 4, 8)), fw.arange(6) % 3).backward()
    (token, *_) = doctor.diagnosis.flow.parameters
    assert token.ratio > 1e3
    assert codes_of(doctor) == set()


def test_gradients_that_exploded_at_first_and_do_no_longer_need_no_mending(fw):
    model = fw.nn.Sequential(*[fw.nn.Linear(8, 8, bias=False) for _ in range(6)])
    found = []
    for factors in ((20.0,), (20.0, 1.0), (1.0, 20.0)):
        with gi.Doctor() as doctor:
            for factor in factors:
                with fw.no_grad():
                    for layer in model:
                        layer.weight.copy_(factor * fw.eye(8))
                model.zero_grad()
                model(fw.ones(2, 8)).sum().backward()
        found.append([trouble.since for trouble in doctor.diagnosis.trouble])
    assert found == [[1], [], [2]]


def test_an_attention_over_one_position_is_no_softmax_along_the_wrong_dimension(fw):
    query, key, value = (fw.randn(3, 2, 1, 4, requires_grad=True) for _ in range(3))
    with gi.Doctor() as doctor:
        (fw.softmax(query @ key.transpose(-1, -2), -1) @ value).sum().backward()
    assert "D321" not in codes_of(doctor)


@pytest.mark.torch
def test_what_is_known_of_classes_that_are_made_in_a_loop_is_bounded(monkeypatch):
    monkeypatch.setattr(dataflow, "_KINDS", 5)
    monkeypatch.setattr(nan_producers, "_KINDS", 5)
    monkeypatch.setattr(custom_derivatives, "_MOST_FUNCTIONS", 3)
    torch = pytest.importorskip("torch")

    def once():
        class Double(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2

            @staticmethod
            def backward(ctx, grad):
                return grad * 3

        class Own(torch.Tensor):
            pass

        x = torch.ones(3).as_subclass(Own)
        Double.apply(x * torch.ones(3, requires_grad=True)).sum().backward()

    with gi.Doctor() as doctor:
        for _ in range(12):
            once()
        recorder, visitor = doctor._program.ledger.recorder, doctor._program.watch_of(NAN)._forward
        known = visitor._kinds, visitor._are_small, recorder._questions
        assert max(map(len, known)) <= 5
    assert len(doctor.diagnosis.functions) == 3
