"""What optimizers do with gradients: used twice, never, or not at all."""

import gc

import pytest

import gradscope.inspect as gi
from tests.inspect.diagnosis.lines import line


def here(mark):
    return (__file__, line(__file__, mark))


def place(location):
    return (location.filename, location.lineno)


def loss_of(model, fw):
    return (model(fw.ones(2, 3)) ** 2).mean()


# --- gradients that were used before ---------------------------------------------------------------------------------


def test_a_forgotten_zero_grad(fw):
    model = fw.nn.Linear(3, 1)
    optimizer = fw.optim.SGD(model.parameters(), lr=0.01)
    with gi.updates() as watch:
        for _ in range(4):
            loss_of(model, fw).backward()  # HERE: forgotten
            optimizer.step()  # HERE: forgotten step
    (stale,) = watch.result.stale
    assert (set(stale.names), stale.times) == ({"weight", "bias"}, 3)
    assert place(stale.backward) == place(stale.earlier) == here("forgotten")
    assert place(stale.step) == here("forgotten step")
    assert "Call optimizer.zero_grad() in each iteration, before backward()." in str(watch.result)
    assert watch.result.unheld == watch.result.unused == ()


def test_a_forgotten_zero_grad_with_a_schedule(fw):
    model = fw.nn.Linear(3, 1)
    optimizer = fw.optim.RMSprop(model.parameters(), lr=0.01)
    scheduler = fw.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
    with gi.updates() as watch:
        for _ in range(4):
            loss_of(model, fw).backward()
            optimizer.step()  # HERE: scheduled step
            scheduler.step()
    (stale,) = watch.result.stale
    assert (set(stale.names), stale.times) == ({"weight", "bias"}, 3)
    assert place(stale.step) == here("scheduled step")


def test_gradients_that_the_loss_of_another_optimizer_has_left(fw):
    generator, critic = fw.nn.Linear(2, 3), fw.nn.Linear(3, 1)
    opt_g, opt_c = (fw.optim.SGD(model.parameters(), lr=0.01) for model in (generator, critic))
    with gi.updates() as watch:
        for _ in range(2):
            opt_g.zero_grad()
            opt_c.zero_grad()
            fake = generator(fw.ones(1, 2))
            critic(fake).mean().backward()  # HERE: left
            opt_g.step()
            critic(fake.detach()).mean().backward()  # HERE: added
            opt_c.step()
    (stale,) = watch.result.stale
    assert (place(stale.earlier), place(stale.backward)) == (here("left"), here("added"))
    assert "adds to what that at" in str(stale)


@pytest.mark.parametrize("to_none", [True, False])
def test_gradients_that_are_cleared_in_time_are_no_finding(fw, to_none):
    model = fw.nn.Linear(3, 1)
    optimizer = fw.optim.SGD(model.parameters(), lr=0.01)
    with gi.updates() as watch:
        for _ in range(4):
            optimizer.zero_grad(set_to_none=to_none)
            for _ in range(2):  # accumulated, as it is meant
                loss_of(model, fw).backward()
            optimizer.step()
    assert not watch.result, str(watch.result)


def test_what_another_loss_leaves_and_nobody_uses_is_no_finding(fw):
    # As GANs are written: the generator's backward fills the critic too, which its optimizer clears.
    generator, critic = fw.nn.Linear(2, 3), fw.nn.Linear(3, 1)
    opt_g, opt_c = (fw.optim.SGD(model.parameters(), lr=0.01) for model in (generator, critic))
    with gi.updates() as watch:
        for _ in range(3):
            fake = generator(fw.ones(1, 2))
            opt_c.zero_grad()
            critic(fake.detach()).mean().backward()
            opt_c.step()
            opt_g.zero_grad()
            critic(fake).mean().backward()
            opt_g.step()
    assert not watch.result, str(watch.result)


# --- gradients that nobody uses --------------------------------------------------------------------------------------


def test_gradients_cleared_before_a_step(fw):
    model = fw.nn.Linear(3, 1)
    optimizer = fw.optim.SGD(model.parameters(), lr=0.01)
    with gi.updates() as watch:
        for number in range(1, 7):
            optimizer.zero_grad()
            loss_of(model, fw).backward()  # HERE: cleared
            if number % 3 == 0:
                optimizer.step()
    (unused,) = watch.result.unused
    assert (place(unused.backward), unused.times, unused.of) == (here("cleared"), 4, 6)
    assert "the gradients of 4 of 6 backward passes" in str(unused)


