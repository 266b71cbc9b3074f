"""nn.utils.prune beside torch.nn.utils.prune: masks, names, combinations, removal, refusals."""

from __future__ import annotations

import copy
import importlib
from typing import Any

import numpy
import pytest

import gradscope as gs
from gradscope.nn.utils import prune
from tests.side_by_side import same_complaint


def pruning(m: Any) -> Any:
    return importlib.import_module(f"{m.__name__}.nn.utils.prune")


def layer(m: Any, *shape: int) -> Any:
    shape = shape or (4, 6)
    made = m.nn.Linear(shape[1], shape[0])
    values = numpy.random.RandomState(0).normal(size=shape).astype("float32")
    with m.no_grad():
        made.weight.copy_(m.tensor(values))
        made.bias.copy_(m.tensor(values[:, 0] * 0.9))
    return made


def state(made: Any) -> dict[str, Any]:
    found = {name: numpy.round(t.detach().numpy(), 5).tolist() for name, t in made.state_dict().items()}
    return {**found, "weight now": numpy.round(made.weight.detach().numpy(), 5).tolist()}


def _l1_twice(p: Any, m: Any, made: Any) -> None:
    p.l1_unstructured(made, "weight", amount=0.3)
    p.l1_unstructured(made, "weight", amount=5)


def _structured_then_single(p: Any, m: Any, made: Any) -> None:
    p.ln_structured(made, "weight", amount=1, n=2, dim=0)
    p.ln_structured(made, "weight", amount=0.3, n=1, dim=1)
    p.l1_unstructured(made, "weight", amount=0.25)


def _by_scores(p: Any, m: Any, made: Any) -> None:
    p.l1_unstructured(made, "weight", amount=7, importance_scores=m.arange(24.0).reshape(4, 6))


def _by_mask(p: Any, m: Any, made: Any) -> None:
    p.custom_from_mask(made, "bias", m.tensor([1, 0, 1, 0]))
    p.l1_unstructured(made, "bias", amount=1)


def _together(p: Any, m: Any, made: Any) -> None:
    p.global_unstructured([(made, "weight"), (made, "bias")], pruning_method=p.L1Unstructured, amount=0.4)


def _together_after(p: Any, m: Any, made: Any) -> None:
    p.l1_unstructured(made, "weight", amount=0.2)
    _together(p, m, made)


def _removed(p: Any, m: Any, made: Any) -> None:
    p.l1_unstructured(made, "weight", amount=0.5)
    p.remove(made, "weight")


USES = [
    _l1_twice,
    _structured_then_single,
    _by_scores,
    _by_mask,
    _together,
    _together_after,
    _removed,
    lambda p, m, made: p.identity(made, "weight"),
    lambda p, m, made: p.l1_unstructured(made, "weight", amount=0),
    lambda p, m, made: p.ln_structured(made, "weight", amount=0.5, n=float("inf"), dim=-1),
    lambda p, m, made: p.ln_structured(made, "weight", amount=0, n=2, dim=0),
]


@pytest.mark.torch
@pytest.mark.parametrize("use", USES)
def test_masks_names_and_gradients_are_those_of_pytorch(torch: Any, use: Any) -> None:
    found = []
    for m in (gs, torch):
        made = layer(m)
        use(pruning(m), m, made)
        x = m.tensor(numpy.random.RandomState(1).normal(size=(2, 6)).astype("float32"))
        (made(x) ** 2).sum().backward()
        grads = {name: numpy.round(p.grad.numpy(), 3).tolist() for name, p in made.named_parameters()}
        found.append((state(made), sorted(grads), grads, pruning(m).is_pruned(m.nn.Sequential(made))))
    mine, theirs = found
    assert mine[:2] == theirs[:2]
    assert mine[3] == theirs[3]
    for name, g in theirs[2].items():
        numpy.testing.assert_allclose(mine[2][name], g, atol=2e-3)


