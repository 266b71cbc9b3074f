"""The collectives by which torch.distributed keeps ranks equal, and checksums of tensors, made on their device."""

from __future__ import annotations

import functools
import importlib
import itertools
import math
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy
import torch
from torch.nn.parallel import DistributedDataParallel

from ...records.checksums import BLOCK, checksum, factor
from ...records.tensor_statistics import quick_norm
from ..protocol import DataParallel

__all__ = ["checksums_of", "data_parallel", "generator_facts", "parallel_modules", "part_of", "rank_store", "stand_ins"]

_FLAT = "FlatParameter"
"""FSDP's first version: each rank has a part of what all parameters of a module hold, end to end."""

_TENSOR_MODULES = ("torch.distributed.tensor", "torch.distributed._tensor")
"""Where a DTensor may come from; before PyTorch 2.5 from the second."""


def parallel_modules(modules: Sequence[Any]) -> list[Any]:
    """Return those of some modules that reduce the gradients of what they wrap."""
    return [module for module in modules if isinstance(module, DistributedDataParallel)]


def data_parallel(module: DistributedDataParallel) -> DataParallel:
    """Return what a wrapper keeps equal on all ranks."""
    reduced = tuple(module._module_parameters)
    inside = set(map(id, reduced))
    buffers = tuple((name, buffer) for name, buffer in module.named_buffers() if buffer.numel())
    return DataParallel(
        module,
        reduced,
        tuple(parameter for parameter in module.parameters() if id(parameter) not in inside),
        buffers,
        broadcasts=bool(getattr(module, "forward_sync_buffers", getattr(module, "broadcast_buffers", False))),
        # The last forward with gradients says so: under no_sync() it prepares the reducer for nothing.
        synchronised=bool(module.require_forward_param_sync),
    )


def stand_ins(module: torch.nn.Module) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Return the sharded parameters of a module, each with the whole one that FSDP2 puts into its place."""
    kind = getattr(sys.modules.get("torch.distributed.fsdp"), "FSDPModule", None)
    if kind is None:
        return []
    found = []
    for part in module.modules():
        if isinstance(part, kind):
            state = part._get_fsdp_state()
            groups = getattr(state, "_fsdp_param_groups", None) or [getattr(state, "_fsdp_param_group", None)]
            for held in [held for group in groups if group is not None for held in group.fsdp_params]:
                whole = getattr(held, "_unsharded_param", None)  # there after the first forward
                if whole is not None:
                    found.append((held.sharded_param, whole))
    return found


def rank_store() -> Any:
    """Return the store through which the ranks of the process group found each other; None where there is no group."""
    distributed = torch.distributed
    if not distributed.is_available() or not distributed.is_initialized():
        return None
    return distributed.PrefixStore("gradscope", distributed.distributed_c10d._get_default_store())


def generator_facts() -> dict[str, int]:
    """Return the seed of the generator on the CPU, and a checksum of where it has come to."""
    return {"seed": torch.initial_seed(), "generator": checksum(torch.get_rng_state().numpy())}


def part_of(tensor: torch.Tensor) -> str:
    """Return which part of the whole a tensor of this rank is; an empty string where it is all of it.

    Examples
    --------
    >>> part_of(torch.ones(3))
    ''
    """
    if _is_distributed(tensor):
        coordinate = tensor.device_mesh.get_coordinate() or ()
        places = zip(tensor.placements, coordinate, tensor.device_mesh.shape)
        parts = (
            f"{_called(placement)} {at + 1} of {count}"
            for placement, at, count in places
            if not placement.is_replicate()
        )
        return ", ".join(parts)
    if type(tensor).__name__ == _FLAT and torch.distributed.is_initialized():
        return f"flat {torch.distributed.get_rank() + 1} of {torch.distributed.get_world_size()}"
    return ""


def _called(placement: Any) -> str:
    return f"Shard({placement.dim})" if placement.is_shard() else type(placement).__name__.strip("_")


def _is_distributed(tensor: torch.Tensor) -> bool:
    """Whether a tensor is a DTensor; the module that has them takes most of a second to load."""
    module = _tensor_module()
    return module is not None and isinstance(tensor, module.DTensor)


def _tensor_module() -> Any:
    """Return the module that has DTensor, once it is loaded; None before."""
    loaded = (sys.modules.get(name) for name in _TENSOR_MODULES)
    return next((module for module in loaded if hasattr(module, "DTensor")), None)


# --- checksums ---


def checksums_of(tensors: Sequence[torch.Tensor | None]) -> tuple[list[int], list[float]]:
    """Return the checksum of the bits of each tensor, and its 2-norm; 0 and 0.0 for None.

    Of a DTensor they are those of the part that is here; the checksums of all parts add up to that of the whole.
    """
    sums, norms = [], []
    with torch._C.DisableTorchFunction(), torch.no_grad():
        for tensor in tensors:
            if tensor is None:
                sums.append(0)
                norms.append(0.0)
                continue
            runs = list(_runs(tensor))
            sums.append(sum(_checksum(run, start) for run, start in runs) % (1 << 64))
            norms.append(math.hypot(*(_norm(run) for run, _ in runs)))
    return sums, norms


def _runs(tensor: torch.Tensor) -> Iterator[tuple[torch.Tensor, int]]:
    """Yield flat pieces of what is here of a tensor, each with where it begins in the whole."""
    if not _is_distributed(tensor):
        plain = tensor.detach()
        if plain.layout is not torch.strided:
            plain = plain.coalesce().values() if plain.is_sparse else plain.to_dense()
        yield plain.reshape(-1), 0
        return
    whole: Any = tensor
    yield from _rows(whole._local_tensor.detach(), whole)


def _rows(local: torch.Tensor, tensor: Any) -> Iterator[tuple[torch.Tensor, int]]:
    """Yield the pieces of a DTensor's part that lie together in the whole."""
    utilities = importlib.import_module(f"{_tensor_module().__name__}._utils")  # DTensor has loaded it
    if not local.numel():
        return
    whole = tensor.shape
    _, offset = utilities.compute_local_shape_and_global_offset(whole, tensor.device_mesh, tensor.placements)
    split = [placement.dim for placement in tensor.placements if placement.is_shard()]
    last = max(split, default=0)  # from here on the elements of a row lie together in the whole
    strides = [math.prod(whole[dim + 1 :]) for dim in range(len(whole))]
    begin = sum(place * stride for place, stride in zip(offset, strides))
    rows = local.reshape(math.prod(local.shape[:last]), -1)
    for row, index in zip(rows, itertools.product(*map(range, local.shape[:last]))):
        yield row, begin + sum(at * stride for at, stride in zip(index, strides))


