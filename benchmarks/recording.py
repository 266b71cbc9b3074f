"""What recording costs: a character-GPT training step and tiny operators, recorded and plain, in gradscope and PyTorch.

Run it as ``python benchmarks/recording.py``. Plain and recorded stretches take turns; a ratio is the median of theirs,
with the quartiles in parentheses. Wanted are at most 2.0 for the GPT step (2 layers, d = 128) and 3.0 for tiny
operators, with ``keep="summaries"``. Set ``OPENBLAS_NUM_THREADS=1``, as PyTorch is held to one thread too.
"""

from __future__ import annotations

import argparse
import importlib
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from typing import Any

import gradscope.inspect as gi

BATCH, LENGTH, WIDTH, HEADS, LAYERS, VOCABULARY = 8, 64, 128, 4, 2, 65


def gpt_step(framework: Any) -> Callable[[], Any]:
    """Return a training step of a character GPT, written once for both frameworks."""
    nn, functional = framework.nn, framework.nn.functional
    framework.manual_seed(0)
    mask = framework.tensor([[column > row for column in range(LENGTH)] for row in range(LENGTH)])

    class Block(nn.Module):
        """Attention and a two-layer perceptron, each behind a layer norm."""

        def __init__(self) -> None:
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
            self.attention, self.project = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
            self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

        def forward(self, x: Any) -> Any:
            heads = self.attention(self.norm1(x)).view(BATCH, LENGTH, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
            query, key, value = heads[0], heads[1], heads[2]
            scores = (query @ key.transpose(-2, -1)) * (WIDTH // HEADS) ** -0.5
            weights = functional.softmax(scores.masked_fill(mask, float("-inf")), dim=-1)
            mixed = (weights @ value).transpose(1, 2).reshape(BATCH, LENGTH, WIDTH)
            x = x + self.project(mixed)
            return x + self.down(functional.gelu(self.up(self.norm2(x))))

    class Model(nn.Module):
        """The characters in, their successors out."""

        def __init__(self) -> None:
            super().__init__()
            self.characters, self.places = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(LENGTH, WIDTH)
            self.blocks = nn.ModuleList([Block() for _ in range(LAYERS)])
            self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY)

        def forward(self, text: Any) -> Any:
            x = self.characters(text) + self.places(framework.arange(LENGTH))
            for block in self.blocks:
                x = block(x)
            return self.head(self.norm(x))

    model = Model()
    optimizer = framework.optim.SGD(model.parameters(), lr=0.01)
    text = framework.randint(0, VOCABULARY, (BATCH, LENGTH))
    following = framework.randint(0, VOCABULARY, (BATCH * LENGTH,))

    def step() -> Any:
        loss = functional.cross_entropy(model(text).reshape(BATCH * LENGTH, VOCABULARY), following)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


def tiny_step(framework: Any) -> Callable[[], Any]:
    """Return 200 operators on ten numbers each, and their backward."""
    x = framework.ones(10, requires_grad=True)

    def step() -> Any:
        y = x
        for _ in range(100):
            y = framework.sin(y) * 1.001
        y.sum().backward()

    return step


CASES = {"gpt": (gpt_step, 2.0), "tiny": (tiny_step, 3.0)}


_STRETCH = 0.25  # seconds, about, of plain steps that are measured in a row: several commits

Times = tuple[float, float]  # on the wall, and of all threads on the processor


def compare(step: Callable[[], Any], keep: str, seconds: float) -> list[tuple[Times, Times]]:
    """Return the times of a step, plain and recorded, of stretches that were measured in turns."""
    pairs: list[tuple[Times, Times]] = []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(3):
            step()
        end = time.perf_counter() + seconds
        while time.perf_counter() < end or len(pairs) < 3:
            times = max(8, int(_STRETCH / _timed(step)[0]))
            plain = _timed(step, times)
            with gi.record(os.path.join(folder, "run.gscope"), keep=keep) as recorder:
                step()  # Everything new is described once.
                recorder.flush()
                pairs.append((plain, _timed(step, times, recorder.flush)))
    return pairs


def _timed(step: Callable[[], Any], times: int = 1, finish: Callable[[], Any] = lambda: None) -> Times:
    """Return the time of a step, with its share of what is still to be written at the end."""
    wall, processor = time.perf_counter(), time.process_time()
    for _ in range(times):
        step()
    finish()
    return (time.perf_counter() - wall) / times, (time.process_time() - processor) / times


def _told(pairs: list[tuple[Times, Times]], clock: int) -> str:
    """Return the median of the stretches' ratios on one of the two clocks, and the quartiles."""
    low, middle, high = statistics.quantiles([after[clock] / before[clock] for before, after in pairs], n=4)
    return f"{middle:.2f} ({low:.2f}-{high:.2f})"


def main() -> None:
    """Print a line for each framework and case."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keep", default="summaries", help="what to keep (default: summaries)")
    parser.add_argument("--seconds", type=float, default=5.0, help="time for each line (default 5)")
    parser.add_argument("--case", choices=CASES, help="only this")
    parser.add_argument("--framework", choices=("gradscope", "torch"), help="only this")
    options = parser.parse_args()
    for name in ("gradscope", "torch"):
        if options.framework not in (None, name):
            continue
        try:
            framework = importlib.import_module(name)
        except ImportError:
            print(f"{name:<10} not installed")
            continue
        if name == "torch":
            framework.set_num_threads(1)
        for case, (make, wanted) in CASES.items():
            if options.case in (None, case):
                pairs = compare(make(framework), options.keep, options.seconds)
                plain, recorded = (statistics.median(pair[i][0] for pair in pairs) for i in range(2))
                print(
                    f"{name:<10} {case:<5} plain {plain * 1e3:8.2f} ms  recorded {recorded * 1e3:8.2f} ms  "
                    f"ratio {_told(pairs, 0)}, of processor time {_told(pairs, 1)}  (wanted: {wanted:.1f})"
                )


if __name__ == "__main__":
    main()
