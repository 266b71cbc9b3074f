"""gs.cuda without and with a device, and what it asks CuPy for."""

from __future__ import annotations

import sys
import threading
import types
from typing import Any

import numpy
import pytest

import gradscope as gs
import gradscope.inspect as gi
from gradscope.runtime.memory import device as devices
from gradscope.runtime.ops.random import random

without_device = pytest.mark.skipif(gs.cuda.is_available(), reason="there is a CUDA device")


@without_device
def test_without_a_device_it_says_so() -> None:
    assert not gs.cuda.is_available()
    assert gs.cuda.device_count() == 0
    gs.cuda.manual_seed(0)
    gs.cuda.manual_seed_all(0)
    gs.cuda.empty_cache()


@without_device
@pytest.mark.parametrize(
    "ask",
    [
        gs.cuda.current_device,
        gs.cuda.synchronize,
        gs.cuda.get_device_name,
        gs.cuda.memory_allocated,
        lambda: gs.cuda.set_device(0),
        lambda: gs.cuda.device(0),
        lambda: gs.rand(2, device="cuda"),
        lambda: gs.Generator("cuda"),
        lambda: gs.nn.Linear(2, 2).cuda(),
        lambda: gs.nn.Linear(2, 2, device="cuda"),
    ],
)
def test_asking_for_one_is_a_clear_error(ask: object) -> None:
    with pytest.raises(RuntimeError, match="CUDA is not available"):
        ask()  # type: ignore[operator]


