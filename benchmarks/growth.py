"""How time grows with what a program is made of: measured curve by curve, and drawn as one SVG file each.

    python benchmarks/run.py --plots          # docs/images/growth-*.svg

Each curve is a workload with a size. Both libraries run it in the same process, one after the other at each size; a
point is the median of its runs. :data:`CURVES` has them all.
"""

from __future__ import annotations

import gc
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from measuring import COLUMNS, ask, block, chain_of_nodes, load, wait_for_background
from workloads.case import Work, nothing
from workloads.macro import forward_and_backward, gpt_step, mlp_step, normal
from workloads.micro import operators_on_16

__all__ = ["CURVES", "IMAGES", "draw", "measure_curve", "measure_growth", "slow_threads"]

IMAGES = Path(__file__).parents[1] / "docs" / "images"
COLORS = {"fast": "#1b7f5c", "numpy": "#7cc5a8", "baseline": "#d1663d"}
SPEEDUP_TARGET, LARGE = 1.5, 1_000_000  # of two threads, from so many elements on
SECONDS = 0.1  # about what a point gets in each library

CURVES: dict[str, Curve] = {}


@dataclass(frozen=True)
class Curve:
    """A workload with a size.

    Parameters
    ----------
    key : str
        What its file is named after.
    title, size : str
        What is measured, and what its size counts.
    sizes : tuple of int
        The sizes it is measured at.
    build : callable
        Takes the module and a size, returns ``prepare`` and ``body`` of :class:`workloads.case.Case`.
    kernels : bool
        Whether it meets compiled kernels, so that there is a line with them and one without.
    threads : bool
        Whether what is told is the wall-clock speed-up of two threads, instead of the CPU time of one.
    """

    key: str
    title: str
    size: str
    sizes: tuple[int, ...]
    build: Callable[[Any, int], Work]
    kernels: bool = False
    threads: bool = False


def curve(title: str, size: str, sizes: tuple[int, ...], **meaning: bool) -> Callable[[Any], Any]:
    """Enter the decorated function in :data:`CURVES` under its name."""

    def enter(build: Callable[[Any, int], Work]) -> Callable[[Any, int], Work]:
        CURVES[build.__name__] = Curve(build.__name__, title, size, sizes, build, **meaning)
        return build

    return enter


@curve("Operators in a row on 16 elements, forward and backward", "operators", (4, 20, 100, 500, 2500, 10_000))
def operators(lib: Any, count: int) -> Work:
    return operators_on_16(lib, count)


@curve("gelu, forward and backward", "elements", (16, 256, 4096, 65_536, 1_048_576, 8_388_608), kernels=True)
def elements(lib: Any, count: int) -> Work:
    return forward_and_backward(lib.nn.functional.gelu, normal(lib, count, requires_grad=True))


@curve("Training step of an MLP 784-256-128-10", "images in a batch", (1, 4, 16, 64, 256, 1024))
def batch(lib: Any, count: int) -> Work:
    return mlp_step(lib, count)


@curve(
    "Training step of a GPT, 2 layers of 128, batch 2",
    "characters in a sequence",
    (16, 32, 64, 128, 256, 512),
    kernels=True,
)
def length(lib: Any, count: int) -> Work:
    return gpt_step(lib, layers=2, width=128, heads=4, batch=2, length=count)


@curve("A chain of sigmoids: built, run backward and freed", "nodes", (100, 1000, 10_000, 100_000, 1_000_000))
def nodes(lib: Any, count: int) -> Work:
    def body(prepared: None) -> None:
        chain_of_nodes(lib, count).backward()

    return nothing, body


