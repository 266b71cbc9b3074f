"""gs.cuda without and with a device."""

from __future__ import annotations

import pytest

import gradscope as gs

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
