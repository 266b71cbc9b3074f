"""Programs of two ranks: as people break them, each under the name of what is to be found, and healthy ones.

Run by torchrun (one start for all, since PyTorch takes seconds to load); each records itself into a directory.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed.fsdp
import torch.distributed.tensor
from torch import nn
from torch.distributed.algorithms.join import Join
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint

import gradscope.inspect as gi
from gradscope.inspect.adapters.torch.data_parallel import checksums_of, part_of
from gradscope.inspect.ranks.live_agreement import LiveAgreement, RanksDisagreeError
from gradscope.inspect.records.checksums import checksum
from gradscope.inspect.records.own_rank import own_rank

PROGRAMS: dict[str, Callable[[], None]] = {}


def program(function: Callable[[], None]) -> Callable[[], None]:
    """Add a program."""
    PROGRAMS[function.__name__] = function
    return function


def spread(function: Callable[[], None]) -> Callable[[], None]:
    """Add a program whose parameters are spread over ranks, where PyTorch (from 2.6 on) has fully_shard()."""
    return program(function) if hasattr(dist.fsdp, "fully_shard") else function


def rank() -> int:
    """Return which rank this is."""
    return int(os.environ["RANK"])


def layers(*more: nn.Module, seed: int = 0) -> nn.Sequential:
    """Return a small network, the same on all ranks but for `more`."""
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(4, 6), *more, nn.ReLU(), nn.Linear(6, 2))


def batches(count: int = 4) -> Iterator[torch.Tensor]:
    """Yield batches, others on each rank."""
    torch.manual_seed(100 + rank())
    for _ in range(count):
        yield torch.randn(5, 4)


def train(model: nn.Module, steps: int = 4, lr: float = 0.1, parameters: Any = None) -> None:
    """Train as everybody does."""
    optimizer = torch.optim.SGD(model.parameters() if parameters is None else parameters, lr=lr)
    for batch in batches(steps):
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()


def reduce_by_hand(parameters: Any) -> None:
    """Average gradients without DistributedDataParallel."""
    for parameter in parameters:
        dist.all_reduce(parameter.grad)
        parameter.grad /= 2


# --- as people break them ---


@program
def head_outside() -> None:
    trunk = DistributedDataParallel(nn.Linear(4, 6))
    torch.manual_seed(0)
    head = nn.Linear(6, 2)
    optimizer = torch.optim.SGD([*trunk.parameters(), *head.parameters()], lr=0.1)
    for batch in batches():
        optimizer.zero_grad()
        head(trunk(batch)).square().mean().backward()
        optimizer.step()


@program
def head_outside_with_other_seeds() -> None:
    trunk = DistributedDataParallel(nn.Linear(4, 6))
    torch.manual_seed(7 + rank())
    head = nn.Linear(6, 2)
    train(nn.Sequential(trunk, head))


@program
def no_sync_left_on() -> None:
    model = DistributedDataParallel(layers())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for number, batch in enumerate(batches()):
        optimizer.zero_grad()
        if number == 2:
            with model.no_sync():
                model(batch).square().mean().backward()
        else:
            model(batch).square().mean().backward()
        optimizer.step()


@program
def other_micro_batches() -> None:
    model = DistributedDataParallel(layers())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for batch in batches(2):
        optimizer.zero_grad()
        for micro in range(2):
            with nullcontext() if micro != rank() % 2 else model.no_sync():
                model(batch + micro).square().mean().backward()
        optimizer.step()


@program
def unused_on_one_rank() -> None:
    torch.manual_seed(1)
    model = layers(nn.Linear(6, 6))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for number, batch in enumerate(batches()):
        optimizer.zero_grad()
        hidden = model[0](batch)
        if not (rank() == 1 and number == 1):
            hidden = model[1](hidden)
        model[3](hidden).square().mean().backward()
        for parameter in model.parameters():
            gradient = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
            dist.all_reduce(gradient)
        optimizer.step()


@program
def dropout_without_reduction() -> None:
    model = layers(nn.Dropout())
    torch.manual_seed(rank())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.ones(5, 4)).square().mean().backward()
        optimizer.step()


@program
def never_wrapped() -> None:
    train(layers())


@program
def batch_norm_apart() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # the word has another name since PyTorch 2.13
        model = DistributedDataParallel(layers(nn.BatchNorm1d(6)), broadcast_buffers=False)
    train(model)


class Branches(nn.Module):
    """Two layers of which a forward uses one."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = nn.Linear(4, 2), nn.Linear(4, 2)

    def forward(self, x: torch.Tensor, which: str) -> torch.Tensor:
        chosen: torch.Tensor = getattr(self, which)(x)
        return chosen


