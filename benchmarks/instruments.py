"""What it costs to have a program observed: recorded, checked, examined, debugged, beside the same program alone.

    python benchmarks/run.py --only instruments      # every instrument on every program

Plain and observed stretches take turns in one process, each framework in a process of its own; a ratio is the median
of theirs, with the quartiles. What happens once, such as describing a node that was not there before, is not timed.
"""

from __future__ import annotations

import gc
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import gradscope.inspect as gi
from gradscope.check import Sanitizer
from measuring import COLUMNS, load
from workloads import models
from workloads.macro import gpt_step, integers, normal

__all__ = ["INSTRUMENTS", "OBSERVED", "PROGRAMS", "measure_observed", "title_of"]

Step = Callable[[], Any]

STRETCH = 0.25  # seconds, about, of plain steps in a row


# --- the programs -----------------------------------------------------------------------------------------------------


def gpt(lib: Any) -> Step:
    """A GPT over characters, 2 layers of 128."""
    _, body = gpt_step(lib, layers=2, width=128, heads=4)
    return lambda: body(None)


def training_step(lib: Any, model: Any, inputs: Any, labels: Any) -> Step:
    """Return a training step of a classifier with AdamW."""
    optimizer = lib.optim.AdamW(model.parameters(), lr=1e-4)

    def step() -> None:
        loss = lib.nn.functional.cross_entropy(model(inputs).flatten(0, -2), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


def bert(lib: Any) -> Step:
    """An encoder of text, 6.8 M parameters."""
    return training_step(lib, models.bert(lib), integers(lib, 4000, 4, 64), integers(lib, 4000, 256))


def vit(lib: Any) -> Step:
    """An encoder of images, 6.4 M parameters."""
    return training_step(lib, models.vit(lib), normal(lib, 4, 3, 32, 32), integers(lib, 10, 4))


def resnet(lib: Any) -> Step:
    """A ResNet of 14 layers, 6.3 M parameters."""
    model = models.resnet(lib, (96, 192, 384), stride=2)
    return training_step(lib, model, normal(lib, 4, 3, 32, 32), integers(lib, 10, 4))


def lstm(lib: Any) -> Step:
    """A language model of two LSTM layers over 32 steps, 9.1 M parameters."""
    return training_step(lib, models.lstm(lib), integers(lib, 2000, 4, 32), integers(lib, 2000, 128))


def tiny(lib: Any) -> Step:
    """200 operators on ten numbers each."""
    x = lib.ones(10, requires_grad=True)

    def step() -> None:
        y = x
        for _ in range(100):
            y = lib.sin(y) * 1.001
        y.sum().backward()

    return step


PROGRAMS = {program.__name__: program for program in (gpt, bert, vit, resnet, lstm, tiny)}


# --- the instruments --------------------------------------------------------------------------------------------------


def record(step: Step, times: int) -> float:
    """`gradscope record`."""
    with tempfile.TemporaryDirectory() as folder, gi.record(os.path.join(folder, "run.gscope")) as recorder:
        step()
        recorder.flush()
        return cpu_time(step, times, recorder.flush)


def check(step: Step, times: int) -> float:
    """`gradscope check`."""
    with Sanitizer():
        step()
        return cpu_time(step, times)


def doctor(step: Step, times: int) -> float:
    """`gradscope doctor`."""
    with Sanitizer(), gi.Doctor():
        step()
        return cpu_time(step, times)


def doctor8(step: Step, times: int) -> float:
    """`gradscope doctor --steps 8`, from the first step on."""
    with Sanitizer(), gi.Doctor():
        return cpu_time(step, 8)


def debug(step: Step, times: int) -> float:
    """`gradscope debug`, running free."""
    took: list[float] = []

    def program() -> None:
        step()
        took.append(cpu_time(step, times))

    session = gi.Debugger.for_call(program)
    session.cont()
    session.wait()
    if session.error is not None:
        raise session.error
    return took[0]


INSTRUMENTS = {instrument.__name__: instrument for instrument in (record, check, doctor, doctor8, debug)}
TARGETS = {"record": 2.5, "check": 2.5, "doctor": 4.0}
OBSERVED = {
    **{f"{instrument}-{program}": target for instrument, target in TARGETS.items() for program in PROGRAMS},
    "record-gpt": 2.0,
    "record-tiny": 3.0,
    "debug-gpt": 1.3,
    "doctor8-gpt": 4.0,
    "doctor8-bert": 4.0,
    "doctor8-resnet": 4.0,
}
"""What is measured: the ratio to the plain program that is wanted at most."""


def title_of(key: str) -> str:
    """Return what is observed by what, in words."""
    instrument, program = key.split("-")
    told = (INSTRUMENTS[instrument].__doc__, PROGRAMS[program].__doc__)
    return ": ".join(text.rstrip(".") for text in told if text)


# --- in the measuring process -----------------------------------------------------------------------------------------


def measure_observed(order: dict[str, Any]) -> dict[str, Any]:
    """Return the ratios of one framework's programs, observed and plain."""
    lib = load(order["library"], order["threads"])
    measured = {}
    for key in order["cases"]:
        instrument, program = key.split("-")
        print(f"{COLUMNS[order['column']].title}, {order['library']}: {key}", file=sys.stderr)
        measured[key] = compare(PROGRAMS[program](lib), INSTRUMENTS[instrument], order["limit"])
    return measured


def compare(step: Step, instrument: Callable[[Step, int], float], seconds: float) -> dict[str, Any]:
    """Return the ratio of a step that is observed to a plain one, over stretches that take turns."""
    for _ in range(2):
        step()
    times = max(2, round(STRETCH / max(cpu_time(step, 2), 1e-6)))
    ways = [cpu_time, instrument]
    pairs: list[tuple[float, float]] = []
    end = time.perf_counter() + seconds
    while len(pairs) < 3 or (time.perf_counter() < end and len(pairs) < 9):
        gc.collect()
        took = {way: way(step, times) for way in (ways if len(pairs) % 2 else reversed(ways))}
        pairs.append((took[cpu_time], took[instrument]))
    ratios = [observed / plain for plain, observed in pairs]
    low, middle, high = statistics.quantiles(ratios, n=4, method="inclusive")
    plain, observed = (statistics.median(column) for column in zip(*pairs))
    return {
        "ratio": middle,
        "quartiles": [low, high],
        "plain_seconds": plain,
        "observed_seconds": observed,
        "rounds": ratios,
    }


def cpu_time(step: Step, times: int, finish: Callable[[], Any] = lambda: None) -> float:
    """Return the CPU time of a step, with its share of what is still to be done at the end."""
    started = time.process_time()
    for _ in range(times):
        step()
    finish()
    return (time.process_time() - started) / times
