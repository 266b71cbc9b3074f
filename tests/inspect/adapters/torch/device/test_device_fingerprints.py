"""Checksums of saved tensors on a device."""

import gc

import pytest

torch = pytest.importorskip("torch", reason="the adapter for PyTorch")
pytestmark = pytest.mark.torch

from gradscope.check import Sanitizer  # noqa: E402
from gradscope.inspect.adapters.torch.device import device_fingerprints  # noqa: E402
from gradscope.inspect.adapters.torch.device.device_fingerprints import fingerprint_of  # noqa: E402

DTYPES = [
    torch.float64, torch.float32, torch.bfloat16, torch.float16, torch.int64, torch.int8, torch.bool, torch.complex64,
    torch.complex128,
]  # fmt: skip
on_a_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
DEVICES = ["cpu", pytest.param("cuda", marks=on_a_gpu)]


@pytest.fixture(autouse=True)
def nothing_waits(monkeypatch):
    monkeypatch.setattr(device_fingerprints, "_streams", {})


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("size", [0, 1, 100, 4096, 100_000])
def test_a_tensor_has_one_until_it_is_written(dtype, size, device):
    x = torch.randint(0, 2, (size,), device=device).to(dtype)
    before = fingerprint_of(x)
    assert before == fingerprint_of(x)
    if size:
        x[0] = 0 if x[0] else 1
        assert before != fingerprint_of(x)


@pytest.mark.parametrize("device", DEVICES)
def test_it_is_of_the_elements_and_their_places(device):
    x = torch.arange(12.0, device=device).reshape(3, 4)
    assert fingerprint_of(x) != fingerprint_of(x.flip(0))
    assert fingerprint_of(x.T) == fingerprint_of(x.T)
    assert fingerprint_of(x[:, ::2]) == fingerprint_of(x[:, ::2].clone())
    assert fingerprint_of(torch.tensor(0.0, device=device)) != fingerprint_of(torch.tensor(-0.0, device=device))
    assert fingerprint_of(x) != 1


def test_all_are_read_when_one_is_compared(monkeypatch):
    x = torch.arange(3.0)
    first, others = fingerprint_of(x), [fingerprint_of(x + nr) for nr in range(3)]
    assert not any(type(one._value) is int for one in (first, *others))
    first.read()
    assert all(type(one._value) is int for one in others)
    assert len({one.read() for one in (first, *others)}) == 3  # of x, and of x + 0, which is x, and of two others


def test_those_of_nobody_do_not_wait():
    x = torch.arange(3.0)
    kept = fingerprint_of(x)
    for _ in range(10):
        fingerprint_of(x)
    gc.collect()
    (waiting,) = device_fingerprints._streams.values()
    assert sum(reference() is not None for reference in waiting._made) == 1
    assert kept.read() == fingerprint_of(x).read()


def test_many_are_read_in_time(monkeypatch):
    monkeypatch.setattr(device_fingerprints, "_MOST", 5)
    x = torch.arange(3.0)
    made = [fingerprint_of(x) for _ in range(12)]
    assert [type(one._value) is int for one in made] == [True] * 10 + [False] * 2
    assert len({one.read() for one in made}) == 1


@on_a_gpu
def test_a_silent_write_on_a_gpu_is_found():
    with Sanitizer() as sanitizer:
        x = torch.ones(5000, device="cuda", requires_grad=True)
        y = x.exp()
        y.data.mul_(2)
        y.sum().backward()

    assert [finding.code for finding in sanitizer.findings] == ["GS106"]


@on_a_gpu
def test_nothing_is_said_of_training_on_a_gpu():
    with Sanitizer() as sanitizer:
        layers = torch.nn.Linear(8, 16), torch.nn.BatchNorm1d(16), torch.nn.Dropout(0.1), torch.nn.Linear(16, 2)
        model = torch.nn.Sequential(*layers).cuda()
        optimizer = torch.optim.Adam(model.parameters())
        for _ in range(3):
            optimizer.zero_grad()
            model(torch.randn(32, 8, device="cuda")).square().mean().backward()
            optimizer.step()

    assert not sanitizer.findings
