"""Pipelines of two stages on four ranks: ranks 0 and 2 hold the first stage, 1 and 3 the second.

Run by torchrun; each program records itself into a directory of its name.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.fsdp
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.nn.parallel import DistributedDataParallel

import gradscope.inspect as gi
from gradscope.inspect.ranks.live_agreement import LiveAgreement, RanksDisagreeError
from gradscope.inspect.records.own_rank import own_rank

WIDTH, BATCH, STEPS = 6, 4, 3
Change = Callable[[nn.Module, int], None]


def stage(seed: int) -> nn.Sequential:
    """Return a stage of the model."""
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh())


def run(model: nn.Module, change: Change | None = None) -> None:
    """Train as a schedule of one micro-batch does: the first stage sends on, and is sent the gradient."""
    rank = dist.get_rank()
    first, neighbour = rank % 2 == 0, rank ^ 1
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1 if first else 0.2)
    torch.manual_seed(100 + rank)
    for number in range(STEPS):
        optimizer.zero_grad()
        if first:
            made = model(torch.randn(BATCH, WIDTH))
            dist.send(made.detach(), neighbour)
            gradient = torch.empty(BATCH, WIDTH)
            dist.recv(gradient, neighbour)
            made.backward(gradient)
        else:
            given = torch.empty(BATCH, WIDTH)
            dist.recv(given, neighbour)
            given.requires_grad_()
            model(given).square().mean().backward()
            dist.send(given.grad, neighbour)
        if change is not None:
            change(model, number)
        optimizer.step()


def main(folder: str) -> None:
    """Run all programs."""
    dist.init_process_group("gloo")
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("replica", "stage"))["replica"]
    rank, group = dist.get_rank(), mesh.get_group()

    def wrapped(seed: int) -> nn.Module:
        return DistributedDataParallel(stage(seed), process_group=group)

    def reduce(model: nn.Module, number: int) -> None:
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad, group=group)

    def scale(model: nn.Module, number: int) -> None:
        if number == 1 and rank == 3:
            model.module[0].weight.grad *= 2

    def sharded() -> nn.Module:
        model = stage(rank % 2)
        dist.fsdp.fully_shard(model, mesh=mesh)
        return model

    programs = {
        "wrapped": lambda: run(wrapped(seed=rank % 2)),
        "wrapped_with_equal_weights": lambda: run(wrapped(seed=0)),
        "reduced_by_hand": lambda: run(stage(rank % 2), reduce),
        "sharded": lambda: run(sharded()),
        "one_replica_scales": lambda: run(wrapped(seed=rank % 2), scale),
    }
    for name, program in programs.items():
        with gi.record(f"{folder}/{name}/"):
            program()
        dist.barrier()
    with LiveAgreement(own_rank()) as watch:
        programs["wrapped"]()
    assert (watch.note, watch.first, watch.steps) == ("", rank % 2, STEPS if rank > 1 else 0)
    try:
        with LiveAgreement(own_rank()):
            programs["one_replica_scales"]()
    except RanksDisagreeError as error:
        Path(folder, f"live-{rank}.txt").write_text(str(error))
    except RuntimeError:
        assert rank != 3  # the others wait for the one that has ended


if __name__ == "__main__":
    main(sys.argv[1])
    sys.stdout.flush()
    os._exit(0)  # a thread of gloo's, whose neighbour has ended in the middle of a collective, may abort the usual end
