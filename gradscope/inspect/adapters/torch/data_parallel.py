"""The collectives by which torch.distributed keeps ranks equal, and checksums of tensors, made on their device."""

from __future__ import annotations

import importlib
import itertools
import math
import sys
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy
import torch
from torch.nn.parallel import DistributedDataParallel

from ....runtime.kernels import loading
from ...records.checksums import BLOCK, checksum, checksums_in_memory
from ...records.tensor_statistics import quick_norm
from ..protocol import DataParallel

__all__ = [
    "checksums_of", "data_parallel", "generator_facts", "group_of", "holders_of", "parallel_modules", "part_of",
    "rank_store", "stand_ins",
]  # fmt: skip

_FLAT = "FlatParameter"
"""FSDP's first version: each rank has a part of what all parameters of a module hold, end to end."""

_LISTED = 4
"""Ranks of a group that are told one by one, where its numbers are evenly spaced."""

_PLAIN = (torch.Tensor, torch.nn.Parameter)
"""Of these classes nothing but layout and device need be asked."""

_MANY = 1 << 17
"""Elements in all from which on the compiled loop is taken: to load it takes a second, once."""

_TENSOR_MODULES = ("torch.distributed.tensor", "torch.distributed._tensor")
"""Where a DTensor may come from; before PyTorch 2.5 from the second."""


def parallel_modules(modules: Sequence[Any]) -> list[Any]:
    """Return those of some modules that reduce the gradients of what they wrap."""
    return [module for module in modules if isinstance(module, DistributedDataParallel)]


def data_parallel(module: DistributedDataParallel) -> DataParallel:
    """Return what a wrapper keeps equal on all ranks."""
    inside = _wrapped.get(module)
    if inside is None or inside.has_changed():
        inside = _wrapped[module] = _Wrapped(module)
    return DataParallel(
        module,
        inside.reduced,
        inside.frozen,
        inside.ignored,
        tuple(inside.buffers()),
        broadcasts=bool(getattr(module, "forward_sync_buffers", getattr(module, "broadcast_buffers", False))),
        # The last forward with gradients says so: under no_sync() it prepares the reducer for nothing.
        synchronised=bool(module.require_forward_param_sync),
        group=inside.group,
    )


class _Wrapped:
    """What a wrapper holds, which is asked for before each step: its modules are walked anew where one has changed.

    It has their tables, not themselves: a module that has a part may hold the wrapper.

    Attributes
    ----------
    reduced, frozen, ignored : tuple of Parameter
        Those that the wrapper keeps equal; those of them whose gradients it does not reduce, and those that it was told
        to leave alone. What the program has added since it wrapped the module is in none.
    group : str
        The ranks of its process group, as :func:`_ranks_text` has them.
    """

    def __init__(self, module: DistributedDataParallel) -> None:
        self.reduced = tuple(module._module_parameters)
        self.frozen = tuple(_frozen(module))
        self._tables: list[dict[str, Any]] = []
        self._buffers: list[tuple[str, dict[str, Any]]] = []  # of the modules that have any
        seen: set[int] = set()
        waiting: list[tuple[str, torch.nn.Module]] = [("", module)]
        while waiting:
            path, part = waiting.pop()
            if not _seen(part, seen):
                before = f"{path}." if path else ""
                self._tables += [part._modules, part._parameters, part._buffers]
                if part._buffers:
                    self._buffers.append((before, part._buffers))
                inner = [(before + name, one) for name, one in part._modules.items() if one is not None]
                waiting += reversed(inner)
        self.ignored = tuple(_ignored(module))
        self.group = _group_text(module.process_group)
        self._sizes = list(map(len, self._tables))

    def has_changed(self) -> bool:
        """Whether a module has got or lost a part, a parameter or a buffer."""
        return list(map(len, self._tables)) != self._sizes

    def buffers(self) -> Iterator[tuple[str, torch.Tensor]]:
        """Yield the buffers that have elements, by their paths: a program may put others in their places."""
        seen: set[int] = set()
        for before, buffers in self._buffers:
            for name, buffer in buffers.items():
                if buffer is not None and not _seen(buffer, seen) and buffer.numel():
                    yield before + name, buffer


