"""What two threads make of single operators on large tensors: ``python benchmarks/thread_speedups.py``.

Stretches with one thread and with two take turns; a figure is the ratio of the shortest of each, by the wall clock, for
others use the machine too. Each column is a process of its own, which is told its kernels.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from measuring import COLUMNS, load
from workloads.macro import normal

ELEMENTS = (1 << 20, 1 << 21)
WIDTH = 1024
STRETCH, TURNS = 0.004, 12  # seconds that a stretch takes, about, and how many there are of each
WAYS = {
    "`fast`": ("gradscope", COLUMNS["fast"]),
    "`fast`, AVX2": ("gradscope", COLUMNS["fast-avx2"]),
    "NumPy alone": ("gradscope", COLUMNS["numpy"]),
    "torch": ("torch", COLUMNS["fast"]),
}


def operators(lib: Any, elements: int) -> dict[str, Callable[[], Any]]:
    """Return what is measured, by how the tables call it."""
    functional = lib.nn.functional
    x, y, row = normal(lib, elements // WIDTH, WIDTH), normal(lib, elements // WIDTH, WIDTH), normal(lib, WIDTH)
    images = normal(lib, 16, 64, 32, elements // (16 * 64 * 32))
    mask, parameter = x > 0, normal(lib, elements // WIDTH, WIDTH, requires_grad=True)
    parameter.grad = normal(lib, elements // WIDTH, WIDTH)
    norm, adamw = lib.nn.BatchNorm2d(64), lib.optim.AdamW([parameter], lr=1e-6)
    return {
        "`exp`": lambda: x.exp(),
        "`gelu`": lambda: functional.gelu(x),
        "`softmax`": lambda: functional.softmax(x, -1),
        "`layer_norm`": lambda: functional.layer_norm(x, (WIDTH,)),
        "batch norm": lambda: norm(images),
        "a step of AdamW": lambda: adamw.step(),
        "`x * y`": lambda: x * y,
        "`x + row`": lambda: x + row,
        "`x > y`": lambda: x > y,
        "`relu`": lambda: functional.relu(x),
        "`x.add_(y)`": lambda: x.add_(y),
        "`where`": lambda: lib.where(mask, x, y),
        "`sum`": lambda: x.sum(),
        "`max(1)`": lambda: x.max(1),
        "`clone`": lambda: x.clone(),
        "`t().contiguous()`": lambda: x.t().contiguous(),
        "`cat`": lambda: lib.cat([x, y]),
        "`max_pool2d`": lambda: functional.max_pool2d(images, 2),
        "`cumsum`": lambda: x.cumsum(1),
        "`sort`": lambda: x.sort(1),
    }


def speedup(lib: Any, call: Callable[[], Any]) -> tuple[float, float]:
    """Return how many times as fast a call is with two threads as with one, and the seconds of one."""
    times: dict[int, list[float]] = {1: [], 2: []}
    call()
    started = time.perf_counter()
    call()
    calls = max(1, round(STRETCH / (time.perf_counter() - started)))
    for _ in range(TURNS):
        for count, taken in times.items():
            lib.set_num_threads(count)
            call()
            started = time.perf_counter()
            for _ in range(calls):
                call()
            taken.append((time.perf_counter() - started) / calls)
    return min(times[1]) / min(times[2]), min(times[1])


def measure(way: str, elements: int) -> dict[str, tuple[float, float]]:
    """Return the figures of a column, which a process of its own measures."""
    library, column = WAYS[way]
    command = [sys.executable, __file__, "--worker", library, "--elements", str(elements)]
    environment = {**os.environ, **replace(column, threads=2).environment()}
    output = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout
    found: dict[str, tuple[float, float]] = json.loads(output.splitlines()[-1])
    return found


def main() -> None:
    """Print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--elements", nargs="+", type=int, default=ELEMENTS, help="sizes of the tensors")
    parser.add_argument("--worker", metavar="LIBRARY", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        lib = load(args.worker, 2)
        with lib.no_grad():
            calls = operators(lib, args.elements[0])
            print(json.dumps({name: speedup(lib, call) for name, call in calls.items()}))
        return
    found = {(elements, way): measure(way, elements) for elements in args.elements for way in WAYS}
    heads = [f"{elements / (1 << 20):g}M, {way}" for elements, way in found]
    print(f"| two threads : one | {' | '.join(heads)} |\n| --- |{' --: |' * len(heads)}")
    for name in next(iter(found.values())):
        print(f"| {name} | {' | '.join(f'{column[name][0]:.2f}' for column in found.values())} |")


if __name__ == "__main__":
    main()
