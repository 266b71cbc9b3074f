"""Train from a DataLoader, save a checkpoint, load it, and go on to the same numbers.

    python examples/resume_training.py
    python examples/resume_training.py --workers 2

One run goes through all epochs. Another is saved after the first epochs and goes on in a model, an
optimizer and a loader of its own, which know nothing but the file. Their losses are the same.
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np

import gradscope as gs
from gradscope.utils.data import DataLoader, TensorDataset

DATA = Path(__file__).parent / "data" / "digits.npz"


class Training:
    """A model, its optimizer and its loader."""

    def __init__(self, args):
        with np.load(DATA) as digits:
            images = gs.from_numpy(digits["images"].astype(np.float32) / 8 - 1)  # 0..16 becomes -1..1
            labels = gs.from_numpy(digits["labels"].astype(np.int64))
        self.model = gs.nn.Sequential(gs.nn.Linear(64, 64), gs.nn.ReLU(), gs.nn.Dropout(0.1), gs.nn.Linear(64, 10))
        self.optimizer = gs.optim.Adam(self.model.parameters(), lr=0.005)
        self.loader = DataLoader(TensorDataset(images, labels), 64, shuffle=True, num_workers=args.workers)

    def epoch(self):
        """Return the mean loss of one pass over the images."""
        total = 0.0
        for images, labels in self.loader:
            loss = gs.nn.functional.cross_entropy(self.model(images), labels)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            total += loss.item() * len(labels)
        return total / len(self.loader.dataset)

    def save(self, path):
        """Write all that the next epoch depends on: the order of the images and dropout are random."""
        model, optimizer = self.model.state_dict(), self.optimizer.state_dict()
        gs.save({"model": model, "optimizer": optimizer, "random": gs.get_rng_state()}, path)

    def load(self, path):
        checkpoint = gs.load(path)
        self.model.load_state_dict(checkpoint["model"])
        self.optimizer.load_state_dict(checkpoint["optimizer"])
        gs.set_rng_state(checkpoint["random"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=4, help="passes over the images (default: %(default)s)")
    parser.add_argument("--save-after", type=int, default=2, help="epochs before the checkpoint (default: %(default)s)")
    parser.add_argument("--workers", type=int, default=0, help="processes that fetch batches (default: %(default)s)")
    args = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "checkpoint.pt"
        gs.manual_seed(0)
        training = Training(args)
        losses = []
        for epoch in range(1, args.epochs + 1):
            losses.append(training.epoch())
            print(f"epoch {epoch}: loss {losses[-1]:.6f}")
            if epoch == args.save_after:
                training.save(path)
                print(f"saved: {path.stat().st_size:,} bytes")

        gs.manual_seed(1)  # another start, which the checkpoint replaces
        again = Training(args)
        again.load(path)

    for epoch in range(args.save_after + 1, args.epochs + 1):
        loss = again.epoch()
        verdict = "the same" if loss == losses[epoch - 1] else "another number"
        print(f"epoch {epoch}, resumed: loss {loss:.6f}: {verdict}")


if __name__ == "__main__":
    main()
