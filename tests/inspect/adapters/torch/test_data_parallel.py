"""Checksums of tensors are the same wherever they are computed, and those of shards add up to the whole's."""

from __future__ import annotations

import math

import pytest

from gradscope.inspect.adapters import adapter_for
from gradscope.inspect.records.checksums import checksum

torch = pytest.importorskip("torch", reason="the adapter for PyTorch")
pytestmark = pytest.mark.torch

from gradscope.inspect.adapters.torch.data_parallel import _checksum_on_device, checksums_of  # noqa: E402

DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int8, torch.bool, torch.complex64]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("size", "start"), [(0, 0), (1, 0), (101, 3), (8192 * 2 + 5, 8192 * 2 - 1)])
def test_the_device_computes_what_the_host_does(dtype, size, start):
    values = torch.randn(size, generator=torch.Generator().manual_seed(0)).to(dtype)
    bits = values.view(torch.uint8).numpy().view(f"V{values.element_size()}")
    assert _checksum_on_device(values, start) == checksum(bits, start)


def test_checksums_and_norms_of_any_layout():
    values = torch.arange(6.0).reshape(2, 3)
    (one, two, none, sparse), norms = checksums_of([values.T, values.T.contiguous(), None, values.to_sparse()])
    assert (one == two, none) == (True, 0)
    assert norms == pytest.approx([math.sqrt(55)] * 2 + [0.0, math.sqrt(55)])
    assert sparse != 0
    assert checksums_of([values.conj(), torch.full((2,), 1e30), torch.ones(2).bfloat16()])[1] == pytest.approx(
        [math.sqrt(55), math.sqrt(2) * 1e30, math.sqrt(2)]
    )


def test_a_tensor_of_one_process_is_whole():
    adapter = adapter_for(torch.ones(2))
    assert (adapter.part_of(torch.ones(2)), adapter.parallel_modules([torch.nn.Linear(2, 2)])) == ("", [])
    torch.manual_seed(3)
    before = adapter.generator_facts()
    torch.rand(1)
    assert before["seed"] == 3 == adapter.generator_facts()["seed"]
    assert before["generator"] != adapter.generator_facts()["generator"]
