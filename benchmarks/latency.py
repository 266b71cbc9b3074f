"""What one waits for under the debugger: ``python benchmarks/latency.py``, and with ``--write`` into docs/latency.md.

    python benchmarks/latency.py --only wire stop   # some of the tables
    python benchmarks/latency.py --quick            # each figure from a tenth of the runs

Each table is the work of a file of its own, which its title in the page names. The load of the machine is told with
each: most of these figures are times on the wall.
"""

from __future__ import annotations

import argparse
import os
import statistics
from collections.abc import Callable
from pathlib import Path

import all_stop
import free_run
import run_to_end
import screen_cost
import step_latency
from report import machine, table, write_part

__all__ = ["TABLES", "load_line"]

PAGE = Path(__file__).parents[1] / "docs" / "latency.md"
NODES = (1_000, 10_000, 100_000)
KEYS = ("n Next node", "s Run", "j Down", "Tab")
RANKS = (2, 8)
PROGRAMS = ("gpt", "mlp")


def wire(runs: int) -> str:
    """Return how long a step takes, over the wire and in the same process."""
    rows = []
    for nodes in NODES:
        taken = step_latency.measure(nodes, 10 * runs)
        cells = []
        for figure in (statistics.median, step_latency.at_99):
            here, there = map(figure, taken.values())
            cells += [f"{here:.1f} ms", f"{there:.1f} ms", f"**{there - here:.1f} ms**"]
        rows.append([f"{nodes:,}", *cells])
    header = ["nodes", "in this process", "over the wire", "more (5 ms)", "at 99 %", "over the wire", "more (15 ms)"]
    return table(header, rows)


def screen(runs: int) -> str:
    """Return how long the screen takes until it is painted, stops and rests, and for some keys, and what it sends."""
    rows = []
    for nodes in NODES:
        began, costs, idle = screen_cost.measure(nodes, max(10, runs), keys=KEYS)
        keys = [f"{cost.wall * 1e3:.0f} ms, {cost.sent / 1e3:.1f} KB" for cost in costs.values()]
        rows.append([f"{nodes:,}", *(f"{wall:.2f} s" for wall, _ in began.values()), *keys, f"{idle:.1%}"])
    header = ["nodes", "first paint (1 s)", "first stop", "at rest", *(f"`{key.split()[0]}`" for key in KEYS), "idle"]
    return table(header, rows)


def free(runs: int) -> str:
    """Return what a program costs that runs free, beside the plain one."""
    rows = []
    for framework in free_run.FRAMEWORKS:
        for name, ratios in free_run.measure(framework, PROGRAMS, runs / 5).items():
            title = (free_run.FREE[name].__doc__ or "").rstrip(".")
            rows.append([f"{title} · `{name}`", framework, *(f"{ratio:.2f}" for ratio in ratios)])
    return table(["program", "framework", *free_run.WAYS], rows)


def end(runs: int) -> str:
    """Return what a backward costs that runs to its end from a stop before its first node."""
    rows = []
    for framework in run_to_end.FRAMEWORKS:
        for way, found in run_to_end.measure(framework, NODES[-1], max(3, runs // 4)).items():
            rows.append([run_to_end.title(way), framework, *(f"{figure:.2f}" for figure in run_to_end.figures(found))])
    return table(["way", "framework", "processor time (3)", *run_to_end.FIGURES[1:]], rows)


def stop(runs: int) -> str:
    """Return how soon all ranks stand when one has stopped."""
    rows = []
    for ranks in RANKS:
        taken = all_stop.measure(ranks, max(4, runs * 2 // 3))
        rows.append([str(ranks), f"**{statistics.median(taken):.0f} ms**", f"{max(taken):.0f} ms", str(len(taken))])
    return table(["ranks", "median (200 ms)", "the longest", "stops"], rows)


TABLES: dict[str, Callable[[int], str]] = {"wire": wire, "screen": screen, "free": free, "end": end, "stop": stop}
"""The function that makes each table of the page; it is told of how many runs."""


def load_line() -> str:
    """Return on what a table was measured, and beside how much else."""
    found = machine("gradscope", "torch")
    versions = ", ".join(f"{name} {number}" for name, number in found["versions"].items())
    return f"{found['processor']}, {found['cpus']} CPUs, load {os.getloadavg()[0]:.1f} when it began; {versions}."


def main() -> None:
    """Print the tables, or write them into the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=TABLES, default=list(TABLES))
    parser.add_argument("--quick", action="store_true", help="fewer runs of each")
    parser.add_argument("--write", action="store_true", help=f"put them into {PAGE.name}")
    args = parser.parse_args()
    for name in args.only:
        before = load_line()
        text = f"{before}\n\n{TABLES[name](3 if args.quick else 30)}"
        print(f"{name}\n\n{text}\n", flush=True)
        if args.write:
            write_part(name, text, PAGE)


if __name__ == "__main__":
    main()
