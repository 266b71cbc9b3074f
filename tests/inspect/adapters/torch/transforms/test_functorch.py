"""Backwards inside of ``torch.func``: what the instruments see of them, and that nothing changes."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch.func import functional_call, grad, grad_and_value, hessian, jacrev, jvp, vjp, vmap  # noqa: E402

import gradscope.inspect as gi  # noqa: E402
from gradscope.check import Sanitizer  # noqa: E402
from gradscope.inspect.adapters.torch.transforms.functorch import BLIND, innermost, unwrapped  # noqa: E402

from ....sessions import debugging, wait  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.skipif(bool(BLIND), reason=BLIND)]

X = torch.linspace(-1.0, 1.0, 12).reshape(4, 3)


def net():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.Tanh(), torch.nn.Linear(5, 1))


def loss_of(model):
    return lambda params, x: functional_call(model, params, (x,)).pow(2).mean()


def parameters(model):
    return {name: value.detach() for name, value in model.named_parameters()}


class Cube(torch.autograd.Function):
    """A custom Function that transforms can go through."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return x**3

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, grad):
        return grad * 3 * ctx.saved_tensors[0] ** 2


PROGRAMS = {
    "grad": lambda model: grad(loss_of(model))(parameters(model), X),
    "per sample": lambda model: vmap(grad(loss_of(model)), (None, 0))(parameters(model), X),
    "grad and value": lambda model: vmap(grad_and_value(loss_of(model)), (None, 0))(parameters(model), X),
    "jacrev": lambda model: jacrev(lambda p: functional_call(model, p, (X,)))(parameters(model)),
    "hessian": lambda model: hessian(lambda x: model(x).pow(2).sum())(X),
    "vjp": lambda model: vjp(lambda x: model(x), X)[1](torch.ones(4, 1)),
    "grad of grad": lambda model: grad(lambda x: grad(lambda x: model(x).pow(3).sum())(x).pow(2).sum())(X),
    "forward over reverse": lambda model: jvp(grad(lambda x: model(x).sum()), (X,), (X,)),
    "custom Function": lambda model: vmap(grad(lambda x: Cube.apply(x).sum()))(X),
    "vmap of vmap": lambda model: vmap(vmap(grad(lambda x: model(x).sum()), 0), 1)(X.reshape(2, 2, 3)),
}


def flat(value):
    if isinstance(value, dict):
        return [tensor for part in value.values() for tensor in flat(part)]
    return [tensor for part in value for tensor in flat(part)] if isinstance(value, tuple) else [value]


def stepped(program):
    """Return what a program computes under a debugger that stops at every node."""
    results = []
    with debugging(lambda: results.append(program())) as session:
        session.start()
        while wait(session) != "finished":
            session.step()
        assert session.task_count >= 1
    return results[0]


def recorded(program, path):
    with gi.record(path, "all"):
        return program()


def checked(program):
    with Sanitizer() as sanitizer:
        result = program()
    assert sanitizer.backwards >= 1
    assert (sanitizer.findings, sanitizer.unseen) == ([], ())
    return result


def diagnosed(program):
    with gi.Doctor() as doctor:
        result = program()
    assert doctor.diagnosis.backwards >= 1
    assert (doctor.diagnosis.symptoms, doctor.diagnosis.unseen) == ((), ())
    return result


