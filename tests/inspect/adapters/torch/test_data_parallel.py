"""Checksums of tensors are the same wherever they are computed, and those of shards add up to the whole's."""

from __future__ import annotations

import gc
import math
import weakref

import pytest

from gradscope.inspect.adapters import adapter_for
from gradscope.inspect.records.checksums import checksum
from tests.runtime.kernels.both_forms import both

torch = pytest.importorskip("torch", reason="the adapter for PyTorch")
pytestmark = pytest.mark.torch

from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402

from gradscope.inspect.adapters.torch.data_parallel import (  # noqa: E402
    _checksum_on_device,
    _looks_on_device,
    _ranks_text,
    checksums_of,
    data_parallel,
    holders_of,
)
from tests.pytorch_versions import require_pytorch  # noqa: E402

DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int8, torch.bool, torch.complex64]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("size", "start"), [(0, 0), (1, 0), (101, 3), (8192 * 2 + 5, 8192 * 2 - 1)])
def test_the_device_computes_what_the_host_does(dtype, size, start):
    values = torch.randn(size, generator=torch.Generator().manual_seed(0)).to(dtype)
    bits = values.view(torch.uint8).numpy().view(f"V{values.element_size()}")
    assert int(_checksum_on_device(values, start)) % 2**64 == checksum(bits, start)


def looks(tensors):
    """Return what the device would compute, and the host reads."""
    table = _looks_on_device([[(tensor.reshape(-1), 0)] for tensor in tensors])
    return [total % 2**64 for total in table[0].tolist()], table[1].view(torch.float64).tolist()


def test_one_table_has_the_checksums_and_norms_of_all():
    tensors = [torch.randn(3, 5), torch.ones(20_000).bfloat16(), torch.randn(7, dtype=torch.complex64), torch.zeros(0)]
    sums, norms = checksums_of(tensors)
    assert looks(tensors)[0] == sums
    assert looks(tensors)[1] == pytest.approx(norms, rel=1e-6)


def test_nothing_waits_for_the_device():
    """A number that the host asked for would raise: these tensors have none."""
    with FakeTensorMode():
        tensors = [torch.empty(size, device="cuda") for size in (3, 8192, 100_000)]
        table = _looks_on_device([[(tensor, 5), (tensor, 7)] for tensor in tensors])
    assert (table.device.type, tuple(table.shape), table.dtype) == ("cuda", (2, 3), torch.int64)


def test_checksums_and_norms_of_any_layout():
    values = torch.arange(6.0).reshape(2, 3)
    (one, two, none, sparse), norms = checksums_of([values.T, values.T.contiguous(), None, values.to_sparse()])
    assert (one == two, none) == (True, 0)
    assert norms == pytest.approx([math.sqrt(55)] * 2 + [0.0, math.sqrt(55)])
    assert sparse != 0
    assert checksums_of([values.conj(), torch.full((2,), 1e30), torch.ones(2).bfloat16()])[1] == pytest.approx(
        [math.sqrt(55), math.sqrt(2) * 1e30, math.sqrt(2)]
    )


def test_many_elements_are_summed_as_few_are():
    """In a compiled loop, where its memory can be read as it lies; each of the others as if it were alone."""
    draw = torch.Generator().manual_seed(0)
    large = torch.randn(1 << 17, generator=draw)
    tensors = [
        large, None, torch.nn.Parameter(torch.randn(129, 3, generator=draw)), torch.randn(300, 20, generator=draw).T,
        large[1:102], large[2:103], torch.randn(9, dtype=torch.complex64, generator=draw).conj().imag,
        torch.ones(5000).bfloat16(), torch.randn(77, dtype=torch.float64, generator=draw), torch.zeros(0),
    ]  # fmt: skip
    many, alone = both("recording.checksum_loops", checksums_of, tensors)
    assert many[0] == alone[0]
    assert many[1] == pytest.approx(alone[1], rel=1e-6)
    assert checksums_of(tensors, with_norms=False)[0] == many[0]


def test_a_tensor_of_one_process_is_whole():
    adapter = adapter_for(torch.ones(2))
    assert (adapter.part_of(torch.ones(2)), adapter.parallel_modules([torch.nn.Linear(2, 2)])) == ("", [])
    torch.manual_seed(3)
    before = adapter.generator_facts()
    torch.rand(1)
    assert before["seed"] == 3 == adapter.generator_facts()["seed"]
    assert before["generator"] != adapter.generator_facts()["generator"]


