"""The program of the tour: a gradient that vanishes, one that is NaN, and one of a tensor that has been written."""

import gradscope as gs
from gradscope import nn


def vanish() -> None:
    """Send a gradient through eight sigmoids, each of which passes on a quarter of it at most."""
    layers = [layer for _ in range(8) for layer in (nn.Linear(8, 8), nn.Sigmoid())]
    model = nn.Sequential(*layers, nn.Linear(8, 1))
    loss = model(gs.randn(4, 8)).pow(2).mean()
    loss.backward()
    print("1: the first layer gets next to nothing")


def divide_by_nothing() -> None:
    """Take the root of a squared distance that is zero: its slope there is infinite, and 0 * inf is NaN."""
    points = gs.zeros(3, 2, requires_grad=True)
    distance = points.pow(2).sum(1).sqrt()
    distance.sum().backward()
    print("2: a NaN, out of an infinity")


def write_what_is_saved() -> None:
    """Add to the result of a sigmoid, of which its derivative is made."""
    hidden = gs.randn(4, requires_grad=True)
    gate = hidden.sigmoid()
    gate += 1
    gate.sum().backward()


if __name__ == "__main__":
    gs.manual_seed(0)
    vanish()
    divide_by_nothing()
    write_what_is_saved()