@pytest.mark.parametrize("instrument", ["debugger", "recorder", "check", "doctor"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_no_instrument_changes_a_bit(name, instrument, tmp_path):
    model = net()

    def program():
        return PROGRAMS[name](model)

    run = {
        "debugger": lambda: stepped(program),
        "recorder": lambda: recorded(program, tmp_path / "run.gscope"),
        "check": lambda: checked(program),
        "doctor": lambda: diagnosed(program),
    }
    plain, watched = flat(program()), flat(run[instrument]())
    assert len(plain) == len(watched)
    assert all(torch.equal(one, other) for one, other in zip(plain, watched))


def test_gradients_of_all_samples_are_seen_at_once(tmp_path):
    model = net()
    params = parameters(model)
    recorded(lambda: vmap(grad(loss_of(model)), (None, 0))(params, X), tmp_path / "run.gscope")
    with gi.open_recording(tmp_path / "run.gscope") as recording:
        (task,) = recording.tasks()
        nodes = {node.name: node for node in task.nodes}
        tanh = nodes["TanhBackward0"]
        assert tanh.module == "1"
        assert tanh.location.source == "return lambda params, x: functional_call(model, params, (x,)).pow(2).mean()"
        seen = recording.value(task.id, tanh.index)
    leaves = {name: value.clone().requires_grad_() for name, value in params.items()}
    hidden = torch.nn.functional.linear(X, leaves["0.weight"], leaves["0.bias"]).tanh()
    loss = torch.nn.functional.linear(hidden, leaves["2.weight"], leaves["2.bias"]).pow(2).sum()
    expected = torch.autograd.grad(loss, hidden)[0]
    assert seen.reshape(4, 5) == pytest.approx(expected.numpy())


def test_a_gradient_can_be_replaced_for_all_samples():
    def program():
        results.append(vmap(grad(lambda x: (x * 3).sum()))(X))

    results = []
    with debugging(program) as session:
        session.start()
        wait(session)
        session.until("op:Mul")
        wait(session)
        assert session.node.grad_outputs[0].shape == (4, 3)
        session.set_grad(0, "grad * 2")
        session.cont()
        wait(session)
    assert torch.equal(results[0], torch.full((4, 3), 6.0))


def test_the_cause_of_a_nan_is_named():
    with gi.Doctor() as doctor:
        vmap(grad(lambda x: (x * 0).sqrt().sum()))(X)
    (symptom,) = doctor.diagnosis.symptoms
    assert symptom.kind == "NaN"
    assert "the derivative of sqrt is infinite at 0" in symptom.text
    assert "12 of 12 elements bad" in symptom.text


def test_the_line_that_spoils_a_saved_tensor_is_named():
    def spoiled(x):
        y = x.exp()
        y.add_(1)
        return y.sum()

    with Sanitizer() as sanitizer, pytest.raises(RuntimeError, match="modified by an inplace operation"):
        grad(spoiled)(X)
    (finding,) = sanitizer.findings
    assert (finding.code, finding.primary.source) == ("GS101", "y.add_(1)")


def test_values_have_the_dimensions_of_vmaps_in_front():
    seen = []

    def look(x):
        with torch._functorch.pyfunctorch.temporarily_clear_interpreter_stack(), torch.no_grad():
            seen.append((unwrapped(x).clone(), tuple(innermost(x).shape)))
        return x.pow(2).sum()

    values = torch.arange(60.0).reshape(3, 4, 5)
    vmap(vmap(grad(look), in_dims=1), in_dims=2)(values)
    ((shown, in_memory),) = seen
    assert torch.equal(shown, values.permute(2, 1, 0))
    assert in_memory == (3, 4, 5)
    assert torch.equal(unwrapped(values), values)


@pytest.mark.parametrize("levels", [1, 2])
def test_what_is_saved_inside_of_a_vmap_has_the_shape_of_all_samples(levels):
    def program():
        slope = grad(lambda x: x.sin().sum())
        for level in range(levels):
            slope = vmap(slope, in_dims=level)
        slope(torch.ones(2, 3, 4, 5)[0] if levels == 1 else torch.ones(2, 3, 4, 5))

    with debugging(program) as session:
        for _ in range(2):
            session.step()
            wait(session)
        (saved,) = session.inspect(session.current).saved
        (arrived,) = session.node.grad_outputs
    assert (saved.name, saved.shape) == ("self", arrived.shape)
    assert saved.summary.shape == saved.shape
    assert saved.nbytes == 4 * torch.Size(saved.shape).numel() == (240 if levels == 1 else 480)