@curve(
    "gelu, softmax and layer_norm, forward and backward",
    "elements",
    (4096, 65_536, 1_048_576, 4_194_304),
    kernels=True,
    threads=True,
)
def threads(lib: Any, count: int) -> Work:
    functional = lib.nn.functional

    def layers(x: Any) -> Any:
        return functional.layer_norm(functional.softmax(functional.gelu(x), dim=-1), (256,))

    return forward_and_backward(layers, normal(lib, count // 256, 256, requires_grad=True))


@curve(
    "add, mul, exp, tanh and a sum, forward and backward",
    "elements",
    (4096, 65_536, 1_048_576, 4_194_304),
    threads=True,
)
def arithmetic(lib: Any, count: int) -> Work:
    y = normal(lib, count)

    def layers(x: Any) -> Any:
        return (x * y + x).exp().tanh().sum()

    return forward_and_backward(layers, normal(lib, count, requires_grad=True))


# --- in the measuring process -----------------------------------------------------------------------------------------


def measure_growth(order: dict[str, Any]) -> dict[str, list[list[float]]]:
    """Return the points of a curve in both libraries: seconds, or the speed-up of two threads."""
    names = {"candidate": order["candidate"], "baseline": order["baseline"]}
    libs = {side: load(name, order["threads"]) for side, name in names.items()}
    drawn = CURVES[order["curve"]]
    print(f"{COLUMNS[order['column']].title}: {drawn.title}", file=sys.stderr)
    point = speedup if drawn.threads else cpu_seconds
    found: dict[str, list[list[float]]] = {side: [] for side in libs}
    gc.collect()
    gc.freeze()  # what the imports left is no part of the graphs that the collector walks
    for size in drawn.sizes:
        for side, lib in libs.items():
            found[side].append([size, point(lib, drawn, size)])
            gc.collect()
    return found


def cpu_seconds(lib: Any, drawn: Curve, size: int) -> float:
    """Return the CPU time of a run: the median of some, or of the one where it takes seconds."""
    work = drawn.build(lib, size)
    first = block(work, 1, time.process_time)
    if first > 10 * SECONDS:
        return first
    wait_for_background()
    warm = block(work, 2, time.process_time)
    runs = max(1, min(200, round(SECONDS / 5 / max(warm, 1e-6))))
    return statistics.median(block(work, runs, time.process_time) for _ in range(5))


def speedup(lib: Any, drawn: Curve, size: int) -> float:
    """Return how many times as fast two threads are as one: the best of some turns, as others use the machine too."""
    work = drawn.build(lib, size)
    block(work, 2, time.perf_counter)
    wait_for_background()
    times: dict[int, list[float]] = {1: [], 2: []}
    for _ in range(7):
        for count in times:
            lib.set_num_threads(count)
            times[count].append(block(work, 2, time.perf_counter))
    return min(times[1]) / min(times[2])


# --- in the process that the user started -----------------------------------------------------------------------------


def measure_curve(key: str, columns: list[str], **settings: Any) -> dict[str, list[list[float]]]:
    """Return the lines of a plot: one of the candidate for each column, and the baseline's."""
    lines: dict[str, list[list[float]]] = {}
    for name in columns if CURVES[key].kernels else columns[:1]:
        column = replace(COLUMNS[name], threads=2) if CURVES[key].threads else COLUMNS[name]
        found = ask("growth", column, column=name, curve=key, **settings)
        lines[name] = found["candidate"]
        lines.setdefault("baseline", found["baseline"])
    return lines


def slow_threads(curves: dict[str, Any]) -> list[str]:
    """Return a line for each large size at which two threads are not as fast as they are wanted."""
    return [
        f"threads, {COLUMNS[name].title}: {speedup:.2f} times as fast with two at {size:,} elements, wanted at least "
        f"{SPEEDUP_TARGET}"
        for key, lines in curves.items()
        if CURVES[key].threads
        for name, points in lines.items()
        if name != "baseline"
        for size, speedup in points
        if size >= LARGE and speedup < SPEEDUP_TARGET
    ]


def draw(key: str, lines: dict[str, list[list[float]]], candidate: str, baseline: str) -> Path:
    """Draw a curve as an SVG file of some kilobytes, its text as text, and return where it is."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": key, "font.size": 9})
    from matplotlib import pyplot

    drawn = CURVES[key]
    figure, axes = pyplot.subplots(figsize=(5, 3.2), layout="constrained")
    names = {"fast": f"{candidate} with fast", "numpy": f"{candidate}, NumPy alone", "baseline": baseline}
    for name, points in lines.items():
        label = names[name] if drawn.kernels or name == "baseline" else candidate
        axes.plot(*zip(*points), marker="o", markersize=3, linewidth=1.4, color=COLORS[name], label=label)
    axes.set(title=drawn.title, xlabel=drawn.size, xscale="log")
    if drawn.threads:
        axes.set(ylabel="two threads : one, wall clock", ylim=(0, 2.1))
        axes.axhline(1, color="#999999", linewidth=0.8)
    else:
        axes.set(ylabel="CPU seconds, one thread", yscale="log")
    axes.title.set_fontsize(10)
    axes.set_xticks(drawn.sizes, [short(size) for size in drawn.sizes])
    axes.minorticks_off()
    axes.grid(color="#dddddd", linewidth=0.5)
    axes.legend(frameon=False)
    path = IMAGES / f"growth-{key}.svg"
    figure.savefig(path, metadata={"Date": None, "Creator": None})
    pyplot.close(figure)
    return path


def short(size: int) -> str:
    """Return a size as it stands below an axis.

    >>> [short(size) for size in (16, 4096, 10_000, 1_048_576)]
    ['16', '4k', '10k', '1M']
    """
    for unit, letter in ((1_000_000, "M"), (1000, "k")):
        if size >= unit:
            return f"{size / unit:.0f}{letter}"
    return str(size)
