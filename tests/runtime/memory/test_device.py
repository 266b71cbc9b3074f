"""Devices: names, absent CUDA, and the strict stand-in that shows operators to be free of NumPy."""

from __future__ import annotations

import numpy
import pytest

import gradscope as gs
from gradscope.runtime.memory import device as devices
from tests.strict_arrays import HostAccessError, StrictArray, strict, to_strict

# --- names ------------------------------------------------------------------------------------------------------------


def test_devices_are_named_as_in_pytorch() -> None:
    assert str(gs.device("cpu")) == "cpu"
    assert str(gs.device("cuda", 1)) == str(gs.device("cuda:1")) == "cuda:1"
    assert repr(gs.device("cuda:1")) == "device(type='cuda', index=1)"
    assert repr(gs.device("cpu")) == "device(type='cpu')"
    assert gs.device(gs.device("cuda:1")).index == 1
    assert gs.device("cpu").index is None


def test_devices_compare_and_hash_by_value() -> None:
    assert gs.device("cuda") == gs.device("cuda:0")
    assert gs.device("cuda:0") != gs.device("cuda:1")
    assert gs.device("cpu") != gs.device("cuda")
    assert len({gs.device("cpu"), gs.device("cpu"), gs.device("cuda")}) == 2


@pytest.mark.parametrize("name", ["gpu", "", "cuda:x", "cpu:-1"])
def test_an_unknown_device_is_refused(name: str) -> None:
    with pytest.raises(RuntimeError, match="device type at start of device string"):
        gs.device(name)


def test_a_tensor_knows_its_device() -> None:
    tensor = gs.zeros(2)
    assert tensor.device == gs.device("cpu")
    assert not tensor.is_cuda
    assert tensor.to("cpu") is tensor
    assert tensor.cpu() is tensor


def test_a_type_of_arrays_has_a_device() -> None:
    assert devices.device_of_type(numpy.ndarray) == gs.device("cpu")
    assert devices.device_of_type(numpy.float32) == gs.device("cpu")
    assert devices.device_of_type(StrictArray) == gs.device("strict")


# --- CUDA -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def no_cupy(monkeypatch: pytest.MonkeyPatch) -> None:
    """CuPy is not installed."""
    import sys

    monkeypatch.setitem(sys.modules, "cupy", None)
    monkeypatch.setattr(devices._cuda, "module", None)


@pytest.mark.usefixtures("no_cupy")
def test_without_cupy_cuda_says_what_to_install() -> None:
    assert not devices.cuda_is_available()
    assert devices.cuda_device_count() == 0
    for ask in (lambda: gs.zeros(2, device="cuda"), lambda: gs.zeros(2).cuda(), lambda: gs.zeros(2).to("cuda:0")):
        with pytest.raises(
            RuntimeError, match=r"CUDA is not available[\s\S]*pip install 'gradscope-debugger\[cuda12\]'"
        ):
            ask()


@pytest.mark.gpu
def test_on_cuda_forward_and_backward_stay_there() -> None:
    if not devices.cuda_is_available():
        pytest.skip("needs CuPy and a CUDA device")
    x = gs.tensor([1.0, 2.0, 3.0], device="cuda", requires_grad=True)
    y = (x * x + x.exp()).sum()
    y.backward()
    assert x.grad.is_cuda
    expected = 2 * numpy.array([1.0, 2.0, 3.0]) + numpy.exp([1.0, 2.0, 3.0])
    numpy.testing.assert_allclose(x.grad.cpu().numpy(), expected, rtol=1e-6)


# --- the strict stand-in ----------------------------------------------------------------------------------------------


def test_the_stand_in_refuses_what_a_gpu_array_refuses() -> None:
    array = to_strict(numpy.arange(3.0))
    for use in (
        lambda: numpy.asarray(array),
        lambda: numpy.exp(array),
        lambda: numpy.sum(array),
        lambda: array + numpy.ones(3),
        lambda: numpy.ones(3) + array,
        lambda: array.__setitem__(slice(None), numpy.ones(3)),
        lambda: float(array[0]),
        lambda: bool(array.any()),
        lambda: array[0].item(),
        lambda: strict.concatenate([array, numpy.ones(3)]),
    ):
        with pytest.raises(HostAccessError):
            use()
    with pytest.raises(AttributeError, match="CuPy has no such function"):
        strict.vecdot(array, array)
    with pytest.raises(NotImplementedError, match="reduce does not exist"):
        strict.maximum.reduce(array)


