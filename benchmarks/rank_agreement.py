"""What `gradscope check --ranks` adds to a step: ``torchrun --nproc-per-node 2 benchmarks/rank_agreement.py``.

Every rank trains a GPT under AdamW with `DistributedDataParallel`, on one thread, some steps without the comparison and
some with it, in turns. A figure is the median over the turns of the ratio of both, in processor time of the rank and
on the wall. Ranks that have no processor of their own wait for each other, which the wall shows. Agreement alone is
what is done before an optimizer's step: checksums, their exchange and comparison. The rest follows modules and
backwards, to tell causes.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from contextlib import nullcontext

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from gradscope.inspect.ranks.live_agreement import LiveAgreement
from gradscope.inspect.records.own_rank import own_rank

_VOCABULARY = 256
_WARMUP = 2  # steps after which a turn is measured: modules are met, and layouts exchanged


class GPT(nn.Module):
    """Token and place embeddings, some layers, and a head."""

    def __init__(self, width: int, layers: int, tokens: int) -> None:
        super().__init__()
        self.token, self.place = nn.Embedding(_VOCABULARY, width), nn.Embedding(tokens, width)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.0, batch_first=True) for _ in range(layers)
        )
        self.head = nn.Linear(width, _VOCABULARY)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return the scores of the next token at each place."""
        hidden = self.token(tokens) + self.place(torch.arange(tokens.shape[1]))
        for layer in self.layers:
            hidden = layer(hidden)
        return self.head(hidden)


class TimedAgreement(LiveAgreement):
    """Counts the processor time of what it does before steps."""

    seconds = 0.0

    def _about_to_step(self, optimizer: torch.optim.Optimizer) -> None:
        before = time.thread_time()
        super()._about_to_step(optimizer)
        self.seconds += time.thread_time() - before


def step_seconds(
    model: nn.Module, optimizer: torch.optim.Optimizer, args: argparse.Namespace, *, compared: bool
) -> tuple[float, float, float]:
    """Return the seconds of a step, of the processor and on the wall, and of the processor for agreement alone."""

    def train(steps: int) -> None:
        for _ in range(steps):
            tokens = torch.randint(_VOCABULARY, (args.batch, args.tokens))
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten()).backward()
            optimizer.step()

    dist.barrier()
    with TimedAgreement(own_rank()) if compared else nullcontext(TimedAgreement) as agreement:
        train(_WARMUP)
        alone, processor, wall = agreement.seconds, time.process_time(), time.perf_counter()
        train(args.steps)
        processor, wall = time.process_time() - processor, time.perf_counter() - wall
        return processor / args.steps, wall / args.steps, (agreement.seconds - alone) / args.steps


def main() -> None:
    """Print, for each rank, what the comparison costs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--steps", type=int, default=10, help="of a turn")
    parser.add_argument("--turns", type=int, default=20)
    args = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = DistributedDataParallel(GPT(args.width, args.layers, args.tokens))
    optimizer = torch.optim.AdamW(model.parameters())
    turns = [
        (step_seconds(model, optimizer, args, compared=False), step_seconds(model, optimizer, args, compared=True))
        for _ in range(args.turns)
    ]
    processor, wall = (statistics.median(with_it[i] / plain[i] for plain, with_it in turns) for i in range(2))
    alone = statistics.median(1 + with_it[2] / plain[0] for plain, with_it in turns)
    plain_ms = statistics.median(plain[0] for plain, _ in turns) * 1e3
    parameters = sum(parameter.numel() for parameter in model.parameters())
    for rank in range(dist.get_world_size()):
        dist.barrier()
        if rank == dist.get_rank():
            print(
                f"rank {rank}: {parameters:,} parameters, a plain step {plain_ms:.1f} ms; compared {processor:.3f} of "
                f"its processor time ({alone:.3f}: agreement alone), {wall:.3f} on the wall; "
                f"load {os.getloadavg()[0]:.1f}",
                flush=True,
            )
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
