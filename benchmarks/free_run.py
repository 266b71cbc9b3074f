"""What a program costs that runs free under the debugger: ``python benchmarks/free_run.py``.

Plain and debugged stretches of a training step take turns in one process, each framework in a process of its own; a
figure is the median of the ratios of their CPU times. With ``catch nan`` and ``catch inf`` on, as they are at first,
every gradient is looked at; with both off, only what the statistics have time for.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

import gradscope.inspect as gi
from instruments import PROGRAMS, Step, compare, cpu_time
from measuring import load
from workloads.macro import normal

FRAMEWORKS = ("gradscope", "torch")


def five(lib: Any) -> Step:
    """Five nodes of ten numbers."""
    x = lib.ones(10, requires_grad=True)

    def step() -> None:
        ((lib.sin(x) * 1.001).exp() * 0.5).sum().backward()

    return step


def mlp(lib: Any) -> Step:
    """A perceptron of 256, batches of 64, SGD."""
    layers = [lib.nn.Linear(256, 256), lib.nn.ReLU(), lib.nn.Linear(256, 256), lib.nn.ReLU(), lib.nn.Linear(256, 10)]
    model = lib.nn.Sequential(*layers)
    inputs = normal(lib, 64, 256)
    optimizer = lib.optim.SGD(model.parameters(), lr=1e-4)

    def step() -> None:
        loss = (model(inputs) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


def long(lib: Any) -> Step:
    """100,000 nodes of ten numbers, backward alone."""
    x = lib.ones(10, requires_grad=True)
    y = x
    for _ in range(50_000):
        y = y * 1.0 + 0.0
    loss = y.sum()
    return lambda: loss.backward(retain_graph=True)


FREE = {"tiny": PROGRAMS["tiny"], "five": five, "mlp": mlp, "gpt": PROGRAMS["gpt"], "long": long}


def running_free(*, catching: bool) -> Callable[[Step, int], float]:
    """Return the instrument: a session that has been told to go on."""

    def debugged(step: Step, times: int) -> float:
        took: list[float] = []

        def program() -> None:
            step()
            took.append(cpu_time(step, times))

        session = gi.Debugger.for_call(program)
        for kind in ("nan", "inf"):
            session.catch(kind, catching)
        session.cont()
        session.wait()
        if session.error is not None:
            raise session.error
        return took[0]

    return debugged


WAYS = {"caught": running_free(catching=True), "not caught": running_free(catching=False)}


def measure(framework: str, programs: Sequence[str], seconds: float) -> dict[str, list[float]]:
    """Return the ratios of some programs of a framework, in the order of `WAYS`."""
    command = [sys.executable, __file__, "--worker", framework, "--seconds", str(seconds), "--only", *programs]
    output = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    found: dict[str, list[float]] = json.loads(output.splitlines()[-1])
    return found


def main() -> None:
    """Print the ratios of both frameworks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=4.0, help="how long each program is measured in each way")
    parser.add_argument("--only", nargs="+", choices=FREE, default=list(FREE))
    parser.add_argument("--frameworks", nargs="+", choices=FRAMEWORKS, default=list(FRAMEWORKS))
    parser.add_argument("--worker", metavar="FRAMEWORK", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        lib = load(args.worker, 1)
        steps = {name: FREE[name](lib) for name in args.only}
        found = {
            name: [compare(step, way, args.seconds)["ratio"] for way in WAYS.values()] for name, step in steps.items()
        }
        print(json.dumps(found))
        return
    print(f"{'':12}{'program':48}" + "".join(f"{way:>12}" for way in WAYS))
    for framework in args.frameworks:
        for name, ratios in measure(framework, args.only, args.seconds).items():
            title = (FREE[name].__doc__ or "").rstrip(".")
            print(f"{framework:12}{title:48}" + "".join(f"{ratio:12.2f}" for ratio in ratios))


if __name__ == "__main__":
    main()
