"""What is measured. Each case is written once, for a module that speaks PyTorch's API, and runs on every such module.

A case is a function that takes the module and returns a pair of functions: ``prepare()`` makes what one run needs and
is not timed; ``body(prepared)`` is timed. A body does its work `operations` times over, so that the clock and the call
cost nothing against it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["CASES", "MEMORY_TARGET", "Case", "chain_of_nodes"]

Work = tuple[Callable[[], Any], Callable[[Any], Any]]

CASES: dict[str, Case] = {}

MEMORY_TARGET = 1536
"""Bytes a node that :func:`chain_of_nodes` may take at its peak, beyond the arrays' data."""


@dataclass(frozen=True)
class Case:
    """One line of the table.

    Parameters
    ----------
    key : str
        What ``--only`` matches.
    title : str
        What is measured, in words.
    target : float
        The ratio to PyTorch that is wanted at most.
    operations : int
        How often a body repeats what is measured.
    build : callable
        Takes the module, returns ``prepare`` and ``body``.
    """

    key: str
    title: str
    target: float
    operations: int
    build: Callable[[Any], Work]


def case(title: str, *, target: float, operations: int = 1) -> Callable[[Callable[[Any], Work]], Callable[[Any], Work]]:
    """Enter the decorated function in :data:`CASES` under its name."""

    def enter(build: Callable[[Any], Work]) -> Callable[[Any], Work]:
        key = build.__name__.replace("_", "-")
        CASES[key] = Case(key, title, target, operations, build)
        return build

    return enter


def nothing() -> None:
    """Prepare nothing."""


@case("recorded `a * b`, 8×8", target=0.6, operations=1000)
def recorded_mul(lib: Any) -> Work:
    rng = np.random.default_rng(0)
    a = lib.tensor(rng.random((8, 8), dtype=np.float32), requires_grad=True)
    b = lib.tensor(rng.random((8, 8), dtype=np.float32), requires_grad=True)

    def body(prepared: None) -> Any:
        for _ in range(1000):
            product = a * b
        return product

    return nothing, body


@case("chain of 1,000 operators on 16 elements, forward and backward", target=0.7)
def chain(lib: Any) -> Work:
    rng = np.random.default_rng(0)
    x = lib.tensor(rng.random(16, dtype=np.float32), requires_grad=True)
    factor, summand, shift = (lib.tensor(rng.random(16, dtype=np.float32)) for _ in range(3))

    def body(prepared: None) -> None:
        x.grad = None
        y = x
        for _ in range(250):
            y = y * factor
            y = y + summand
            y = y.tanh()
            y = y - shift
        y.sum().backward()

    return nothing, body


@case("backward of one node", target=0.3, operations=200)
def one_node(lib: Any) -> Work:
    x = lib.tensor(2.0, requires_grad=True)
    factor = lib.tensor(3.0)

    def prepare() -> list[Any]:
        return [x * factor for _ in range(200)]

    def body(products: list[Any]) -> None:
        for product in products:
            product.backward()

    return prepare, body


@case("backward of a tree of 10,000 adds", target=1.0)
def tree(lib: Any) -> Work:
    seed = lib.ones(16)

    def prepare() -> Any:
        level = [lib.ones(16, requires_grad=True) for _ in range(10_001)]
        while len(level) > 1:
            odd = level[-1:] if len(level) % 2 else []
            level = [left + right for left, right in zip(level[::2], level[1::2], strict=False)] + odd
        return level[0]

    def body(root: Any) -> None:
        root.backward(seed)

    return prepare, body


@case("training step of an MLP 784-256-128-10, batch of 64", target=0.9)
def mlp_step(lib: Any) -> Work:
    rng = np.random.default_rng(0)
    images = lib.tensor(rng.random((64, 784), dtype=np.float32))
    labels = lib.tensor(rng.integers(10, size=64))
    lib.manual_seed(0)
    model = lib.nn.Sequential(
        lib.nn.Linear(784, 256),
        lib.nn.ReLU(),
        lib.nn.Linear(256, 128),
        lib.nn.ReLU(),
        lib.nn.Linear(128, 10),
    )
    criterion = lib.nn.CrossEntropyLoss()
    optimizer = lib.optim.SGD(model.parameters(), lr=0.01)

    def body(prepared: None) -> None:
        loss = criterion(model(images), labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    return nothing, body


@case("lgamma, digamma and erfinv of 100,000 float64", target=1.5)
def special_functions(lib: Any) -> Work:
    x = lib.tensor(np.random.default_rng(0).uniform(0.01, 0.99, 100_000))

    def body(prepared: None) -> Any:
        return lib.lgamma(x), lib.digamma(x), lib.erfinv(x)

    return nothing, body


@case("LU factors of a 256×256 matrix, and 64 solutions", target=1.2)
def linear_equations(lib: Any) -> Work:
    rng = np.random.default_rng(0)
    matrix = lib.tensor(rng.standard_normal((256, 256)))
    right = lib.tensor(rng.standard_normal((256, 64)))

    def body(prepared: None) -> Any:
        factors, pivots = lib.linalg.lu_factor(matrix)
        return lib.linalg.lu_solve(factors, pivots, right)

    return nothing, body


def chain_of_nodes(lib: Any, nodes: int) -> Any:
    """Return the end of a chain of `nodes` nodes, each of which saves its result: an array of one float32."""
    y = lib.ones(1, requires_grad=True)
    for _ in range(nodes):
        y = y.sigmoid()
    return y