def _frozen(module: DistributedDataParallel) -> list[torch.nn.Parameter]:
    """Return the parameters that required no grad when the module was wrapped: the reducer does not know them."""
    held = module._module_parameters
    frozen = [parameter for parameter in held if not parameter.requires_grad]
    sizes = [parameter.numel() * parameter.element_size() for parameter in held if parameter.requires_grad]
    told = module._get_ddp_logging_data()
    if (len(sizes), sum(sizes)) == (told["num_parameter_tensors"], told["total_parameter_size_bytes"]):
        return frozen
    # Some were frozen or unfrozen since. To ask the reducer takes memory for a moment: as much as all gradients.
    with suppress(AttributeError, RuntimeError):
        buckets = module.reducer._get_zeros_like_grad_buckets()
        known = {id(parameter) for bucket in buckets for parameter in bucket.parameters()}
        return [parameter for parameter in held if id(parameter) not in known]
    return frozen


def _ignored(module: DistributedDataParallel) -> Iterator[torch.nn.Parameter]:
    """Yield the parameters that a wrapper was told to leave alone, and does not know by another name."""
    reduced = set(map(id, module._module_parameters))
    for name, parameter in module.module.named_parameters():
        if name in module.parameters_to_ignore and id(parameter) not in reduced:
            yield parameter


_wrapped: weakref.WeakKeyDictionary[DistributedDataParallel, _Wrapped] = weakref.WeakKeyDictionary()


def _seen(one: Any, seen: set[int]) -> bool:
    """Whether an object's id is in a set, to which it is added."""
    known = id(one) in seen
    seen.add(id(one))
    return known


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


def group_of(tensor: torch.Tensor) -> str:
    """Return the ranks over which a tensor is spread; an empty string where all are, or none.

    Examples
    --------
    >>> group_of(torch.ones(3))
    ''
    """
    if not _is_distributed(tensor) or not torch.distributed.is_initialized():
        return ""
    return _ranks_text(tensor.device_mesh.mesh.flatten().tolist())


def holders_of(tensor: torch.Tensor) -> str:
    """Return the ranks that hold the same part of a tensor; an empty string where these are all, or this one alone.

    Examples
    --------
    >>> holders_of(torch.ones(3))
    ''
    """
    if not _is_distributed(tensor) or not torch.distributed.is_initialized():
        return ""
    whole: Any = tensor
    coordinate = whole.device_mesh.get_coordinate() or ()
    same = [slice(None) if held.is_replicate() else at for held, at in zip(whole.placements, coordinate)]
    ranks = whole.device_mesh.mesh[tuple(same)].flatten().tolist()
    return _ranks_text(ranks) if len(ranks) > 1 else ""


def _group_text(group: Any) -> str:
    """Return the ranks of a process group; an empty string where it is all of them, or is there no more."""
    with suppress(KeyError, ValueError):  # a program may step after destroy_process_group()
        return _ranks_text(torch.distributed.get_process_group_ranks(group))
    return ""


def _ranks_text(ranks: Sequence[int]) -> str:
    """Return some ranks; an empty string where they are all that there are.

    A model has many parameters and a job many ranks: of evenly spaced ones the ends say it all.
    """
    if len(ranks) == torch.distributed.get_world_size():
        return ""
    ranks = sorted(ranks)
    if len(ranks) > _LISTED and len({after - before for before, after in itertools.pairwise(ranks)}) == 1:
        return f"{ranks[0]}, {ranks[1]}, ..., {ranks[-1]}"
    return ", ".join(map(str, ranks))


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


def checksums_of(tensors: Sequence[torch.Tensor | None], *, with_norms: bool = True) -> tuple[list[int], list[float]]:
    """Return the checksum of the bits of each tensor, and its 2-norm; 0 and 0.0 for None.

    Of a DTensor they are those of the part that is here; the checksums of all parts add up to that of the whole.

    Parameters
    ----------
    with_norms : bool
        Whether norms are wanted of tensors on the CPU, too; those on a device have them in the same table.
    """
    sums, norms = [0] * len(tensors), [0.0] * len(tensors)
    plain: dict[int, torch.Tensor] = {}
    elsewhere: dict[torch.device, list[tuple[int, list[tuple[torch.Tensor, int]]]]] = {}
    with torch._C.DisableTorchFunction(), torch.no_grad():
        for at, tensor in enumerate(tensors):
            if tensor is None:
                continue
            if type(tensor) in _PLAIN and tensor.is_cpu and tensor.layout is torch.strided:
                plain[at] = tensor
                continue
            runs = list(_runs(tensor))
            if runs and runs[0][0].device.type != "cpu":
                elsewhere.setdefault(runs[0][0].device, []).append((at, runs))
                continue
            looks = [_look(run, start, with_norms) for run, start in runs]
            sums[at] = sum(total for total, _ in looks) % (1 << 64)
            norms[at] = math.hypot(*(norm for _, norm in looks))
        for at, total, norm in _compiled_looks(plain, with_norms):
            sums[at], norms[at] = total, norm
            del plain[at]
        for at, tensor in plain.items():
            sums[at], norms[at] = _look(tensor.detach(), 0, with_norms)
        for found in elsewhere.values():
            table = _looks_on_device([runs for _, runs in found]).cpu().numpy()
            for (at, _), total, norm in zip(found, table[0].view(numpy.uint64), table[1].view(numpy.float64)):
                sums[at], norms[at] = int(total), float(norm)
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