def _checksum(flat: torch.Tensor, start: int) -> int:
    if flat.device.type == "cpu":
        return checksum(_bits(flat), start)
    return _checksum_on_device(flat, start)


def _bits(flat: torch.Tensor) -> Any:
    """Return the elements as a NumPy array of some type of their size."""
    try:
        return flat.numpy()
    except (TypeError, RuntimeError):  # NumPy has no such dtype, or the tensor is conjugated lazily
        return flat.resolve_conj().resolve_neg().view(torch.uint8).numpy().view(f"V{flat.element_size()}")


def _checksum_on_device(flat: torch.Tensor, start: int) -> int:
    """Return what `checksum` does, computed where the elements are: one number comes to the host."""
    offset = start * flat.element_size()
    content = flat.resolve_conj().resolve_neg().contiguous().view(torch.uint8)
    before, first = offset % 8, offset // 8
    words = -(-(before + content.numel()) // 8)
    padded = torch.zeros(words * 8, dtype=torch.uint8, device=flat.device)
    padded[before : before + content.numel()] = content
    places = torch.arange(first, first + words, device=flat.device)
    inside, outside = (
        _factors(flat.device, 0, BLOCK),
        _factors(flat.device, BLOCK + first // BLOCK, BLOCK + (first + words) // BLOCK + 1),
    )
    factors = inside[places % BLOCK] * outside[places // BLOCK - first // BLOCK]
    total = int((padded.view(torch.int64) * factors).sum()) if words else 0
    return total % (1 << 64)


@functools.lru_cache(maxsize=64)
def _factors(device: torch.device, begin: int, end: int) -> torch.Tensor:
    numbers = numpy.array([factor(index) for index in range(begin, end)], numpy.uint64)
    return torch.from_numpy(numbers.view(numpy.int64)).to(device)


def _norm(flat: torch.Tensor) -> float:
    if flat.device.type != "cpu":
        return float(torch.linalg.vector_norm(flat if flat.is_complex() else flat.double()))
    try:
        return quick_norm(flat.resolve_conj().resolve_neg().numpy())
    except TypeError:  # NumPy has no such dtype
        return quick_norm(flat.float().numpy())
