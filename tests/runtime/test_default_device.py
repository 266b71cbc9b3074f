"""Where factories make their tensors: ``with gs.device(...)`` and set_default_device(); layouts and pinned memory."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy
import pytest

import gradscope as gs
from tests.side_by_side import same_complaint

Factory = Callable[[Any], Any]

FACTORIES: dict[str, Factory] = {
    "zeros": lambda lib: lib.zeros(2),
    "ones": lambda lib: lib.ones((2,)),
    "empty": lambda lib: lib.empty(2),
    "full": lambda lib: lib.full((2,), 3),
    "arange": lambda lib: lib.arange(3),
    "linspace": lambda lib: lib.linspace(0, 1, 3),
    "logspace": lambda lib: lib.logspace(0, 1, 3),
    "eye": lambda lib: lib.eye(2),
    "scalar_tensor": lambda lib: lib.scalar_tensor(2.0),
    "tensor": lambda lib: lib.tensor([1.0, 2.0]),
    "as_tensor": lambda lib: lib.as_tensor(numpy.ones(2)),
    "as_tensor of a tensor": lambda lib: lib.as_tensor(lib.ones(2, device="cpu")),
    "asarray": lambda lib: lib.asarray([1.0]),
    "rand": lambda lib: lib.rand(2),
    "randn": lambda lib: lib.randn(2),
    "randint": lambda lib: lib.randint(3, (2,)),
    "randperm": lambda lib: lib.randperm(3),
    "tril_indices": lambda lib: lib.tril_indices(3, 3),
    "hann_window": lambda lib: lib.hann_window(4),
    "fftfreq": lambda lib: lib.fft.fftfreq(4),
    "Linear": lambda lib: lib.nn.Linear(2, 3).weight,
    "BatchNorm1d": lambda lib: lib.nn.BatchNorm1d(2).running_mean,
    # Those that are where something else is.
    "zeros_like": lambda lib: lib.zeros_like(lib.ones(2, device="cpu")),
    "new_zeros": lambda lib: lib.ones(2, device="cpu").new_zeros(3),
    "from_numpy": lambda lib: lib.from_numpy(numpy.ones(2)),
    "a device given": lambda lib: lib.ones(2, device="cpu"),
}


@pytest.mark.torch
@pytest.mark.parametrize("name", FACTORIES)
def test_factories_ask_the_block_as_in_pytorch(torch: Any, name: str, other_device: str) -> None:
    with torch.device("meta"):
        theirs = FACTORIES[name](torch)
    with gs.device(other_device):
        mine = FACTORIES[name](gs)
    assert (mine.device.type == other_device) is (theirs.device.type == "meta")
    assert tuple(mine.shape) == tuple(theirs.shape)
    assert str(mine.dtype).partition(".")[2] == str(theirs.dtype).partition(".")[2]


@pytest.fixture
def no_default() -> Iterator[None]:
    yield
    gs.set_default_device(None)


@pytest.mark.usefixtures("no_default")
def test_blocks_nest_and_end_with_an_error(other_device: str) -> None:
    there = gs.device(other_device)
    with there as entered, there:
        assert entered is there
        with gs.device("cpu"):
            assert gs.ones(1).device.type == "cpu"
            assert gs.get_default_device() == gs.device("cpu")
        assert gs.get_default_device().type == other_device
    gs.set_default_device(other_device)
    with pytest.raises(TypeError), gs.device("cpu"):
        gs.ones("a")
    assert gs.ones(1).device.type == other_device
    gs.set_default_device(None)
    assert gs.get_default_device() == gs.device("cpu")


def test_the_default_device_is_that_of_a_thread(other_device: str) -> None:
    found = []
    with gs.device(other_device):
        thread = threading.Thread(target=lambda: found.append(gs.ones(1).device.type))
        thread.start()
        thread.join()
    assert found == ["cpu"]


def test_a_network_made_there_trains_there(other_device: str) -> None:
    with gs.device(other_device):
        model = gs.nn.Sequential(gs.nn.Linear(3, 4), gs.nn.Tanh(), gs.nn.Linear(4, 1))
        x = gs.randn(5, 3)
        optimizer = gs.optim.Adam(model.parameters())
        (model(x) ** 2).mean().backward()
        optimizer.step()
    assert (
        {p.device.type for p in model.parameters()}
        == {p.grad.device.type for p in model.parameters()}
        == {other_device}
    )


def test_a_generator_of_another_device_is_refused(other_device: str) -> None:
    with (
        gs.device(other_device),
        pytest.raises(RuntimeError, match=f"Expected a '{other_device}' device type for generator"),
    ):
        gs.randn(2, generator=gs.Generator())


def test_an_unknown_device_is_refused() -> None:
    with pytest.raises(RuntimeError, match="device type at start of device string: abacus"):
        gs.set_default_device("abacus")


# --- layout= and pin_memory= ------------------------------------------------------------------------------------------

OPTIONS: list[Callable[[Any, dict[str, Any]], Any]] = [
    lambda lib, o: lib.zeros(2, **o),
    lambda lib, o: lib.ones(2, **o),
    lambda lib, o: lib.empty(2, **o),
    lambda lib, o: lib.full((2,), 1.0, **o),
    lambda lib, o: lib.scalar_tensor(1.0, **o),
    lambda lib, o: lib.zeros_like(lib.ones(2), **o),
    lambda lib, o: lib.tril_indices(2, 2, **o),
    lambda lib, o: lib.ones(2).new_zeros(2, **o),
]
DRAWN: list[Callable[[Any, dict[str, Any]], Any]] = [
    lambda lib, o: lib.arange(3, **o),
    lambda lib, o: lib.linspace(0, 1, 2, **o),
    lambda lib, o: lib.eye(2, **o),
    lambda lib, o: lib.randn(2, **o),
    lambda lib, o: lib.randint(3, (2,), **o),
    lambda lib, o: lib.randperm(3, **o),
    lambda lib, o: lib.hann_window(3, **o),
]


@pytest.mark.parametrize("make", [*OPTIONS, *DRAWN])
def test_the_strided_layout_and_no_pinned_memory_are_taken(make: Any) -> None:
    plain = make(gs, {})
    for options in ({"layout": gs.strided}, {"pin_memory": False}, {"layout": None, "pin_memory": None}):
        assert make(gs, options).shape == plain.shape


@pytest.mark.torch
@pytest.mark.parametrize("make", OPTIONS)
def test_the_rest_is_refused_as_in_pytorch(torch: Any, make: Any) -> None:
    if torch.cuda.is_available():
        pytest.skip("memory can be pinned here")
    for options in ({"layout": "strided"}, {"layout": 1}, {"pin_memory": 1}, {"pin_memory": True}):
        same_complaint(torch, lambda lib, options=options: make(lib, options))


@pytest.mark.parametrize("make", DRAWN)
def test_other_layouts_and_pinned_memory_are_refused(make: Any) -> None:
    with pytest.raises(TypeError, match=r"argument 'layout' must be gradscope\.layout, not str"):
        make(gs, {"layout": "strided"})
    with pytest.raises(TypeError, match="argument 'pin_memory' must be bool, not int"):
        make(gs, {"pin_memory": 1})
    with pytest.raises(RuntimeError, match="no pinned memory allocator is available"):
        make(gs, {"pin_memory": True})


@pytest.mark.torch
def test_tensor_refuses_pinned_memory_as_in_pytorch(torch: Any) -> None:
    for value in (1, "a") if torch.cuda.is_available() else (1, "a", True):
        same_complaint(torch, lambda lib, value=value: lib.tensor([1.0], pin_memory=value))
