"""Measure what an observed training step costs beside a plain one: PyTorch under a debugger that runs free.

    python benchmarks/instruments.py              # the Markdown table
    python benchmarks/instruments.py --check      # exit status 1 where a target is missed

The program is a step of a character-level GPT (2 layers, d=128, batch 8 of 64 characters, AdamW), with one thread. Each
round runs some steps plain and some observed, in alternating order, in the same process and on the same model; a ratio
is the median of the rounds' ratios of CPU time, with their quartiles.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import nn

from gradscope.inspect import Debugger
from gradscope.inspect.adapters import AnyAdapter, Observer
from gradscope.inspect.records.module_tracking import Tracker

ROUNDS, STEPS = 15, 8
WORDS, WIDTH, LENGTH, BATCH = 65, 128, 64, 8
TARGETS = {"debugger, running free": 1.3}


class Block(nn.Module):
    """A layer: attention, then a feed-forward network."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Run it."""
        heads = [part.view(*x.shape[:2], 4, -1).transpose(1, 2) for part in self.qkv(self.norm1(x)).split(WIDTH, 2)]
        attended = nn.functional.scaled_dot_product_attention(*heads, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).reshape(x.shape))
        return x + self.mlp(self.norm2(x))


class CharGPT(nn.Module):
    """A GPT over characters."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.Sequential(Block(), Block())
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WORDS)

    def forward(self, text: torch.Tensor) -> torch.Tensor:
        """Run it."""
        return self.head(self.norm(self.blocks(self.words(text) + self.places(torch.arange(text.shape[1])))))


def make_step() -> Callable[[], None]:
    """Return a function that trains for one step."""
    torch.manual_seed(0)
    model = CharGPT()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    text = torch.randint(0, WORDS, (BATCH, LENGTH + 1))

    def step() -> None:
        logits = model(text[:, :-1])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), text[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


def cpu_time(step: Callable[[], None], context: AbstractContextManager[Any]) -> float:
    """Return the CPU time of some steps inside a context."""
    with context:
        step()
        start = time.process_time()
        for _ in range(STEPS):
            step()
        return time.process_time() - start


def debugged(step: Callable[[], None]) -> float:
    """Return the CPU time of some steps under a debugger that is never asked to stop."""
    took: list[float] = []
    session = Debugger.for_call(lambda: took.append(cpu_time(step, nullcontext())))
    session.cont()
    session.wait()
    if session.error is not None:
        raise session.error
    return took[0]


def ways(step: Callable[[], None]) -> dict[str, Callable[[], float]]:
    """Return what is measured, by name."""
    adapter = AnyAdapter()

    def observed(observer: Observer, **wanted: bool) -> Callable[[], float]:
        return lambda: cpu_time(step, adapter.observe(observer, **wanted))

    return {
        "lines and modules (gi.track)": observed(Tracker(adapter), forward=True, backward=False),
        "every node's hooks": observed(Observer(), forward=False, backward=True),
        "debugger, running free": lambda: debugged(step),
    }


def measure() -> dict[str, tuple[float, float, float]]:
    """Return (lower quartile, median, upper quartile) of the ratio of each way to the plain program."""
    torch.set_num_threads(1)
    step = make_step()
    cpu_time(step, nullcontext())
    ratios: dict[str, list[float]] = {}
    for number in range(ROUNDS):
        for name, way in ways(step).items():
            before = cpu_time(step, nullcontext()) if number % 2 else 0.0
            observed = way()
            ratios.setdefault(name, []).append(observed / (before or cpu_time(step, nullcontext())))
    return {name: tuple(statistics.quantiles(found)) for name, found in ratios.items()}  # type: ignore[misc]


def main() -> int:
    """Print the table; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="exit status 1 where a target is missed")
    args = parser.parse_args()
    results = measure()
    print(f"PyTorch {torch.__version__}, {ROUNDS} rounds of {STEPS} steps\n")
    print("| instrument | time, plain = 1 | quartiles | target |\n|---|---|---|---|")
    for name, (low, middle, high) in results.items():
        print(f"| {name} | {middle:.2f} | {low:.2f} to {high:.2f} | {TARGETS.get(name, '')} |")
    missed = [name for name, target in TARGETS.items() if results[name][1] > target]
    for name in missed:
        print(f"missed: {name}", file=sys.stderr)
    return int(args.check and bool(missed))


if __name__ == "__main__":
    sys.exit(main())