@pytest.mark.parametrize("to_none", [True, False])
def test_gradients_cleared_between_backward_and_step(fw, to_none):
    model = fw.nn.Linear(3, 1)
    optimizer = fw.optim.SGD(model.parameters(), lr=0.01)
    with gi.updates() as watch:
        for _ in range(3):
            loss_of(model, fw).backward()  # HERE: in vain
            optimizer.zero_grad(set_to_none=to_none)
            optimizer.step()  # HERE: with nothing
    (unused,) = watch.result.findings
    assert (unused.times, unused.of) == (3, 3)
    assert (place(unused.backward), place(unused.step)) == (here("in vain"), here("with nothing"))
    assert "Call zero_grad() before backward() or after step(), not between the two." in str(unused)


def test_an_optimizer_that_never_steps(fw):
    model = fw.nn.Linear(3, 1)
    optimizer = fw.optim.SGD(model.parameters(), lr=0.01)
    with gi.updates() as watch:
        for _ in range(4):
            optimizer.zero_grad()
            loss_of(model, fw).backward()
    (idle,) = watch.result.findings
    assert (idle.kind, idle.names, idle.times) == ("SGD", ("weight", "bias"), 3)
    assert str(watch.result).startswith("SGD, which holds `weight`, `bias`, has never stepped; their gradients were ")
    assert watch.result.table().row_count == 1


@pytest.mark.parametrize("clip", ["clip_grad_norm_", "clip_grad_value_"])
@pytest.mark.parametrize("foreach", [None, False])
def test_clipping_gradients_is_no_use_of_them(fw, clip, foreach):
    model = fw.nn.Linear(3, 1)
    optimizer = fw.optim.SGD(model.parameters(), lr=0.01)
    with gi.updates() as watch:
        for _ in range(4):
            optimizer.zero_grad()
            loss_of(model, fw).backward()
            getattr(fw.nn.utils, clip)(model.parameters(), 0.1, foreach=foreach)
    (idle,) = watch.result.findings
    assert (idle.kind, idle.names, idle.times) == ("SGD", ("weight", "bias"), 3)


def test_gradients_that_are_measured_or_clipped_for_a_step_by_hand_are_used(fw):
    measured, stepped = fw.nn.Linear(3, 1), fw.nn.Linear(3, 1)
    optimizer = fw.optim.SGD([*measured.parameters(), *stepped.parameters()], lr=0.01)
    with gi.updates() as watch:
        for _ in range(4):
            optimizer.zero_grad()
            (loss_of(measured, fw) + loss_of(stepped, fw)).backward()
            assert all(p.grad.norm() >= 0 for p in measured.parameters())
            fw.nn.utils.clip_grad_norm_(stepped.parameters(), 0.1)
            for p in stepped.parameters():
                p.data -= 0.1 * p.grad
    assert watch.result.idle == ()


@pytest.mark.parametrize(("scale", "idle"), [(2.0**120, 0), (1.0, 1)])
def test_a_grad_scaler_that_leaves_all_steps_out_is_not_an_optimizer_forgotten(fw, scale, idle):
    model = fw.nn.Linear(3, 1)
    optimizer, scaler = fw.optim.SGD(model.parameters(), lr=0.01), fw.amp.GradScaler("cpu", init_scale=scale)
    with gi.updates() as watch:
        for _ in range(4):
            optimizer.zero_grad()
            scaler.scale(loss_of(model, fw) * 1e6).backward()
            scaler.unscale_(optimizer)
            fw.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
            if not idle:
                scaler.step(optimizer)
            scaler.update()
    assert len(watch.result.idle) == idle


def test_one_of_two_optimizers_never_steps(fw):
    first, second = fw.nn.Linear(3, 1), fw.nn.Linear(3, 2)
    steps, rests = fw.optim.SGD(first.parameters(), lr=0.01), fw.optim.Adam(second.parameters(), lr=0.01)
    with gi.updates() as watch:
        for _ in range(4):
            steps.zero_grad()
            rests.zero_grad()
            (loss_of(first, fw) + loss_of(second, fw)).backward()
            steps.step()
    (idle,) = watch.result.idle
    assert (idle.kind, len(idle.names)) == ("Adam", 2)


def test_where_optimizers_step_no_iteration_looks_through_all_objects(fw, monkeypatch):
    first, second = fw.nn.Linear(3, 1), fw.nn.Linear(3, 2)
    optimizers = [fw.optim.SGD(model.parameters(), lr=0.01) for model in (first, second)]
    everything, looks = gc.get_objects, []

    def get_objects(*generation):
        looks.append(generation)
        return everything(*generation)

    with gi.updates() as watch:
        for iteration in range(20):
            if iteration == 1:  # in the first, nobody knows yet what the second optimizer holds
                monkeypatch.setattr(gc, "get_objects", get_objects)
            for optimizer in optimizers:
                optimizer.zero_grad()
            (loss_of(first, fw) + loss_of(second, fw)).backward()
            for optimizer in optimizers:
                optimizer.step()
    assert looks == []
    assert not watch.result


