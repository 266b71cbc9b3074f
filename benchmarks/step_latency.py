"""What a step of the debugger takes, in this process and over the wire: ``python benchmarks/step_latency.py``.

A step is what a front does for one key: the verb, the wait for the stop, the record of the node, and all that is known
of it. The program is a chain of as many nodes as ``--nodes`` says. The two run side by side; figures are milliseconds
on the wall, since most of a step is waiting for another thread or process.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from gradscope.inspect import Debugger
from gradscope.inspect.records.object_search import setting_aside
from gradscope.inspect.wire.program_process import ProgramProcess

SCRIPT = """\
import gradscope as gs
x = gs.ones(10, requires_grad=True)
y = x
for _ in range({rounds}):
    y = y * 1.0 + 0.0
y.sum().backward()
"""
WARM_UP = 20


def step(debugger: Any) -> float:
    """Return the milliseconds that one step takes."""
    began = time.perf_counter()
    debugger.step()
    debugger.wait(30)
    debugger.nodes[debugger.current]
    debugger.inspect(debugger.current)
    return (time.perf_counter() - began) * 1e3


def measure(nodes: int, steps: int) -> dict[str, list[float]]:
    """Return the milliseconds of steps in a chain of so many nodes, in this process and over the wire, in turns."""
    source = SCRIPT.format(rounds=nodes // 2)
    taken: dict[str, list[float]] = {"in this process": [], "over the wire": []}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "chain.py")
        path.write_text(source)
        process = ProgramProcess([str(path)], terminal=False)
        here, there = Debugger.for_call(lambda: exec(compile(source, str(path), "exec"), {})), process.debugger
        for debugger in (here, there):
            debugger.start()
            debugger.wait(120)
        with setting_aside():  # as a front does
            for index in range(WARM_UP + steps):
                for values, debugger in zip(taken.values(), (here, there)):
                    milliseconds = step(debugger)
                    if index >= WARM_UP:
                        values.append(milliseconds)
        for debugger in (here, there):
            debugger.abort()
            debugger.wait(30)
        process.end()
    return taken


def at_99(values: list[float]) -> float:
    """Return the 99th percentile."""
    return statistics.quantiles(values, n=100)[98]


def main() -> None:
    """Print the median and the 99th percentile of both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=100_000)
    parser.add_argument("--steps", type=int, default=300)
    args = parser.parse_args()
    taken = measure(args.nodes, args.steps)
    print(f"{'':16}{'median':>10}{'99 %':>10}   ({args.nodes:,} nodes, {args.steps} steps, ms)")
    for name, values in taken.items():
        print(f"{name:16}{statistics.median(values):10.2f}{at_99(values):10.2f}")


if __name__ == "__main__":
    main()