def accumulate_branches(*, find_unused: bool, steps: int) -> None:
    """Use one branch under no_sync(), and then the other."""
    torch.manual_seed(0)
    model = DistributedDataParallel(Branches(), find_unused_parameters=find_unused)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for batch in batches(steps):
        optimizer.zero_grad()
        with model.no_sync():
            model(batch, "one").square().mean().backward()
        model(batch, "two").square().mean().backward()
        optimizer.step()


@program
def branch_of_an_earlier_backward() -> None:
    accumulate_branches(find_unused=False, steps=1)  # the second would raise


@program
def bucket_that_waits() -> None:
    torch.manual_seed(0)
    model = DistributedDataParallel(Branches())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for batch in batches(1):
        model(batch, "one").square().mean().backward()
        optimizer.step()


class CheckpointedFirst(nn.Module):
    """A network whose first layer a re-entrant checkpoint calls, with an input that requires no grad."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(4, 6), nn.Linear(6, 2)

    def forward(self, x: torch.Tensor) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PyTorch says that the gradients will be None
            return self.last(checkpoint(self.first, x, use_reentrant=True))


@program
def checkpoint_without_gradients() -> None:
    torch.manual_seed(0)
    train(DistributedDataParallel(CheckpointedFirst()), steps=1)  # the second would raise


@program
def other_learning_rate() -> None:
    train(DistributedDataParallel(layers()), lr=0.1 * (1 + rank()))


@program
def loaded_on_one_rank() -> None:
    model = DistributedDataParallel(layers())
    if rank() == 0:
        model.module.load_state_dict(layers(seed=5).state_dict())
    train(model)


@program
def stepped_on_one_rank() -> None:
    model = DistributedDataParallel(layers())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for batch in batches():
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        if rank() == 0:
            optimizer.step()


@program
def step_left_out_on_one_rank() -> None:
    model = DistributedDataParallel(layers())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for number, batch in enumerate(batches()):
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        if not (rank() == 1 and number == 2):
            optimizer.step()


@program
def skipped_micro_batch() -> None:
    model = DistributedDataParallel(layers())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for number, batch in enumerate(batches(6)):
        last = number % 2 == 1
        with nullcontext() if last else model.no_sync():
            loss = model(batch * float("nan") if rank() == 1 and number == 3 else batch).square().mean()
            if not loss.isfinite():
                continue
            loss.backward()
        if last:
            optimizer.step()
            optimizer.zero_grad()


@program
def scaled_on_each_rank() -> None:
    model = DistributedDataParallel(layers())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for batch in batches():
        optimizer.zero_grad()
        loss = model(batch).square().mean()
        loss.backward()
        for parameter in model.parameters():
            parameter.grad *= 1 / (1 + loss.item())
        optimizer.step()


@program
def left_out_of_the_reduction() -> None:
    model = layers()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for batch in batches():
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        reduce_by_hand(list(model.parameters())[:-1])
        optimizer.step()


@program
def other_weight_decay() -> None:
    model = DistributedDataParallel(layers())
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1, weight_decay=0.5 if rank() == 1 else 0.25)
    for batch in batches():
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()


class Scaled(nn.Module):
    """A network whose result is scaled, once somebody gives it what by."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = layers()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.inner(x) * getattr(self, "scale", 1.0)
        return found


@program
def added_after_wrapping() -> None:
    model = Scaled()
    wrapped = DistributedDataParallel(model)
    model.scale = nn.Parameter(torch.ones(()))
    train(wrapped)


@program
def unfrozen_after_wrapping() -> None:
    model = layers()
    model[0].requires_grad_(False)
    wrapped = DistributedDataParallel(model)
    model[0].weight.requires_grad_(True)
    train(wrapped)


@program
def not_in_one_optimizer() -> None:
    model = DistributedDataParallel(layers())
    parameters = list(model.parameters())
    train(model, parameters=parameters[:-1] if rank() == 1 else parameters)


@program
def clamped_on_one_rank() -> None:
    model = DistributedDataParallel(layers())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for number, batch in enumerate(batches()):
        if rank() == 1 and number == 2:
            with torch.no_grad():
                model.module[0].weight.clamp_(-0.01, 0.01)
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()


# --- healthy ---


@program
def plain() -> None:
    train(DistributedDataParallel(layers()))


@program
def accumulation() -> None:
    model = DistributedDataParallel(layers())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for batch in batches():
        optimizer.zero_grad()
        with model.no_sync():
            model(batch).square().mean().backward()
        model(batch + 1).square().mean().backward()
        optimizer.step()