def test_the_stand_in_computes_what_numpy_computes() -> None:
    array = to_strict(numpy.arange(6.0).reshape(2, 3))
    assert isinstance(strict.exp(array).sum(axis=0), StrictArray)
    assert array[0].base is array
    assert array.T.base is array
    assert (array * 2).base is None
    part = array[1, 2]
    assert part.shape == ()
    array[1, 2] = 10.0
    numpy.testing.assert_array_equal(part._data, 10.0)


def test_a_module_is_found_by_the_type_of_an_array() -> None:
    assert devices.array_module(numpy.ones(1)) is numpy
    assert devices.array_module(to_strict(numpy.ones(1))) is strict
    assert devices.is_array(to_strict(numpy.ones(1)))
    assert not devices.is_array([1.0])


# --- tensors on other devices -----------------------------------------------------------------------------------------


def test_tensors_move_between_devices_with_their_gradients(other_device: str) -> None:
    x = gs.tensor([1.0, 2.0], requires_grad=True)
    there = x.to(other_device)
    assert there.device == gs.device(other_device)
    assert there.grad_fn.name() == "ToCopyBackward0"
    back = (there * there).to("cpu")
    assert back.device == gs.device("cpu")
    back.sum().backward()
    assert x.grad.device == gs.device("cpu")
    assert x.grad.tolist() == [2.0, 4.0]


def test_factories_make_tensors_on_a_device(other_device: str) -> None:
    for tensor in (
        gs.zeros(2, device=other_device),
        gs.full((2,), 1.5, device=other_device),
        gs.arange(3, device=other_device),
        gs.tensor([1.0], device=other_device),
        gs.eye(2, device=other_device),
        gs.zeros_like(gs.zeros(2, device=other_device)),
    ):
        assert tensor.device.type == other_device


def test_a_0d_host_tensor_mixes_with_a_device_tensor_and_others_do_not(other_device: str) -> None:
    there = gs.tensor([1.0, 2.0], dtype=gs.float64, device=other_device)
    assert (there * gs.tensor(2.0, dtype=gs.float64)).tolist() == [2.0, 4.0]
    assert (gs.tensor(2.0, dtype=gs.float64) * there).device.type == other_device
    for mix in (lambda: there * gs.ones(2, dtype=gs.float64), lambda: gs.ones(2, dtype=gs.float64) * there):
        with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
            mix()


def test_numpy_is_refused_across_devices_and_cpu_is_the_way_out(other_device: str) -> None:
    there = gs.tensor([1.0, 2.0], dtype=gs.float64, device=other_device)
    with pytest.raises(TypeError, match=rf"can't convert {there.device} device type tensor .* Use Tensor.cpu\(\)"):
        there.numpy()
    numpy.testing.assert_array_equal(there.cpu().numpy(), [1.0, 2.0])
    numpy.testing.assert_array_equal(there.numpy(force=True), [1.0, 2.0])
    assert there.tolist() == [1.0, 2.0]


def test_backward_accumulates_on_the_device(other_device: str) -> None:
    x = gs.tensor([1.0, 2.0, 3.0], dtype=gs.float64, device=other_device, requires_grad=True)
    for _ in range(2):
        (x * x).sum().backward()
    assert x.grad.device.type == other_device
    assert x.grad.tolist() == [4.0, 8.0, 12.0]


def test_in_place_writes_and_views_on_the_device(other_device: str) -> None:
    x = gs.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=gs.float64, device=other_device, requires_grad=True)
    y = x * 1
    y.select(0, 0).mul_(3)
    y.sum().backward()
    assert x.grad.tolist() == [[3.0, 3.0], [1.0, 1.0]]
    assert y._version == 1


def test_create_graph_on_the_device(other_device: str) -> None:
    x = gs.tensor([1.0, 2.0], dtype=gs.float64, device=other_device, requires_grad=True)
    (first,) = gs.autograd.grad((x * x * x).sum(), x, create_graph=True)
    (second,) = gs.autograd.grad(first.sum(), x)
    assert second.device.type == other_device
    assert second.tolist() == [6.0, 12.0]


# --- memory -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "array",
    [
        numpy.ones(3),
        numpy.arange(12.0).reshape(3, 4)[::-1, 1::2],
        numpy.array(2.0),
        numpy.empty((0, 3), "float32"),
        numpy.broadcast_to(numpy.ones(1), (4, 4)),
    ],
    ids=["whole", "strided", "scalar", "empty", "expanded"],
)
def test_the_address_of_an_array_is_what_numpy_says(array) -> None:
    assert devices.address(array) == array.__array_interface__["data"][0]
