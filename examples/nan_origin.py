"""A NaN that the loss does not show: where it is produced, out of what, and what sent the zero.

    python examples/nan_origin.py

The distance of a point to itself is masked out, so the loss is clean; its derivative is not.
"""

import gradscope as gs
import gradscope.inspect as gi


def repulsion(points: gs.Tensor) -> gs.Tensor:
    """Return how strongly points repel each other; a point does not repel itself."""
    offsets = points.unsqueeze(0) - points.unsqueeze(1)
    distance = (offsets**2).sum(2).sqrt()
    apart = gs.where(distance > 0, 1 / (1 + distance), gs.zeros_like(distance))
    return apart.sum()


def main() -> None:
    gs.manual_seed(0)
    points = gs.randn(4, 2, requires_grad=True)
    with gi.watch_nan() as watch:
        loss = repulsion(points)
        loss.backward()
    print(f"loss {loss.item():.4f}, gradient {points.grad[0].tolist()}\n")
    print(watch.origin)


if __name__ == "__main__":
    main()
