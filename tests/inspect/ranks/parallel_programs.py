"""Networks that are spread over ranks in each way that PyTorch has, trained plainly and under each instrument.

Run by torchrun; a rank whose weights or gradients are not bit for bit those of its plain run ends the job.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed.fsdp
import torch.distributed.tensor
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn.parallel import DistributedDataParallel

import gradscope.inspect as gi
from gradscope.check import Sanitizer
from gradscope.inspect.ranks.live_agreement import LiveAgreement
from gradscope.inspect.records.own_rank import own_rank

STEPS, WIDTH, BATCH = 3, 8, 4


def network() -> nn.Sequential:
    """Return a network, the same on all ranks."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh(), nn.Linear(WIDTH, WIDTH))


def batches(seed: int) -> Iterator[torch.Tensor]:
    """Yield what a rank trains on."""
    torch.manual_seed(seed)
    for _ in range(STEPS):
        yield torch.randn(BATCH, WIDTH)


def train(model: nn.Module, seed: int) -> nn.Module:
    """Train as everybody does."""
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for batch in batches(seed):
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()
    return model


def data_parallel() -> nn.Module:
    """Train copies, of which DistributedDataParallel averages the gradients."""
    return train(DistributedDataParallel(network()), 100 + dist.get_rank())


def fully_sharded() -> nn.Module:
    """Train a network of which each rank holds a part (FSDP2)."""
    model = network()
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    for part in (model[0], model[2], model):
        dist.fsdp.fully_shard(part, mesh=mesh)
    return train(model, 100 + dist.get_rank())


def tensor_parallel() -> nn.Module:
    """Train a network of which each rank computes columns, then rows."""
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    whole = dist.tensor.Replicate()
    plan = {"0": ColwiseParallel(output_layouts=whole), "2": RowwiseParallel(input_layouts=whole)}
    return train(parallelize_module(network(), mesh, plan), 3)


def pipeline() -> nn.Module:
    """Train a network of which each rank is a stage."""
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(rank)
    stage = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh())
    schedule = ScheduleGPipe(
        PipelineStage(stage, rank, world, torch.device("cpu")), n_microbatches=2, loss_fn=nn.functional.mse_loss
    )
    optimizer = torch.optim.Adam(stage.parameters(), lr=0.01)
    for batch in batches(3):
        optimizer.zero_grad()
        given = (batch,) if rank == 0 else ()
        schedule.step(*given, **({"target": batch.tanh()} if rank == world - 1 else {}))
        optimizer.step()
    return stage


WAYS = {way.__name__: way for way in (data_parallel, fully_sharded, tensor_parallel, pipeline)}


def held(model: nn.Module) -> list[torch.Tensor]:
    """Return what this rank holds of the weights and their gradients."""
    values = [value for parameter in model.parameters() for value in (parameter.detach(), parameter.grad)]
    return [(value.to_local() if hasattr(value, "to_local") else value).clone() for value in values]


def main(folder: str) -> None:
    """Train in each way, plainly and under each instrument."""
    dist.init_process_group("gloo")
    for name, way in WAYS.items():
        instruments: dict[str, Callable[[], AbstractContextManager[Any]]] = {
            "recorded": lambda name=name: gi.record(f"{folder}/{name}/"),  # type: ignore[misc]
            "checked": Sanitizer,
            "compared": lambda: LiveAgreement(own_rank()),
        }
        plain = held(under(nullcontext, way))
        for instrument, opened in instruments.items():
            differs = f"{name}: rank {dist.get_rank()} computes other numbers when it is {instrument}"
            for one, other in zip(plain, held(under(opened, way)), strict=True):
                assert torch.equal(one, other), differs
    dist.destroy_process_group()


def under(instrument: Callable[[], AbstractContextManager[Any]], way: Callable[[], nn.Module]) -> nn.Module:
    """Return what was trained under an instrument, when all ranks have."""
    with instrument():
        model = way()
    dist.barrier()
    return model


if __name__ == "__main__":
    main(sys.argv[1])
