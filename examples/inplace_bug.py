"""Train a residual classifier of digits that has a bug: an in-place addition overwrites what backward needs.

    gradscope check examples/inplace_bug.py             # finds it: saved here, written there, needed there
    gradscope check examples/inplace_bug.py --fixed     # the same training with the bug mended
    python examples/inplace_bug.py                      # only the RuntimeError

sigmoid's derivative is written in terms of sigmoid's *result*, so the result is what its node saves. ``out += skip``
writes into that very tensor; the backward pass finds it at another version and refuses to go on.
"""

import argparse
from pathlib import Path

import numpy as np

import gradscope as gs

DATA = Path(__file__).parent / "data" / "digits.npz"


class ResidualBlock(gs.nn.Module):
    """A layer with a gate, and the input added on top: ``sigmoid(linear(x)) + x``."""

    def __init__(self, width, fixed):
        super().__init__()
        self.linear = gs.nn.Linear(width, width)
        self.fixed = fixed

    def forward(self, x):
        skip = x
        out = gs.sigmoid(self.linear(x))
        if self.fixed:
            return out + skip
        out += skip  # the bug: `out` is what sigmoid saved for its derivative
        return out


class Classifier(gs.nn.Module):
    """Two residual blocks between a linear layer in and a linear layer out."""

    def __init__(self, width=32, fixed=False):
        super().__init__()
        self.stem = gs.nn.Linear(64, width)
        self.blocks = gs.nn.Sequential(ResidualBlock(width, fixed), ResidualBlock(width, fixed))
        self.head = gs.nn.Linear(width, 10)

    def forward(self, x):
        return self.head(self.blocks(self.stem(x)))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fixed", action="store_true", help="add out of place, as it should be")
    parser.add_argument("--steps", type=int, default=50, help="training steps (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the weights (default: %(default)s)")
    args = parser.parse_args()

    gs.manual_seed(args.seed)
    with np.load(DATA) as digits:
        images = digits["images"].astype(np.float32) / 8 - 1
        labels = digits["labels"].astype(np.int64)

    model = Classifier(fixed=args.fixed)
    criterion = gs.nn.CrossEntropyLoss()
    optimizer = gs.optim.SGD(model.parameters(), lr=0.1)
    rows = np.random.default_rng(args.seed)
    for step in range(1, args.steps + 1):
        batch = rows.integers(len(images), size=64)
        loss = criterion(model(gs.from_numpy(images[batch])), gs.from_numpy(labels[batch]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            print(f"step {step}: loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
