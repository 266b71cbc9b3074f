"""The instruments on another device: they see what they see on the host."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy
import pytest

import gradscope as gs
import gradscope.inspect as gi


def network(device: str) -> tuple[Any, Any]:
    """Return a model and its loss."""
    gs.manual_seed(0)
    model = gs.nn.Sequential(gs.nn.Linear(4, 8), gs.nn.Tanh(), gs.nn.Linear(8, 3))
    x, labels = gs.randn(5, 4).to(device), gs.tensor([0, 1, 2, 0, 1]).to(device)
    model.to(device)
    with gi.ledger():
        return model, gs.nn.functional.cross_entropy(model(x), labels)


def test_the_debugger(other_device: str) -> None:
    found = []
    for device in ("cpu", other_device):
        model, loss = network(device)
        dbg = gi.debug(loss, params=model)
        stop = dbg.breakpoint("mod:0 and norm > 0.01")
        dbg.cont()
        seen = [str(dbg), dbg.node.module, dbg.node.location.lineno, str(dbg.what_if(0, "grad * 2"))]
        numbers = [dbg.node.grad_outputs[0].norm, *dbg.grad_in, dbg.evaluate("abs(saved.input).max()")]
        dbg.set_grad(0, "grad.clip(-0.01, 0.01)")
        dbg.back()
        seen.append(str(dbg))
        numbers += dbg.grad_in
        dbg.remove_breakpoint(stop.id)
        dbg.step()
        dbg.cont()
        assert model[0].bias.grad.device.type == device
        found.append((seen, [*numbers, model[0].bias.grad.cpu().numpy()]))
    (seen, numbers), (others, other_numbers) = found
    assert seen == others
    for here, there in zip(numbers, other_numbers, strict=True):
        numpy.testing.assert_allclose(here, there, rtol=1e-5, atol=1e-7)


def test_a_recording(other_device: str, tmp_path: Path) -> None:
    found = []
    for device in ("cpu", other_device):
        with gi.record(tmp_path / f"{device}.gscope", keep="all"):
            loss = network(device)[1]
            loss.backward()
        with gi.open_recording(tmp_path / f"{device}.gscope") as run:
            (task,) = run.tasks()
            found.append([(node.name, run.value(task.id, index)) for index, node in enumerate(task.nodes)])
    for (name, here), (other, there) in zip(*found, strict=True):
        assert name == other
        numpy.testing.assert_allclose(here, there, rtol=1e-5, atol=1e-7)


def test_the_explanations(other_device: str) -> None:
    texts = []
    for device in ("cpu", other_device):
        model, loss = network(device)
        graph = gi.graph(loss)
        loss.backward()
        w = gs.zeros(3).to(device).requires_grad_()
        with numpy.errstate(all="ignore"):
            origin = str(gi.nan_origin((w.sqrt() * 0).sum()))
        assert "the derivative of sqrt is infinite at 0" in origin
        texts.append(
            [
                sorted(name for _, name in graph.nodes(data="name")),
                str(gi.memory(network(device)[1])),
                str(gi.gradient_flow(model)),
                str(gi.why_no_grad(model[0].weight, loss)),
                origin,
            ]
        )
    assert texts[0] == texts[1]


def test_a_violation_is_told(other_device: str) -> None:
    x = gs.ones(3).to(other_device).requires_grad_()
    y = x.exp()
    y.add_(1)
    with pytest.raises(RuntimeError, match=r"modified by an inplace operation: .*ExpBackward0.*version 1"):
        y.sum().backward()
