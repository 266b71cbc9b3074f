"""How long the model of a graph of 100,000 nodes takes, how much memory, and how long a picture of it.

Run it as ``python benchmarks/graph_model.py``. Wanted: the model in under 2 s and 300 MB, the folded picture in under
1 s. Times are processor time, so that other programs on the machine do not count.
"""

from __future__ import annotations

import argparse
import gc
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import gradscope as gs
import gradscope.inspect as gi


def chain(nodes: int) -> tuple[Any, Any]:
    """Return a loss over a chain of multiplications, and no module."""
    y = gs.ones((), requires_grad=True)
    for _ in range(nodes - 1):
        y = y * 1.0
    return y, None


def mlp(nodes: int) -> tuple[Any, Any]:
    """Return the loss of a network of Linear and ReLU, with modules and lines recorded, and the network."""
    net = gs.nn.Sequential(*(part for _ in range(nodes // 4) for part in (gs.nn.Linear(2, 2), gs.nn.ReLU())))
    with gi.track():
        loss = net(gs.ones(1, 2)).sum()
    return loss, net


def wide(nodes: int) -> tuple[Any, Any]:
    """Return a loss over many branches from one input, and no module."""
    x = gs.ones(2, requires_grad=True)
    branches = [(x * float(i)).tanh() for i in range(nodes // 3)]
    while len(branches) > 1:
        pairs = list(zip(branches[::2], branches[1::2]))
        branches = [a + b for a, b in pairs] + branches[2 * len(pairs) :]
    return branches[0].sum(), None


CASES: dict[str, Callable[[int], tuple[Any, Any]]] = {"chain": chain, "mlp": mlp, "wide": wide}


def seconds(function: Callable[[], Any]) -> tuple[float, Any]:
    """Return the processor time of a call, and its result."""
    start = time.process_time()
    result = function()
    return time.process_time() - start, result


def measure(case: str, nodes: int, *, memory: bool) -> None:
    """Print the measurements of a case; memory in a process of its own, for measuring it takes time."""
    loss, net = CASES[case](nodes)
    gi.graph(gs.ones(1, requires_grad=True))  # what is imported once does not count
    gi.render_graph(gi.graph(gs.ones(1, requires_grad=True)), "svg")
    gc.collect()
    if memory:
        tracemalloc.start()
        model = gi.graph(loss, params=net)
        kept, most = tracemalloc.get_traced_memory()
        print(f"{case:6} {len(model):9,} nodes   memory {kept / 1e6:6.0f} MB, at most {most / 1e6:6.0f} MB")
        return
    model_time, model = seconds(lambda: gi.graph(loss, params=net))
    picture_time, text = seconds(lambda: gi.render_graph(model, "svg"))
    boxes = text.count("gs-box")
    print(
        f"{case:6} {len(model):9,} nodes   model {model_time:5.2f} s   picture of {boxes} boxes {picture_time:5.2f} s"
    )


def main() -> None:
    """Measure every case."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=100_000, help="how large the graphs are (default 100000)")
    parser.add_argument("--case", choices=CASES, help=argparse.SUPPRESS)
    parser.add_argument("--memory", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.case:
        measure(options.case, options.nodes, memory=options.memory)
        return
    for case in CASES:
        for extra in ([], ["--memory"]):
            command = [sys.executable, __file__, "--nodes", str(options.nodes), "--case", case, *extra]
            subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