@program
def accumulation_of_branches() -> None:
    accumulate_branches(find_unused=True, steps=4)


@program
def unequal_batches() -> None:
    model = DistributedDataParallel(layers())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):
        with Join([model]):
            for batch in batches(5 - 2 * rank()):
                optimizer.zero_grad()
                model(batch).square().mean().backward()
                optimizer.step()


@program
def checkpointed() -> None:
    model = layers()
    wrapped = DistributedDataParallel(Checkpointed(model))
    train(wrapped)


class Checkpointed(nn.Module):
    """A network that is computed again in backward."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: torch.Tensor) -> Any:
        return checkpoint(self.inner, x, use_reentrant=False)


@program
def averaged_weights() -> None:
    model = DistributedDataParallel(layers())
    average = torch.optim.swa_utils.AveragedModel(model.module)
    optimizer = torch.optim.AdamW(model.parameters())
    for batch in batches():
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()
        average.update_parameters(model.module)
        if rank() == 0:
            average(batch)


def loss_of(model: nn.Module, batch: torch.Tensor) -> torch.Tensor:
    """Return a loss; one line calls all models."""
    return model(batch).square().mean()


@program
def evaluated_on_one_rank() -> None:
    model = DistributedDataParallel(layers())
    average = torch.optim.swa_utils.AveragedModel(model.module)
    optimizer = torch.optim.AdamW(model.parameters())
    for batch in batches():
        optimizer.zero_grad()
        loss_of(model, batch).backward()
        optimizer.step()
        average.update_parameters(model.module)
        for looked_at in (average, model.module, average) if rank() == 0 else ():
            loss_of(looked_at, batch)
            with torch.no_grad():
                loss_of(model, batch)


@program
def discriminator_every_second_iteration() -> None:
    generator, discriminator = DistributedDataParallel(layers()), DistributedDataParallel(nn.Linear(2, 1))
    optimizers = [torch.optim.Adam(model.parameters()) for model in (generator, discriminator)]
    for number, batch in enumerate(batches()):
        fake = generator(batch)
        loss = discriminator(fake.detach()).square().mean() + discriminator(torch.ones(5, 2)).mean()
        if number % 2 == 0:
            optimizers[1].zero_grad()
            loss.backward()
            optimizers[1].step()
        optimizers[0].zero_grad()
        discriminator(fake).mean().neg().backward()
        optimizers[0].step()


@program
def gradients_logged_on_one_rank() -> None:
    model = DistributedDataParallel(layers())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for batch in batches():
        optimizer.zero_grad()
        loss = loss_of(model, batch)
        if rank() == 0:
            torch.autograd.grad(loss, list(model.parameters()), retain_graph=True)
        loss.backward()
        if rank() == 0:
            torch.autograd.grad(loss_of(model.module, batch), list(model.parameters()))
        optimizer.step()


@program
def probe_on_one_rank() -> None:
    model = DistributedDataParallel(layers(nn.BatchNorm1d(6)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    if rank() == 0:
        probe = nn.Linear(4, 2)
        aside = torch.optim.SGD(probe.parameters(), lr=0.1)
    for number, batch in enumerate(batches()):
        if rank() == 0 and number % 2 == 0:
            aside.zero_grad()
            probe(batch).square().mean().backward()
            aside.step()
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()


@program
def batch_norm() -> None:
    train(DistributedDataParallel(layers(nn.BatchNorm1d(6))))


@program
def dropout() -> None:
    train(DistributedDataParallel(layers(nn.Dropout())))


@program
def other_branches() -> None:
    torch.manual_seed(0)
    model = DistributedDataParallel(Branches(), find_unused_parameters=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for batch in batches():
        optimizer.zero_grad()
        model(batch, "one" if rank() == 0 else "two").square().mean().backward()
        optimizer.step()


@program
def two_networks() -> None:
    one, two = DistributedDataParallel(layers()), DistributedDataParallel(layers(seed=1))
    first = torch.optim.SGD(one.parameters(), lr=0.1)
    second = torch.optim.Adam(two.parameters(), lr=0.1)
    for batch in batches():
        for network, optimizer in ((one, first), (two, second)):
            optimizer.zero_grad()
            network(batch).square().mean().backward()
            optimizer.step()


@program
def state_spread_over_ranks() -> None:
    model = DistributedDataParallel(layers())
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=0.1)
    for batch in batches():
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()


@program
def skipped_in_turns() -> None:
    model = DistributedDataParallel(layers())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for number, batch in enumerate(batches(5)):
        optimizer.zero_grad()
        loss = model(batch * float("nan") if (rank(), number) in ((1, 1), (0, 3)) else batch).square().mean()
        if not loss.isfinite():
            continue
        loss.backward()
        optimizer.step()


@program
def reduced_by_hand() -> None:
    model = layers()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for batch in batches():
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        reduce_by_hand(model.parameters())
        optimizer.step()


@spread
def sharded() -> None:
    model = layers()
    mesh = init_device_mesh("cpu", (2,))
    for part in (model[0], model[2], model):
        dist.fsdp.fully_shard(part, mesh=mesh)
    train(model)
    assert_that_parts_add_up(model)


def assert_that_parts_add_up(model: nn.Module) -> None:
    """Check that the checksums of all parts of a parameter give that of the whole."""
    for parameter in model.parameters():
        if not part_of(parameter):
            continue
        parts: list[Any] = [None, None]
        dist.all_gather_object(parts, checksums_of([parameter]))
        assert sum(sums[0] for sums, _ in parts) % 2**64 == checksum(parameter.full_tensor().detach().numpy())


@spread
def tensor_parallel() -> None:
    model = layers(nn.LayerNorm(6))
    whole = dist.tensor.Replicate()
    plan = {"0": ColwiseParallel(output_layouts=whole), "3": RowwiseParallel(input_layouts=whole)}
    parallelize_module(model, init_device_mesh("cpu", (2,)), plan)
    torch.manual_seed(3)
    batch = torch.randn(5, 4)  # the same on all ranks
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(4):
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()
    assert part_of(model[0].weight) == f"Shard(0) {rank() + 1} of 2"
    assert part_of(model[3].weight) == f"Shard(1) {rank() + 1} of 2"
    assert_that_parts_add_up(model)


@program
def other_models() -> None:
    train(layers(seed=rank()))


HEALTHY = {
    "plain": 4, "accumulation": 4, "accumulation_of_branches": 4, "unequal_batches": 6, "checkpointed": 4,
    "averaged_weights": 4, "evaluated_on_one_rank": 4, "discriminator_every_second_iteration": 6,
    "gradients_logged_on_one_rank": 4, "probe_on_one_rank": 4, "batch_norm": 4, "dropout": 4, "other_branches": 4,
    "two_networks": 8, "skipped_in_turns": 4, "state_spread_over_ranks": 4, "reduced_by_hand": 4,
}  # fmt: skip
"""Programs of which nothing is to be said, and how many steps are compared."""


def trained(path: str | None) -> list[torch.Tensor]:
    """Return the parameters and buffers of a network that was trained, recorded to `path` or not."""
    model = DistributedDataParallel(layers(nn.BatchNorm1d(6), nn.Dropout()))
    with gi.record(path) if path else nullcontext():
        train(model)
    return [value.clone() for value in model.state_dict().values()]


class Listening(LiveAgreement):
    """Keeps what would end the script, which goes on: the other rank waits for it."""

    told = ""

    def _compare(self, exchange: Any) -> None:
        if not self.told:
            try:
                super()._compare(exchange)
            except RanksDisagreeError as error:
                self.told = str(error)


def main(folder: str) -> None:
    """Run all programs, each recorded into a directory of its name."""
    dist.init_process_group("gloo")
    for name, run in PROGRAMS.items():
        with gi.record(f"{folder}/{name}/"):
            run()
        dist.barrier()
    assert all(map(torch.equal, trained(None), trained(f"{folder}/unchanged/")))
    for name in HEALTHY:
        told: list[str] = []
        with LiveAgreement(own_rank(), told.append) as watch:
            PROGRAMS[name]()
        assert (watch.note, watch.steps) == ("", HEALTHY[name] if rank() else 0), (name, watch.note, watch.steps)
        assert not told or name == "skipped_in_turns", (name, told)
        dist.barrier()
    for name in sorted(PROGRAMS.keys() - HEALTHY.keys() - {"other_models"}):
        with Listening(own_rank()) as listening:
            PROGRAMS[name]()
        if rank() == 1:
            Path(folder, name, "live.txt").write_text(listening.told)
        dist.barrier()
    told = []
    with LiveAgreement(own_rank(), told.append):
        skipped_in_turns()
    if rank() == 1:
        Path(folder, "skipped_in_turns", "live.txt").write_text("\n".join(told))
    with LiveAgreement(own_rank()) as watch:
        other_models()
    assert bool(watch.note) == (rank() == 1)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1])