# PyTorch 2.8's LBFGS takes a number from a loss that has a graph, and is warned of it.
@pytest.mark.filterwarnings("ignore:Converting a tensor with requires_grad=True to a scalar:UserWarning")
def test_an_optimizer_that_steps_late_or_with_a_closure_is_not_idle(fw):
    model = fw.nn.Linear(3, 1)
    late, lbfgs = fw.optim.SGD(model.parameters(), lr=0.01), fw.optim.LBFGS(model.parameters(), lr=0.01)

    def closure():
        lbfgs.zero_grad()
        loss = loss_of(model, fw)
        loss.backward()
        return loss

    with gi.updates() as watch:
        lbfgs.step(closure)
        late.step()
    assert watch.result.idle == ()


def test_gradients_that_the_program_reads_itself_are_used(fw):
    model = fw.nn.Linear(3, 1)
    optimizer = fw.optim.SGD(model.parameters(), lr=0.01)
    with gi.updates() as watch:
        for _ in range(3):
            kept = []
            for _ in range(2):
                optimizer.zero_grad()
                loss_of(model, fw).backward()
                kept.append([p.grad.clone() for p in model.parameters()])
            for parameter, *grads in zip(model.parameters(), *kept):
                parameter.grad = grads[0] + grads[1]
            optimizer.step()
    assert watch.result.unused == ()


# --- parameters that no optimizer holds ------------------------------------------------------------------------------


def train(model, optimizer, fw, steps=3):
    for _ in range(steps):
        optimizer.zero_grad()
        loss_of(model, fw).backward()
        optimizer.step()


