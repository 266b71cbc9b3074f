"""Small parameters that are updated together give, to the last bit, what they give one after another."""

from __future__ import annotations

import copy
from typing import Any

import numpy
import pytest

import gradscope as gs
from gradscope.optim.foreach import FEWEST, SMALL, Bundle
from gradscope.runtime import events
from tests.optim.test_optimizer import SETTINGS, noise

BUNDLED = [(name, settings) for name, settings in SETTINGS if name != "Adafactor"]
SHAPES = [(8, 8), (), (3,), (0, 3), (2, 3, 4), (SMALL + 1,), (SMALL,), (5,)]


def everything(optimizer: Any, parameters: list[Any]) -> list[Any]:
    """Return the bytes and the version of each parameter and of what is kept of it."""
    found = []
    for parameter in parameters:
        for name, held in [("", parameter), *optimizer.state[parameter].items()]:
            found.append((name, held.detach().numpy().tobytes(), str(held.dtype), held._version))
    return found


def trained(make: Any, parameters: list[Any], *, without: Any = lambda number, step: False, reload: int = -1) -> Any:
    """Return the optimizer after seven steps; some parameters are without a gradient in some."""
    rng = numpy.random.default_rng(1)
    optimizer = make(parameters)
    for step in range(7):
        for number, parameter in enumerate(parameters):
            grad = gs.tensor(noise(rng, tuple(parameter.shape), str(parameter.dtype).rpartition(".")[2]))
            parameter.grad = None if without(number, step) else grad
        if step == reload:
            state = optimizer.state_dict()
            optimizer = make(parameters)
            optimizer.load_state_dict(state)
        optimizer.step()
    return optimizer


def leaves(dtype: str = "float32") -> list[Any]:
    rng = numpy.random.default_rng(0)
    return [gs.tensor(noise(rng, shape, dtype), requires_grad=True) for shape in SHAPES]


def both(name: str, settings: dict[str, Any], make: Any = leaves, **options: Any) -> tuple[list[Any], list[Any]]:
    """Return what is left of a training with small parameters together, and one after another."""
    found = []
    for foreach in (None, False):
        parameters = make()
        given = {**settings, "foreach": foreach}
        optimizer = trained(lambda ps, given=given: getattr(gs.optim, name)(ps, **given), parameters, **options)
        found.append(everything(optimizer, parameters))
    return found[0], found[1]


@pytest.fixture
def bundled(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many parameters each bundle that is made has."""
    sizes: list[int] = []
    made = Bundle.__init__

    def counting(self: Bundle, parameters: list[Any], *rest: Any) -> None:
        sizes.append(len(parameters))
        made(self, parameters, *rest)

    monkeypatch.setattr(Bundle, "__init__", counting)
    return sizes


@pytest.mark.parametrize(("name", "settings"), BUNDLED)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_numbers_and_versions_are_those_of_one_after_another(
    name: str, settings: dict[str, Any], dtype: str, bundled: list[int]
) -> None:
    together, alone = both(name, settings, lambda: leaves(dtype), reload=4)
    assert together == alone
    if name != "SGD" or "momentum" in settings:  # what is two calls of NumPy is not worth the copies
        assert set(bundled) == {len(SHAPES) - 1}


@pytest.mark.parametrize("name", ["Adam", "NAdam", "ASGD", "SGD"])
def test_parameters_with_fewer_steps_are_in_a_bundle_of_their_own(name: str, bundled: list[int]) -> None:
    settings = {"momentum": 0.9} if name == "SGD" else {}
    together, alone = both(name, settings, without=lambda number, step: number < 4 and step in (1, 2))
    assert together == alone
    assert min(bundled) == 3 < max(bundled)


def test_what_is_no_row_of_numbers_of_its_own_is_updated_alone(bundled: list[int]) -> None:
    def make() -> list[Any]:
        whole = gs.arange(12.0).view(3, 4)
        return [
            gs.ones(2, requires_grad=True),
            whole[0].detach().requires_grad_(),
            gs.ones(2, dtype=gs.float16, requires_grad=True),
            gs.ones(2, dtype=gs.complex64, requires_grad=True),
            gs.ones(3, requires_grad=True),
            gs.ones(2, 3).t().contiguous().t().detach().requires_grad_(),
            gs.ones(4, requires_grad=True),
        ]

    together, alone = both("Adam", {}, make)
    assert together == alone
    assert max(bundled, default=0) <= 4


def test_shared_memory_is_updated_in_order(bundled: list[int]) -> None:
    def make() -> list[Any]:
        first = gs.ones(4, requires_grad=True)
        again = first.detach().requires_grad_()
        return [*(gs.ones(2, requires_grad=True) for _ in range(FEWEST)), first, again, gs.ones(3, requires_grad=True)]

    together, alone = both("Adam", {"lr": 0.1, "weight_decay": 0.1}, make)
    assert together == alone
    assert bundled


def test_a_gradient_that_is_another_parameters_memory_is_read_after_its_update(bundled: list[int]) -> None:
    found = []
    for foreach in (None, False):
        parameters = [gs.full((3,), float(number + 1), requires_grad=True) for number in range(6)]
        optimizer = gs.optim.Adam(parameters, lr=0.1, foreach=foreach)
        for _ in range(4):
            for number, parameter in enumerate(parameters):
                parameter.grad = parameters[0].detach() if number == 4 else gs.ones(3)
            optimizer.step()
        found.append(everything(optimizer, parameters))
    assert found[0] == found[1]
    assert bundled


def test_transposed_parameters_keep_their_layout(bundled: list[int]) -> None:
    def make() -> list[Any]:
        return [gs.arange(12.0).view(4, 3).t().sin().requires_grad_() for _ in range(FEWEST)]

    together, alone = both("AdamW", {}, make)
    assert together == alone
    assert bundled == [FEWEST] * 6


def test_every_write_is_told() -> None:
    parameters = leaves()
    optimizer = trained(gs.optim.AdamW, parameters)
    told = []
    with events.subscribe(lambda event: told.append(event.operator), events.VersionBumped):
        optimizer.step()
    assert told == ["AdamW.step"] * (2 * len(parameters))


def test_a_state_of_another_shape_is_not_joined(bundled: list[int]) -> None:
    parameters = [gs.ones(4, requires_grad=True) for _ in range(FEWEST)]
    optimizer = trained(gs.optim.Adam, parameters)
    del bundled[:]
    optimizer.state[parameters[0]]["exp_avg"] = gs.zeros(1)
    with pytest.raises(ValueError, match="non-broadcastable output"):
        optimizer.step()
    assert not bundled


def test_a_copy_of_the_optimizer_has_vectors_of_its_own() -> None:
    parameters = leaves()
    optimizer = trained(gs.optim.Adam, parameters)
    twin = copy.deepcopy(optimizer)
    before = everything(twin, twin.param_groups[0]["params"])
    optimizer.step()
    assert everything(twin, twin.param_groups[0]["params"]) == before
    twin.step()
    assert [found[1] for found in everything(twin, twin.param_groups[0]["params"])] == [
        found[1] for found in everything(optimizer, parameters)
    ]
