"""What a backward costs that was stopped before its first node and then runs to its end.

    python benchmarks/run_to_end.py --nodes 100000

A chain of operators on ten numbers is run backward plainly, and under the debugger: started, stopped before the first
node, and told to go on, with NaN and infinities caught as they are at first. The ways take turns, each framework in a
process of its own: in the same process, behind the wire, and under the terminal UI. A figure is a ratio to the plain
backward next to it, of the program's processor time and of the wall until the front says that the program has ended.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gradscope.inspect import Debugger
from gradscope.inspect.wire.program_process import ProgramProcess
from measuring import load
from screen_cost import Screen, processor_time

__all__ = ["FIGURES", "FRAMEWORKS", "figures", "measure", "title"]

FRAMEWORKS = ("gradscope", "torch")
SCRIPT = """\
import {framework} as lib

lib.set_num_threads(1)
x = lib.ones(10, requires_grad=True)
y = x
for _ in range({rounds}):
    y = y * 1.0 + 0.0
y.sum().backward()
"""
PATIENCE = 120

Took = tuple[float, float]
"""Seconds of the program's processor time, and on the wall."""


def plain(source: str) -> Took:
    """Without a debugger: the backward alone."""
    *made, backward = source.splitlines()
    names: dict[str, Any] = {}
    exec("\n".join(made), names)
    return taken(time.process_time, lambda: exec(backward, names))


def in_process(path: Path) -> Took:
    """In this process."""
    source = path.read_text()
    session = Debugger.for_call(lambda: exec(compile(source, str(path), "exec"), {}))
    session.start()
    session.wait(PATIENCE)
    return taken(time.process_time, lambda: to_end(session))


def over_the_wire(path: Path) -> Took:
    """In a process of its own."""
    process = ProgramProcess([str(path)], terminal=False)
    session = process.debugger
    session.start()
    session.wait(PATIENCE)
    found = taken(lambda: processor_time(session.pid), lambda: to_end(session))
    process.end()
    return found


def in_the_screen(path: Path) -> Took:
    """Under the terminal UI."""
    screen = Screen(str(path), (math.inf, 0.0))
    screen.until(b"PAUSED")
    screen.rest()
    (program,) = screen.programs()

    def go_on() -> None:
        screen.send(b"c")
        screen.until(b"FINISHED")

    found = taken(lambda: processor_time(program), go_on)
    screen.rest()
    screen.quit()
    return found


WAYS: dict[str, Callable[[Path], Took]] = {way.__name__: way for way in (in_process, over_the_wire, in_the_screen)}


def to_end(session: Any) -> None:
    """Let a session go on, and wait until its program has ended."""
    session.cont()
    if session.wait(PATIENCE).value != "finished":
        raise SystemExit(f"the program has not ended: it is {session.state.value}, {session.reason.text}")


def taken(clock: Callable[[], float], work: Callable[[], Any]) -> Took:
    """Return what some work takes, by a clock of processor time and on the wall."""
    gc.collect()
    processor, wall = clock(), time.perf_counter()
    work()
    return clock() - processor, time.perf_counter() - wall


def measure(framework: str, nodes: int, times: int) -> dict[str, list[Took]]:
    """Return by way the ratios of so many turns, of processor times and on the wall, in a chain of so many nodes."""
    command = [sys.executable, __file__, "--worker", framework, "--nodes", str(nodes), "--times", str(times)]
    output = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    found: dict[str, list[Took]] = json.loads(output.splitlines()[-1])
    return found


def ratios(framework: str, nodes: int, times: int) -> dict[str, list[Took]]:
    """Return the same, in the measuring process."""
    load(framework, 1)
    source = SCRIPT.format(framework=framework, rounds=nodes // 2)
    found: dict[str, list[Took]] = {name: [] for name in WAYS}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "chain.py")
        path.write_text(source)
        plain(source), in_process(path)
        for _ in range(times):
            for name, way in WAYS.items():
                alone, debugged = plain(source), way(path)
                found[name].append((debugged[0] / alone[0], debugged[1] / alone[1]))
    return found


FIGURES = ("processor", "the least", "wall", "the least")


def figures(found: list[Took]) -> list[float]:
    """Return of the ratios of a way the median and the least, of processor times and on the wall."""
    return [figure(times) for times in zip(*found) for figure in (statistics.median, min)]


def title(way: str) -> str:
    """Return a way in words."""
    return (WAYS[way].__doc__ or "").rstrip(".")


def main() -> None:
    """Print the median and the least of the ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=100_000)
    parser.add_argument("--times", type=int, default=7)
    parser.add_argument("--frameworks", nargs="+", choices=FRAMEWORKS, default=list(FRAMEWORKS))
    parser.add_argument("--worker", metavar="FRAMEWORK", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        print(json.dumps(ratios(args.worker, args.nodes, args.times)))
        return
    print(f"{'':12}{'':24}" + "".join(f"{name:>14}" for name in FIGURES))
    for framework in args.frameworks:
        for name, found in measure(framework, args.nodes, args.times).items():
            print(f"{framework:12}{title(name):24}" + "".join(f"{figure:14.2f}" for figure in figures(found)))


if __name__ == "__main__":
    main()
