"""Programs to record, and an observer that sees what a recorder should."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import gradscope as gs
import gradscope.inspect as gi
from gradscope.inspect.adapters import NativeAdapter, Observer


def mlp(seed: int = 0) -> gs.nn.Module:
    """Return a small network, the same each time."""
    gs.manual_seed(seed)
    return gs.nn.Sequential(gs.nn.Linear(3, 4), gs.nn.ReLU(), gs.nn.Linear(4, 2))


def train(model: gs.nn.Module, steps: int = 3, lr: float = 0.1) -> list[numpy.ndarray]:
    """Train; return the parameters."""
    optimizer = gs.optim.SGD(model.parameters(), lr=lr)
    gs.manual_seed(1)
    inputs = gs.randn(8, 3)
    for _ in range(steps):
        loss = (model(inputs) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return [numpy.array(p.detach().numpy()) for p in model.parameters()]


def recorded(path: Any, *, steps: int = 3, seed: int = 0, lr: float = 0.1, **options: Any) -> gi.Recording:
    """Return the recording of a training."""
    with gi.record(path, **options):
        train(mlp(seed), steps, lr)
    return gi.open_recording(path)


class Witness(Observer):
    """Notes the gradients of every node."""

    def __init__(self, adapter: Any = None) -> None:
        self.adapter = adapter or NativeAdapter()
        self.seen: list[tuple[str, list[Any], list[Any]]] = []
        self._incoming: list[list[Any]] = []

    def node_entered(self, call: Any) -> None:
        self._incoming.append(self._arrays(call.grad_outputs))

    def node_exited(self, call: Any) -> None:
        name = self.adapter.node_name(call.node)
        self.seen.append((name, self._incoming.pop(), self._arrays(call.grad_inputs)))

    def _arrays(self, grads: Any) -> list[Any]:
        return [None if g is None else numpy.array(self.adapter.to_host(g)) for g in grads]


def spoiled(path):
    """Return a recording with an infinity, a NaN, an error, a violation and an odd name in it."""
    x = gs.ones(3, requires_grad=True)
    with gi.record(path, title="<script> & co") as recorder:
        (gs.log(x * 0) * 1).sum().backward()
        recorder.mark("now <b>")
        y = x.exp()
        z = y.sum()
        y += 1
        with pytest.raises(RuntimeError):
            z.backward()
    return gi.open_recording(path)