@pytest.mark.parametrize(
    ("ranks", "told"),
    [
        ([0, 1], "0, 1"),
        ([3, 1], "1, 3"),
        (range(1, 16, 2), "1, 3, ..., 15"),
        ([0, 1, 2, 3, 7], "0, 1, 2, 3, 7"),
        (range(16), ""),
    ],
)
def test_the_ranks_of_a_group_are_told_shortly(monkeypatch, ranks, told):
    monkeypatch.setattr(torch.distributed, "get_world_size", lambda: 16)
    assert _ranks_text(list(ranks)) == told


def test_ranks_that_hold_the_same_part_are_told():
    """A 2 by 2 mesh: replicas of two shards each, as FSDP2 makes them."""
    require_pytorch(torch, "2.8")  # 2.4 has no public DTensor
    tensor, mesh, fake = map(pytest.importorskip, (
        "torch.distributed.tensor", "torch.distributed.device_mesh", "torch.testing._internal.distributed.fake_pg",
    ))  # fmt: skip
    torch.distributed.init_process_group("fake", store=fake.FakeStore(), rank=3, world_size=4)
    try:
        both = mesh.init_device_mesh("cpu", (2, 2))
        told = [
            holders_of(tensor.DTensor.from_local(torch.ones(2), both, placements, run_check=False))
            for placements in (
                [tensor.Replicate(), tensor.Shard(0)],
                [tensor.Shard(0), tensor.Replicate()],
                [tensor.Shard(0), tensor.Shard(0)],
                [tensor.Replicate(), tensor.Replicate()],
            )
        ]
    finally:
        torch.distributed.destroy_process_group()
    assert told == ["1, 3", "2, 3", "", ""]


def test_a_wrapper_is_looked_at_after_its_group_has_gone(tmp_path):
    torch.distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    wrapper = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))
    assert data_parallel(wrapper).group == ""
    torch.distributed.destroy_process_group()
    assert (data_parallel(wrapper).group, len(data_parallel(wrapper).reduced)) == ("", 2)


def test_what_a_wrapper_holds_is_told_as_it_is_now(tmp_path):
    torch.distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    try:
        model = torch.nn.Sequential(torch.nn.BatchNorm1d(2), torch.nn.Linear(2, 1))
        wrapper = torch.nn.parallel.DistributedDataParallel(model)
        names = ["module.0.running_mean", "module.0.running_var", "module.0.num_batches_tracked"]
        assert [name for name, _ in data_parallel(wrapper).buffers] == names
        model[0].running_mean = torch.full((2,), 3.0)  # another tensor in its place
        assert data_parallel(wrapper).buffers[0][1] is model[0].running_mean
        model[1].register_buffer("ema", torch.zeros(2))  # and one more
        model[1].extra = torch.nn.Linear(2, 2)
        found = data_parallel(wrapper)
        assert [name for name, _ in found.buffers] == [*names, "module.1.ema"]
        assert found.ignored == ()  # nobody has told the wrapper to leave what was added alone
    finally:
        torch.distributed.destroy_process_group()


def test_what_a_wrapper_does_not_reduce_is_told_with_the_reason(tmp_path):
    torch.distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    try:
        model = torch.nn.Sequential(torch.nn.Linear(2, 1), torch.nn.Linear(1, 1))
        torch.nn.parallel.DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(model, ["1.bias"])
        model[0].weight.requires_grad_(False)
        wrapper = torch.nn.parallel.DistributedDataParallel(model)
        model[0].weight.requires_grad_(True)  # the reducer hears of neither
        model[0].bias.requires_grad_(False)
        found = data_parallel(wrapper)
        assert [len(found.reduced), *map(id, found.frozen)] == [3, id(model[0].weight)]
        assert list(map(id, found.ignored)) == [id(model[1].bias)]
    finally:
        torch.distributed.destroy_process_group()


def test_what_is_known_of_a_wrapper_does_not_keep_it_alive(tmp_path):
    torch.distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    try:
        wrapper = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))
        data_parallel(wrapper)
        alive = weakref.ref(wrapper)
        del wrapper
        gc.collect()
        assert alive() is None
    finally:
        torch.distributed.destroy_process_group()
