"""Train a small multilayer perceptron on real handwritten digits.

    python examples/digits_mlp.py
    gradscope debug examples/digits_mlp.py

The data are the 1,797 8x8 images of ``examples/data`` (see the README there). 397 of them,
chosen at random but always the same, are kept for testing.
"""

import argparse
from pathlib import Path

import numpy as np

import gradscope as gs

DATA = Path(__file__).parent / "data" / "digits.npz"
TEST_IMAGES = 397


def load_digits():
    """Return training images and labels, test images and labels, as NumPy arrays."""
    with np.load(DATA) as digits:
        images = digits["images"].astype(np.float32) / 8 - 1  # 0..16 becomes -1..1
        labels = digits["labels"].astype(np.int64)
    order = np.random.default_rng(0).permutation(len(images))
    train, test = order[:-TEST_IMAGES], order[-TEST_IMAGES:]
    return images[train], labels[train], images[test], labels[test]


def accuracy(model, images, labels):
    """Return the share of images that the model labels rightly."""
    with gs.no_grad():
        guesses = model(images).argmax(dim=1)
    return (guesses == labels).sum().item() / len(labels)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=3, help="passes over the training images (default: %(default)s)")
    parser.add_argument("--batch-size", type=int, default=16, help="images per step (default: %(default)s)")
    parser.add_argument("--lr", type=float, default=0.002, help="Adam's learning rate (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="seed of weights and shuffling (default: %(default)s)")
    args = parser.parse_args()

    gs.manual_seed(args.seed)
    shuffler = np.random.default_rng(args.seed)
    images, labels, test_images, test_labels = load_digits()
    test_images, test_labels = gs.from_numpy(test_images), gs.from_numpy(test_labels)

    model = gs.nn.Sequential(
        gs.nn.Linear(64, 128),
        gs.nn.ReLU(),
        gs.nn.Linear(128, 64),
        gs.nn.ReLU(),
        gs.nn.Linear(64, 10),
    )
    criterion = gs.nn.CrossEntropyLoss()
    optimizer = gs.optim.Adam(model.parameters(), lr=args.lr)

    for epoch in range(1, args.epochs + 1):
        total = 0.0
        order = shuffler.permutation(len(images))
        for start in range(0, len(order), args.batch_size):
            rows = order[start : start + args.batch_size]
            scores = model(gs.from_numpy(images[rows]))
            loss = criterion(scores, gs.from_numpy(labels[rows]))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(rows)
        correct = accuracy(model, test_images, test_labels)
        print(f"epoch {epoch}: loss {total / len(order):.4f}, test accuracy {correct:.1%}")


if __name__ == "__main__":
    main()
