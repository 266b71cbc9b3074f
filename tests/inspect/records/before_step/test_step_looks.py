"""What is seen of an optimizer that is about to step."""

from __future__ import annotations

import numpy as np

from gradscope.inspect.adapters import adapter_for
from gradscope.inspect.records.before_step.step_looks import OUTSIDE, StepLooker
from gradscope.inspect.records.checksums import checksum
from gradscope.inspect.records.module_tracking import Tracker


def looker_at(fw, model):
    adapter = adapter_for(next(iter(model.parameters())))
    tracker = Tracker(adapter)
    tracker.module_entered(model)
    tracker.module_left(model)
    return StepLooker(adapter, tracker)


def test_every_parameter_with_its_gradient(fw):
    model = fw.nn.Linear(2, 3)
    optimizer = fw.optim.SGD(model.parameters(), lr=0.5)
    looker = looker_at(fw, model)
    model(fw.ones(4, 2)).sum().backward()
    model.bias.grad = None
    look = looker.look(optimizer)
    assert (look.optimizer, look.number) == (0, 1)
    assert [(held.name, held.shape, held.kind, held.stepped) for held in look.tensors] == [
        ("weight", (3, 2), OUTSIDE, True), ("bias", (3,), OUTSIDE, True),
    ]  # fmt: skip
    weight = model.weight.detach().numpy()
    assert look.values[0] == checksum(weight)
    assert look.gradients.tolist() == [checksum(np.full((3, 2), 4, np.float32)), 0]
    assert (look.present.tolist(), look.norms.tolist()) == ([True, False], [np.sqrt(96), 0])
    assert look.facts["lr"] == [0.5]
    assert looker.look(optimizer).number == 2


def test_optimizers_are_numbered_as_they_step_first(fw):
    model = fw.nn.Linear(2, 3)
    looker = looker_at(fw, model)
    one, two = (fw.optim.SGD([parameter], lr=0.1) for parameter in model.parameters())
    numbers = [(look.optimizer, look.number) for look in map(looker.look, (two, one, two))]
    assert numbers == [(0, 1), (1, 1), (0, 2)]


def test_an_optimizer_without_tensors_is_not_looked_at(fw):
    optimizer = fw.optim.SGD([fw.ones(1, requires_grad=True)], lr=0.1)
    looker = looker_at(fw, fw.nn.Linear(2, 3))
    optimizer.param_groups[0]["params"].clear()
    assert looker.look(optimizer) is None