def _look(values: torch.Tensor, start: int, with_norm: bool) -> tuple[int, float]:
    """Return the checksum of a tensor on the CPU, whose first element is at `start` in the whole, and its norm or 0."""
    try:
        host = values.numpy()
    except (TypeError, RuntimeError):  # NumPy has no such dtype, or the tensor is conjugated lazily
        flat = values.resolve_conj().resolve_neg().reshape(-1)
        bits = flat.view(torch.uint8).numpy().view(f"V{flat.element_size()}")
        return checksum(bits, start), _norm(flat) if with_norm else 0.0
    return checksum(host, start), quick_norm(host) if with_norm else 0.0


def _compiled_looks(tensors: Mapping[int, torch.Tensor], with_norms: bool) -> Iterable[tuple[int, int, float]]:
    """Return what `_look` does of those among many tensors that the compiled loop can read, with their places."""
    if sum(map(torch.Tensor.numel, tensors.values())) < _MANY or loading.compiled("recording.checksum_loops") is None:
        return ()
    runs = [
        (at, address, tensor.numel())
        for at, tensor in tensors.items()
        if tensor.dtype is torch.float32 and tensor.is_contiguous() and not tensor.is_neg()
        and (address := tensor.data_ptr()) and not address % 8
    ]  # fmt: skip
    if not runs:
        return ()
    places, addresses, sizes = zip(*runs)
    return zip(places, *checksums_in_memory(addresses, sizes, norms=with_norms))


def _looks_on_device(tensors: Sequence[Sequence[tuple[torch.Tensor, int]]]) -> torch.Tensor:
    """Return the checksums of tensors on a device, and the bits of their norms, there: one table comes to the host.

    Nothing in it waits for the device, which is given some ten operators for each tensor.

    Parameters
    ----------
    tensors : sequence
        The runs of each, as :func:`_runs` yields them.
    """
    sums = [torch.stack([_checksum_on_device(run, start) for run, start in runs]).sum() for runs in tensors]
    norms = [torch.linalg.vector_norm(torch.stack([_norm_on_device(run) for run, _ in runs])) for runs in tensors]
    return torch.stack([torch.stack(sums), torch.stack(norms).view(torch.int64)])


def _checksum_on_device(flat: torch.Tensor, start: int) -> torch.Tensor:
    """Return what `checksum` does, of the same bits as a signed number, computed where the elements are."""
    offset = start * flat.element_size()
    content = flat.resolve_conj().resolve_neg().contiguous().view(torch.uint8)
    before, first = offset % (8 * BLOCK), offset // (8 * BLOCK)
    blocks = -(-(before + content.numel()) // (8 * BLOCK))
    padded = torch.nn.functional.pad(content, (before, blocks * 8 * BLOCK - before - content.numel()))
    words = padded.view(torch.int64).view(blocks, BLOCK)
    inside = _factors(torch.arange(BLOCK, device=flat.device))
    outside = _factors(torch.arange(BLOCK + first, BLOCK + first + blocks, device=flat.device))
    return ((words * inside).sum(1) * outside).sum()


def _factors(indices: torch.Tensor) -> torch.Tensor:
    """Return :func:`.checksums.factor` of many indices: products of signed numbers have the same bits."""
    mixed = (indices + 1) * _signed(0x9E3779B97F4A7C15)
    mixed = (mixed ^ _shifted(mixed, 30)) * _signed(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ _shifted(mixed, 27)) * _signed(0x94D049BB133111EB)
    return (mixed ^ _shifted(mixed, 31)) | 1


def _signed(number: int) -> int:
    return number - (1 << 64) if number >> 63 else number


def _shifted(numbers: torch.Tensor, places: int) -> torch.Tensor:
    """Return numbers shifted to the right, with zeros where their signs were."""
    return (numbers >> places) & ((1 << (64 - places)) - 1)


def _norm_on_device(flat: torch.Tensor) -> torch.Tensor:
    return torch.linalg.vector_norm(flat if flat.is_complex() else flat.double()).double()


def _norm(flat: torch.Tensor) -> float:
    try:
        return quick_norm(flat.numpy())
    except TypeError:  # NumPy has no such dtype
        return quick_norm(flat.float().numpy())
