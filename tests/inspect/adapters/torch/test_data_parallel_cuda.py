"""Checksums of tensors on a CUDA device: computed there, without waiting for it, and those of the same bits on the CPU.

Needs PyTorch and a CUDA device, and of this project's packages no more than ``gradscope`` itself.
"""

from __future__ import annotations

import warnings
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch", reason="the adapter for PyTorch")
pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]

from gradscope.inspect.adapters import adapter_for  # noqa: E402
from gradscope.inspect.adapters.torch.data_parallel import _looks_on_device, _runs, checksums_of  # noqa: E402
from gradscope.inspect.records.before_step.step_looks import StepLooker  # noqa: E402
from gradscope.inspect.records.module_tracking import Tracker  # noqa: E402

BLOCK = 8192 * 8
"""Bytes of which each has factors of its own."""

DTYPES = [
    torch.float64, torch.float32, torch.bfloat16, torch.float16, torch.float8_e4m3fn, torch.int64, torch.int8,
    torch.bool, torch.complex64, torch.complex128,
]  # fmt: skip


def drawn(size: int, dtype: torch.dtype, seed: int = 0) -> torch.Tensor:
    """Return numbers with a NaN, an infinity and a negative zero among them, where the dtype has those."""
    values = torch.randn(size, generator=torch.Generator().manual_seed(seed))
    for place, value in enumerate((float("nan"), float("inf"), -0.0)):
        values[place : place + 1] = value
    return values.to(dtype) if dtype.is_floating_point or dtype.is_complex else (values.nan_to_num(5, 9) * 7).to(dtype)


@pytest.mark.parametrize("size", [0, 1, 7, 101, BLOCK // 4 + 5, 1_000_003])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_the_checksum_is_that_of_the_copy_on_the_cpu(dtype, size):
    values = drawn(size, dtype)
    (there,), _ = checksums_of([values.cuda()])
    (here,), _ = checksums_of([values])
    assert there == here
    assert bool(here) == bool(size)


@pytest.mark.parametrize(
    "form",
    [
        lambda x: x.T,
        lambda x: x[:, 1::2],
        lambda x: x.flip(0),
        lambda x: x[1:2].expand(5, -1),
        lambda x: x.to(torch.complex64).conj(),
        lambda x: x.to(torch.complex64).conj().imag,
        lambda x: x.to_sparse(),
    ],
    ids=["transposed", "strided", "flipped", "expanded", "conjugated", "negated", "sparse"],
)
def test_the_layout_makes_no_difference(form):
    values = torch.arange(1.0, 36.0).reshape(5, 7)
    there, here = checksums_of([form(values.cuda())]), checksums_of([form(values)])
    assert there[0] == here[0]
    assert there[1] == pytest.approx(here[1], rel=1e-6)


def test_one_bit_that_differs_is_seen():
    values = drawn(100_000, torch.float32).cuda()
    other = values.clone()
    other.view(torch.int32)[77_777] ^= 1
    (one, two), _ = checksums_of([values, other])
    assert one != two


def test_norms_are_those_of_the_cpu():
    tensors = [torch.full((3,), 1e30), drawn(50_000, torch.float32)[3:], torch.full((9,), 60_000.0).half(), None]
    _, there = checksums_of([None if tensor is None else tensor.cuda() for tensor in tensors])
    assert there == pytest.approx(checksums_of(tensors)[1], rel=1e-6)


def test_tensors_of_both_devices_are_told_apart():
    tensors = [drawn(size, torch.float32, seed=size) for size in (3, 20_000, 5, 8192)]
    mixed = [tensor.cuda() if place % 2 else tensor for place, tensor in enumerate(tensors)]
    assert checksums_of(mixed)[0] == checksums_of(tensors)[0]


def test_nothing_waits_for_the_device():
    """PyTorch raises for what would: the kernels of the backward that has just ended may still run."""
    tensors = [drawn(size, torch.float32, seed=size).cuda() for size in (3, 8192, 100_000)]
    runs = [list(_runs(tensor)) for tensor in tensors]
    _looks_on_device(runs)  # what is loaded at the first call may wait
    torch.cuda.synchronize()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch calls the mode a prototype
        try:
            torch.cuda.set_sync_debug_mode("error")
            table = _looks_on_device(runs)
        finally:
            torch.cuda.set_sync_debug_mode("default")
    assert [total % 2**64 for total in table[0].tolist()] == checksums_of([tensor.cpu() for tensor in tensors])[0]


def looked_at(device: str) -> SimpleNamespace:
    """Return what is seen before a step; parameters and gradients have the same bits on any device."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(300, 200), torch.nn.LayerNorm(200), torch.nn.Linear(200, 7))
    gradients = [torch.randn(parameter.shape) for parameter in model.parameters()]
    model.to(device)
    for parameter, gradient in zip(model.parameters(), gradients):
        parameter.grad = gradient.to(device)
    optimizer = torch.optim.AdamW(model.parameters())
    adapter = adapter_for(next(model.parameters()))
    look = StepLooker(adapter, Tracker(adapter)).look(optimizer)
    assert look is not None
    return SimpleNamespace(values=look.values.tolist(), gradients=look.gradients.tolist(), norms=look.norms.tolist())


def test_a_rank_on_a_device_holds_what_one_on_the_cpu_does():
    there, here = looked_at("cuda"), looked_at("cpu")
    assert (there.values, there.gradients) == (here.values, here.gradients)
    assert there.norms == pytest.approx(here.norms, rel=1e-6)