def in_a_list(fw):
    class Model(fw.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = [fw.nn.Linear(3, 3) for _ in range(2)]  # HERE: list
            self.head = fw.nn.Linear(3, 1)

        def forward(self, x):
            for layer in self.layers:
                x = layer(x)
            return self.head(x)

    return Model()


def test_modules_in_a_plain_list(fw):
    model = in_a_list(fw)
    with gi.updates() as watch:
        train(model, fw.optim.SGD(model.parameters(), lr=0.01), fw)
    (unheld,) = watch.result.unheld
    expected = {f"layers[{i}].{name}" for i in range(2) for name in ("weight", "bias")}
    assert set(unheld.names) == expected
    assert unheld.text == "`layers` of Model is a list, into which parameters() does not look"
    assert unheld.help == "Put the modules into nn.ModuleList."
    assert str(unheld).startswith("`layers[0].")


def test_the_line_that_made_them(fw):
    with gi.updates() as watch:
        model = in_a_list(fw)
        train(model, fw.optim.SGD(model.parameters(), lr=0.01), fw)
    assert place(watch.result.unheld[0].made) == here("list")


def test_a_layer_that_was_replaced_after_the_optimizer_was_made(fw):
    with gi.updates() as watch:
        model = fw.nn.Sequential(fw.nn.Linear(3, 2), fw.nn.Linear(2, 4))
        optimizer = fw.optim.SGD(model.parameters(), lr=0.01)
        model[1] = fw.nn.Linear(2, 1)  # HERE: replaced
        train(model, optimizer, fw)
    (unheld,) = watch.result.unheld
    assert (set(unheld.names), place(unheld.made)) == ({"1.weight", "1.bias"}, here("replaced"))
    assert unheld.text == "the optimizer holds 2 other tensors ((4, 2), (4)), which are in no module"


def test_a_parameter_that_each_call_makes_anew(fw):
    class Model(fw.nn.Module):
        def __init__(self):
            super().__init__()
            self.body = fw.nn.Linear(3, 3)

        def forward(self, x):
            scale = fw.nn.Parameter(fw.ones(3) * 0.5)  # HERE: anew
            return self.body(x) * scale

    model = Model()
    with gi.updates() as watch:
        train(model, fw.optim.SGD(model.parameters(), lr=0.01), fw, steps=4)
    (unheld,) = watch.result.unheld
    assert place(unheld.location) == here("anew")
    assert "each used in one iteration only: every call makes a new one" in unheld.text


def test_a_result_in_the_place_of_a_parameter(fw):
    class Model(fw.nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = fw.nn.Parameter(fw.ones(3)).to(fw.float64)  # HERE: result
            self.bias = fw.nn.Parameter(fw.zeros(3))

        def forward(self, x):
            return x * self.scale + self.bias

    with gi.updates() as watch:
        model = Model()
        train(model, fw.optim.SGD(model.parameters(), lr=0.01), fw)
    (unheld,) = watch.result.unheld
    assert place(unheld.location) == here("result")
    assert unheld.text == "`scale` of Model is a result computed from it, no parameter itself"


def test_an_optimizer_that_has_not_stepped_yet_holds_too(fw):
    generator, critic = fw.nn.Linear(2, 3), fw.nn.Linear(3, 1)
    opt_g, opt_c = (fw.optim.SGD(model.parameters(), lr=0.01) for model in (generator, critic))
    with gi.updates() as watch:
        critic(generator(fw.ones(1, 2))).mean().backward()
        opt_c.step()
    assert not watch.result, str(watch.result)
    assert opt_g.param_groups


def test_a_tensor_that_is_no_parameter(fw):
    class Shifted(fw.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = fw.nn.Linear(3, 1)
            self.shift = (fw.rand(1) * 2).requires_grad_()  # HERE: no parameter
            self.scales = [fw.nn.Parameter(fw.rand(1) * 2)]  # HERE: in a list

        def forward(self, x):
            return self.layer(x) * self.scales[0] + self.shift

    with gi.updates() as watch:
        model = fw.nn.Sequential(Shifted())
        optimizer = fw.optim.SGD(model.parameters(), lr=0.01)
        for _ in range(4):
            optimizer.zero_grad()
            loss_of(model, fw).backward()
            optimizer.step()
    found = {entry.names: entry for entry in watch.result.unheld}
    assert set(found) == {("0.shift",), ("0.scales[0]",)}
    shift, scale = found["0.shift",], found["0.scales[0]",]
    assert (place(shift.made), place(scale.made)) == (here("no parameter"), here("in a list"))
    assert shift.text == "`shift` of Shifted is a tensor, no Parameter, so parameters() leaves it out"
    assert scale.help == "Put Parameters into nn.ParameterList."


def test_a_tensor_that_the_program_changes_itself(fw):
    model, pattern = fw.nn.Linear(3, 1), fw.zeros(3, requires_grad=True)
    optimizer = fw.optim.SGD(model.parameters(), lr=0.01)
    with gi.updates() as watch:
        for _ in range(4):
            optimizer.zero_grad()
            (model(fw.ones(2, 3) + pattern) ** 2).mean().backward()
            optimizer.step()
            with fw.no_grad():
                pattern += pattern.grad.sign()
                pattern.grad = None
    assert not watch.result, str(watch.result)


def test_a_backbone_that_gets_gradients_for_nothing(fw):
    model = fw.nn.Sequential(fw.nn.Linear(3, 2), fw.nn.Linear(2, 1))
    with gi.updates() as watch:
        train(model, fw.optim.SGD(model[1].parameters(), lr=0.01), fw)
    (unheld,) = watch.result.unheld
    assert set(unheld.names) == {"0.weight", "0.bias"}
    assert "requires_grad_(False)" in unheld.help


def test_inputs_that_require_grad_are_no_parameters(fw):
    model = fw.nn.Linear(3, 1)
    optimizer = fw.optim.SGD(model.parameters(), lr=0.01)
    with gi.updates() as watch:
        for _ in range(3):
            optimizer.zero_grad()
            model(fw.ones(2, 3, requires_grad=True)).mean().backward()
            optimizer.step()
    assert not watch.result, str(watch.result)


# --- forms -----------------------------------------------------------------------------------------------------------


def test_without_an_optimizer_there_is_nothing_to_say(fw):
    with gi.updates() as watch:
        loss_of(fw.nn.Linear(3, 1), fw).backward()
    assert (str(watch.result), bool(watch.result)) == ("No optimizer has stepped.", False)


def test_forms(fw):
    model = fw.nn.Linear(3, 1)
    optimizer = fw.optim.SGD(model.parameters(), lr=0.01)
    with gi.updates() as watch:
        for _ in range(2):
            loss_of(model, fw).backward()
            optimizer.step()
    assert watch.result.to_dict()["stale"][0]["times"] == 1
    assert watch.result.table().row_count == 1


def test_numbers_are_the_same_with_and_without(fw):
    def trained():
        fw.manual_seed(0)
        model = fw.nn.Linear(3, 1)
        train(model, fw.optim.SGD(model.parameters(), lr=0.1), fw)
        return [p.detach().numpy().tobytes() for p in model.parameters()]

    plain = trained()
    with gi.updates():
        watched = trained()
    assert watched == plain


def test_gradients_cleared_once_before_a_first_step_are_no_finding(fw):
    model = fw.nn.Linear(3, 1)
    optimizer = fw.optim.SGD(model.parameters(), lr=0.01)
    with gi.updates() as watch:
        for number in range(4):
            loss_of(model, fw).backward()
            if not number:
                optimizer.zero_grad()  # after a check of the gradients, say
    assert watch.result.idle == ()
