"""Recording a PyTorch program."""

import pytest

import gradscope.inspect as gi
from gradscope.inspect.adapters import adapter_for
from tests.inspect.recording.programs import Witness

pytestmark = pytest.mark.torch


def train(torch, steps=3):
    """Train; return the parameters."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 64), torch.nn.ReLU(), torch.nn.Linear(64, 100))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    inputs = torch.randn(100, 3)
    for _ in range(steps):
        loss = (model(inputs) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return [p.detach().clone() for p in model.parameters()]


def test_parameters_are_bit_identical_with_the_recorder_on(torch, tmp_path):
    plain = train(torch, 20)
    with gi.record(tmp_path / "run.gscope", "all"):
        watched = train(torch, 20)
    assert all(torch.equal(a, b) for a, b in zip(plain, watched))


def test_names_statistics_and_values(torch, tmp_path):
    with gi.record(tmp_path / "run.gscope", "param:*"):
        train(torch)
    with gi.open_recording(tmp_path / "run.gscope") as recording:
        tasks = recording.tasks()
        assert [task.iteration for task in tasks] == [1, 2, 3]
        for task in tasks:
            leaves = {node.parameter: node for node in task.nodes if node.parameter}
            assert set(leaves) == {"0.weight", "0.bias", "2.weight", "2.bias"}
            weight = recording.value(task.id, leaves["2.weight"].index)
            assert weight.shape == (100, 64)
            assert leaves["2.weight"].grad_outputs[0].norm == pytest.approx(float((weight**2).sum() ** 0.5), rel=1e-5)
        assert tasks[0].nodes[0].location.source == "loss = (model(inputs) ** 2).mean()"
        assert not gi.difference(recording, recording)


def test_a_gradient_in_bfloat16_keeps_its_name(torch, tmp_path):
    x = torch.ones(4, dtype=torch.bfloat16, requires_grad=True)
    with gi.record(tmp_path / "run.gscope"):
        (x * 3).sum().backward()
    node = gi.open_recording(tmp_path / "run.gscope").tasks()[0].nodes[-1]
    assert (node.grad_outputs[0].dtype, node.grad_outputs[0].norm) == ("bfloat16", 6.0)


@pytest.mark.parametrize("size", [4, 5000])
def test_a_hook_that_writes_into_a_gradient_on_its_way_is_seen(torch, tmp_path, size):
    x = torch.ones(size, requires_grad=True)
    with gi.record(tmp_path / "run.gscope"):
        y = x * 2
        y.register_hook(lambda grad: grad.mul_(3))
        (y * torch.ones(size)).sum().backward()
    nodes = gi.open_recording(tmp_path / "run.gscope").tasks()[0].nodes
    sent, arrived = nodes[1].grad_inputs[0], nodes[2].grad_outputs[0]
    assert (sent.max, arrived.max) == (1.0, 3.0)


@pytest.mark.parametrize("size", [3, 300])
def test_recorded_gradients_are_those_that_an_observer_sees(torch, tmp_path, size):
    adapter = adapter_for(torch.ones(1))
    x = torch.linspace(-1, 1, size, dtype=torch.float64).requires_grad_()
    witness = Witness(adapter)
    with gi.record(tmp_path / "run.gscope", "all"), adapter.observe(witness, forward=False, backward=True):
        y = x.sin() + x * 2
        z = (y.exp() - y).tanh() * torch.stack([x, y]).sum(0)
        (z + z.detach() * z).mean().backward()
    with gi.open_recording(tmp_path / "run.gscope") as recording:
        (task,) = recording.tasks()
        assert [node.name for node in task.nodes] == [name for name, _, _ in witness.seen]
        for node, (_, incoming, produced) in zip(task.nodes, witness.seen):
            for which, group in (("grad_outputs", incoming), ("grad_inputs", produced)):
                values = [recording.value(task.id, node.index, which, nr) for nr in range(len(group))]
                assert [None if v is None else v.tolist() for v in values] == [
                    None if array is None else array.tolist() for array in group
                ]