@pytest.mark.gpu
@pytest.mark.skipif(not gs.cuda.is_available(), reason="needs CuPy and a CUDA device")
def test_training_on_the_device() -> None:
    gs.cuda.manual_seed(0)
    model = gs.nn.Sequential(
        gs.nn.Conv2d(1, 4, 3), gs.nn.BatchNorm2d(4), gs.nn.GELU(), gs.nn.MaxPool2d(2), gs.nn.Flatten(),
        gs.nn.Dropout(0.1), gs.nn.Linear(36, 10),
    ).cuda()  # fmt: skip
    optimizer = gs.optim.Adam(model.parameters(), lr=0.01)
    x, labels = gs.rand(16, 1, 8, 8, device="cuda"), gs.randint(10, (16,), device="cuda")
    losses = []
    for _ in range(20):
        optimizer.zero_grad()
        loss = gs.nn.functional.cross_entropy(model(x), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    gs.cuda.synchronize()
    assert losses[-1] < losses[0]
    assert model[0].weight.device.type == "cuda"
    assert gs.cuda.memory_allocated() > 0


# --- what CuPy is asked for -------------------------------------------------------------------------------------------


class Array:
    """An array of the module below."""

    def __init__(self, values: numpy.ndarray, index: int) -> None:
        self.values, self.device = values, types.SimpleNamespace(id=index)
        self.data = types.SimpleNamespace(ptr=4096)


class Device:
    """A device of the module below; each thread begins on the first."""

    local = threading.local()
    waited: list[int] = []

    def __init__(self, index: int | None = None) -> None:
        self.id = self.chosen()[-1] if index is None else index

    @classmethod
    def chosen(cls) -> list[int]:
        """Return the ordinals of the blocks that run on this thread."""
        return cls.local.__dict__.setdefault("chosen", [0])

    def __enter__(self) -> Device:
        self.chosen().append(self.id)
        return self

    def __exit__(self, *error: object) -> None:
        self.chosen().pop()

    def use(self) -> None:
        self.chosen()[-1] = self.id

    def synchronize(self) -> None:
        self.waited.append(self.id)


class DriverError(Exception):
    """What CuPy raises where the driver fails."""


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a module with what is asked of CuPy beside its arrays: two devices."""
    pool = types.SimpleNamespace(used_bytes=lambda: 100 + Device.chosen()[-1], free_all_blocks=lambda: None)
    runtime = types.SimpleNamespace(
        CUDARuntimeError=DriverError,
        getDeviceCount=lambda: 2,
        getDeviceProperties=lambda index: {"name": f"GPU {index}".encode()},
    )
    module = types.SimpleNamespace(
        ndarray=Array,
        asarray=lambda values: Array(values.copy(), Device.chosen()[-1]),
        asnumpy=lambda array: array.values,
        cuda=types.SimpleNamespace(runtime=runtime, Device=Device),
        get_default_memory_pool=lambda: pool,
    )
    monkeypatch.setitem(sys.modules, "cupy", module)  # type: ignore[arg-type]
    monkeypatch.setattr(Device, "local", threading.local())
    monkeypatch.setattr(Device, "waited", [])
    monkeypatch.setattr(devices._cuda, "module", None)
    monkeypatch.setattr(devices, "elsewhere", devices.elsewhere)
    monkeypatch.setattr(random, "_defaults", dict(random._defaults))
    monkeypatch.setattr(random, "_common_seed", None)
    for table in ("_by_type", "_modules"):
        monkeypatch.setattr(devices, table, dict(getattr(devices, table)))
    return module


@pytest.mark.parametrize("current", [0, 1])
def test_arrays_go_to_the_current_device_and_back(cupy: Any, current: int) -> None:
    with Device(current):
        for name in ("cuda", f"cuda:{current}"):
            backend, index = devices.resolve(name)
            array = backend.from_host(numpy.arange(3.0), index)
            assert (type(array), array.device.id) == (Array, current)
    assert Device.chosen() == [0]
    assert devices.device_of(array) == gs.device("cuda", current)
    assert devices.array_module(array) is cupy
    assert devices.to_host(array).tolist() == [0.0, 1.0, 2.0]
    assert devices.address(array) == 4096


@pytest.mark.parametrize("ask", [lambda: gs.zeros(2, device="cuda:1"), lambda: gs.ones(2).to("cuda:1")])
def test_another_device_than_the_current_is_refused(cupy: Any, ask: Any) -> None:
    with pytest.raises(RuntimeError, match=r"which is cuda:0, not on cuda:1\.\nChoose it: gradscope"):
        ask()


@pytest.mark.parametrize(
    "ask", [lambda: gs.zeros(2, device="cuda:2"), lambda: gs.cuda.synchronize(2), lambda: gs.cuda.get_device_name(7)]
)
def test_a_device_that_is_not_there_is_refused(cupy: Any, ask: Any) -> None:
    with pytest.raises(RuntimeError, match=r"CUDA error: invalid device ordinal\nThere is no cuda:\d: CuPy finds 2"):
        ask()


def test_another_device_is_chosen(cupy: Any) -> None:
    with gs.cuda.device(1):
        assert gs.cuda.current_device() == 1
    assert gs.cuda.current_device() == 0
    gs.cuda.set_device("cuda:1")
    assert gs.cuda.current_device() == 1
    assert devices.resolve("cuda:1")[1] == 1


def test_backwards_on_other_threads_compute_where_they_were_called(cupy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, set[int]] = {}

    def backward(remaining: int = 0) -> None:
        with gs.enable_grad():
            y = gs.ones(2, requires_grad=True).sum()
        seen.setdefault(threading.current_thread().name.split(" (")[0], set()).add(gs.cuda.current_device())
        if remaining:
            y.register_hook(lambda grad: backward(remaining - 1))
        y.backward()

    monkeypatch.setattr("gradscope.runtime.engine.backward.MAX_DEPTH", 3)
    with gs.cuda.device(1):
        backward(5)
        dbg = gi.debug(backward)
    dbg.cont()
    assert len(seen) == 3
    assert set.union(*seen.values()) == {1}


def test_generators_are_seeded_on_their_devices(cupy: Any) -> None:
    seeded = []
    cupy.random = types.SimpleNamespace(default_rng=lambda seed: seeded.append((seed, Device.chosen()[-1])))
    gs.cuda.manual_seed_all(3)
    gs.cuda.manual_seed(4)
    assert seeded == [(3, 0), (3, 1), (4, 0)]
    with pytest.raises(RuntimeError, match="not on cuda:1"):
        gs.rand(2, device="cuda:1")


def test_what_is_asked_of_a_device(cupy: Any) -> None:
    assert gs.cuda.is_available()
    assert gs.cuda.device_count() == 2
    assert gs.cuda.current_device() == 0
    assert [gs.cuda.get_device_name(index) for index in (None, 1, "cuda:1")] == ["GPU 0", "GPU 1", "GPU 1"]
    assert [gs.cuda.memory_allocated(index) for index in (None, 1)] == [100, 101]
    gs.cuda.synchronize(1)
    gs.cuda.synchronize()
    assert Device.waited == [1, 0]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (DriverError("the driver is too old"), r"found no device \(the driver is too old\)\.\nCheck the driver"),
        (0, r"found no device\.\nUse device='cpu'"),
    ],
)
def test_a_driver_without_a_device_is_a_clear_error(cupy: Any, answer: Any, message: str) -> None:
    def count() -> int:
        if isinstance(answer, Exception):
            raise answer
        return answer

    cupy.cuda.runtime.getDeviceCount = count
    assert not gs.cuda.is_available()
    with pytest.raises(RuntimeError, match=f"CUDA is not available: CuPy {message}"):
        gs.zeros(2, device="cuda")