def test_random_masks_have_the_number_of_zeros_and_agree_with_those_before() -> None:
    made = prune.random_unstructured(layer(gs), "weight", amount=0.25)
    first = made.weight_mask.clone()
    assert int((first == 0).sum()) == 6
    prune.random_unstructured(made, "weight", amount=6)
    assert int((made.weight_mask == 0).sum()) == 12
    assert bool(((first == 0) <= (made.weight_mask == 0)).all())
    made = prune.random_structured(layer(gs), "weight", amount=2, dim=1)
    assert int((made.weight_mask.sum(0) == 0).sum()) == 2
    assert isinstance(next(iter(made._forward_pre_hooks.values())), prune.RandomStructured)


def test_a_pruned_module_trains_saves_and_copies() -> None:
    made = prune.l1_unstructured(layer(gs), "weight", amount=0.5)
    optimizer = gs.optim.SGD(made.parameters(), lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        (made(gs.ones(1, 6)) ** 2).sum().backward()
        optimizer.step()
    made(gs.ones(1, 6))
    assert bool((made.weight[made.weight_mask == 0] == 0).all())
    other = prune.identity(layer(gs), "weight")
    other.load_state_dict(made.state_dict())
    assert other(gs.ones(1, 6)).tolist() == made(gs.ones(1, 6)).tolist()
    prune.remove(made, "weight")
    assert isinstance(copy.deepcopy(made).weight, gs.nn.Parameter)


def test_a_method_of_ones_own() -> None:
    class Rows(prune.BasePruningMethod):
        """Mask the first row."""

        PRUNING_TYPE = "unstructured"

        def compute_mask(self, t: gs.Tensor, default_mask: gs.Tensor) -> gs.Tensor:
            mask = default_mask.clone()
            mask[0] = 0
            return mask

    made = layer(gs)
    Rows.apply(made, "weight")
    assert made.weight[0].tolist() == [0.0] * 6
    assert Rows().prune(gs.ones(2, 2)).tolist() == [[0.0, 0.0], [1.0, 1.0]]


def test_it_works_on_other_devices(other_device: str) -> None:
    made = prune.ln_structured(layer(gs).to(other_device), "weight", amount=1, n=2, dim=0)
    prune.l1_unstructured(made, "bias", amount=0.5)
    assert made.weight.device.type == made.weight_mask.device.type == other_device
    assert int((made.weight_mask.cpu().sum(1) == 0).sum()) == 1


@pytest.mark.torch
@pytest.mark.parametrize(
    "use",
    [
        lambda p, m: p.remove(layer(m), "bias"),
        lambda p, m: p.L1Unstructured(amount="a"),
        lambda p, m: p.L1Unstructured(amount=1.5),
        lambda p, m: p.L1Unstructured(amount=-1),
        lambda p, m: p.l1_unstructured(layer(m), "weight", amount=25),
        lambda p, m: p.ln_structured(layer(m), "bias", amount=1, n=2, dim=0),
        lambda p, m: p.ln_structured(layer(m), "weight", amount=1, n=2, dim=2),
        lambda p, m: p.l1_unstructured(layer(m), "weight", amount=1, importance_scores=m.ones(2)),
        lambda p, m: p.custom_from_mask(layer(m), "weight", m.ones(2)),
        lambda p, m: p.global_unstructured(3, p.L1Unstructured, amount=1),
        lambda p, m: p.global_unstructured([(layer(m), "bias")], p.L1Unstructured, importance_scores=3, amount=1),
        lambda p, m: p.PruningContainer().add_pruning_method(3),
    ],
)
def test_refusals(torch: Any, use: Any) -> None:
    same_complaint(torch, lambda m: use(pruning(m), m))


def test_a_refused_pruning_leaves_the_module_alone() -> None:
    made = layer(gs)
    with pytest.raises(ValueError, match="should be smaller than the number of parameters"):
        prune.l1_unstructured(made, "weight", amount=25)
    assert sorted(made.state_dict()) == ["bias", "weight"]
    assert not prune.is_pruned(made)
