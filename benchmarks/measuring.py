"""Take times and memory, in a process of its own that has been told its threads and kernels before it loads NumPy.

:data:`COLUMNS` says what each process measures and under which environment; :func:`ask` starts it.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import os
import statistics
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

__all__ = [
    "COLUMNS",
    "Column",
    "ask",
    "block",
    "chain_of_nodes",
    "load",
    "measure_cases",
    "measure_chain",
    "measure_peak",
    "wait_for_background",
]

THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)
KERNELS = "GRADSCOPE_KERNELS"  # auto: compiled ones where Numba is installed; numpy: NumPy's alone
ITEM_BYTES = 4  # a node of `chain_of_nodes` holds one float32 of array data


def without_avx512() -> dict[str, str]:
    """Return the environment that holds NumPy, OpenBLAS and Numba to the kernels of a processor with AVX2."""
    from numpy._core._multiarray_umath import __cpu_dispatch__ as dispatched

    newer = [name for name in dispatched if name.startswith(("AVX512", "X86_V4"))]
    return {
        "NPY_DISABLE_CPU_FEATURES": " ".join(newer),
        "OPENBLAS_CORETYPE": "Haswell",
        "NUMBA_CPU_NAME": "haswell",
        "NUMBA_CPU_FEATURES": "",
    }


@dataclass(frozen=True)
class Column:
    """A way to measure: which clock, how many threads, and with which kernels."""

    title: str
    compiled: bool = True
    avx2: bool = False
    threads: int = 1
    clock: Callable[[], float] = field(default=time.process_time)

    def environment(self) -> dict[str, str]:
        """Return what the process that measures it must be told."""
        threads = dict.fromkeys(THREAD_VARIABLES, str(self.threads))
        return {**threads, KERNELS: "auto" if self.compiled else "numpy", **(without_avx512() if self.avx2 else {})}


COLUMNS = {
    "fast": Column("with `fast`"),
    "fast-avx2": Column("with `fast`, AVX2", avx2=True),
    "numpy": Column("NumPy alone", compiled=False),
    "numpy-avx2": Column("NumPy alone, AVX2", compiled=False, avx2=True),
    "wall": Column("wall clock, 2 threads", threads=2, clock=time.perf_counter),
    "memory": Column("peak memory, NumPy alone", compiled=False),
}


# --- in the process that the user started -----------------------------------------------------------------------------


def ask(kind: str, how: Column, **order: Any) -> Any:
    """Have a fresh process measure something under the environment of a column, and return what it found.

    What is measured in that process is decided by ``run.py``: its `kind` stands in ``WORK`` there.
    """
    order.update(kind=kind, threads=how.threads)
    command = [sys.executable, str(Path(__file__).with_name("run.py")), "--worker", json.dumps(order)]
    environment = {**os.environ, **how.environment()}
    finished = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    if finished.returncode != 0:
        raise SystemExit(f"run.py: the measuring process failed with exit status {finished.returncode}; see above.")
    return json.loads(finished.stdout.splitlines()[-1])


# --- in the measuring process -----------------------------------------------------------------------------------------


def load(name: str, threads: int) -> Any:
    """Import a library and tell it how many threads it has."""
    lib = importlib.import_module(name)
    if hasattr(lib, "set_num_threads"):
        lib.set_num_threads(threads)
    return lib


@contextmanager
def idle_subscription() -> Iterator[None]:
    """Subscribe to gradscope's events, but to no kind of them, and hold it to that."""
    from gradscope.runtime import events

    heard: list[Any] = []
    with events.subscribe(heard.append):
        yield
    if heard:
        raise SystemExit(f"run.py: the subscription to nothing received {len(heard)} events, first {heard[0]!r}")


def wait_for_background() -> None:
    """Wait until no thread of this process computes any more: kernels may still be compiled after their first use."""
    for _ in range(600):
        busy = time.process_time()
        time.sleep(0.02)
        if time.process_time() - busy < 0.004:
            return


# Times


def measure_cases(order: dict[str, Any]) -> dict[str, Any]:
    """Return the times of every case that is asked for."""
    from workloads import CASES

    column = COLUMNS[order["column"]]
    libs = [load(name, column.threads) for name in (order["candidate"], order["baseline"])]
    measured = {}
    for key in order["cases"]:
        print(f"{column.title}: {CASES[key].title}", file=sys.stderr)
        if order["events"]:
            with idle_subscription():
                measured[key] = measure_case(CASES[key], libs, column.clock, order)
        else:
            measured[key] = measure_case(CASES[key], libs, column.clock, order)
    return measured


def measure_case(case: Any, libs: list[Any], clock: Callable[[], float], order: dict[str, Any]) -> dict[str, Any]:
    """Return the times of a case in both libraries, round by round, and the ratio of the first to the second."""
    if case.beside is None:
        works = [case.build(lib) for lib in libs]
    else:
        works = [case.build(libs[0]), case.beside(libs[0])]
    runs = [calibrate(work, clock, order["seconds"]) for work in works]
    gc.collect()  # a full collection walks all that PyTorch has imported, so there is one a case
    times: list[list[float]] = [[], []]
    end = time.perf_counter() + order["limit"]
    while len(times[0]) < order["rounds"] and (len(times[0]) < order["least_rounds"] or time.perf_counter() < end):
        for which in (0, 1) if len(times[0]) % 2 == 0 else (1, 0):
            times[which].append(block(works[which], runs[which], clock) / case.operations)
    ratios = [candidate / baseline for candidate, baseline in zip(*times, strict=True)]
    low, middle, high = statistics.quantiles(ratios, n=4, method="inclusive")
    return {
        "ratio": middle,
        "quartiles": [low, high],
        "candidate_seconds": statistics.median(times[0]),
        "baseline_seconds": statistics.median(times[1]),
        "rounds": ratios,
    }


def calibrate(work: tuple[Callable, Callable], clock: Callable[[], float], seconds: float) -> int:
    """Warm a case up and return the number of runs that take about `seconds`."""
    block(work, 1, clock)
    wait_for_background()
    once = block(work, 1, clock)
    if once < seconds:
        once = min(once, block(work, 2, clock))
    return max(1, min(1000, round(seconds / max(once, 1e-9))))


def block(work: tuple[Callable, Callable], runs: int, clock: Callable[[], float]) -> float:
    """Return the seconds that one run of a case's body took, over `runs` of them."""
    prepare, body = work
    inputs = [prepare() for _ in range(runs)]
    gc.collect(1)  # neither library pays for what the other left behind
    started = clock()
    for prepared in inputs:
        body(prepared)
    return (clock() - started) / runs


# Memory


def measure_peak(order: dict[str, Any]) -> dict[str, int] | None:
    """Return the most memory that a training step holds in one library, beyond what the library itself takes, in bytes.

    It is what the system sees of anonymous memory (arrays and objects, no pages of a library's file) over two steps,
    after two that create the optimizer's state. The library itself is what is there when the smallest step has run for
    which it loads what it loads late.
    """
    from workloads import CASES

    lib = load(order["library"], order["threads"])
    smallest_step(lib)
    give_back()
    own = resident("RssAnon")
    prepare, body = CASES[order["case"]].build(lib)
    for _ in range(2):
        body(prepare())
    wait_for_background()
    give_back()
    if own is None or not reset_peak():
        return None
    for _ in range(2):
        body(prepare())
    files = resident("RssFile") + resident("RssShmem")
    return {"bytes": resident("VmHWM") - files - own}


def smallest_step(lib: Any) -> None:
    """Train a layer of one weight for a step, by a gradient's gradient and that of a table of which rows are read.

    PyTorch imports its compiler when the first optimizer is made, gradscope the functions of `autograd` with the first
    of them, and SciPy's sparse matrices when the first thousand rows are added at indices.
    """
    layer, table = lib.nn.Linear(1, 1), lib.zeros(1, 64, requires_grad=True)
    optimizer = lib.optim.Adam([*layer.parameters(), table])
    rows = lib.nn.functional.embedding(lib.zeros(1024, dtype=lib.int64), table)
    loss = lib.nn.functional.mse_loss(layer(lib.ones(1, 1)), lib.ones(1, 1)) + rows.sum()
    (slope,) = lib.autograd.grad(loss, layer.weight, create_graph=True)
    (loss + slope.sum()).backward()
    optimizer.step()


def give_back() -> None:
    """Give memory that is free, of Python and of glibc's allocator, back to the system: no step holds that."""
    gc.collect()
    with suppress(AttributeError, OSError, TypeError):  # another C library than GNU's, or Windows
        ctypes.CDLL(None).malloc_trim(0)


def resident(field: str) -> int | None:
    """Return a field of Linux' account of this process' memory in bytes, or None on another system."""
    status = Path("/proc/self/status")
    if not status.exists():
        return None
    line = next(line for line in status.read_text().splitlines() if line.startswith(f"{field}:"))
    return int(line.split()[1]) * 1024


def reset_peak() -> bool:
    """Have Linux forget the most memory that this process has held so far; tell whether it did."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return False
    return True


def chain_of_nodes(lib: Any, nodes: int) -> Any:
    """Return the end of a chain of `nodes` nodes, each of which saves its result: an array of one float32."""
    y = lib.ones(1, requires_grad=True)
    for _ in range(nodes):
        y = y.sigmoid()
    return y


def measure_chain(order: dict[str, Any]) -> dict[str, Any]:
    """Build, run backward and free a long chain; return times, or with `traced` the exact bytes, a node."""
    lib, nodes = load(order["library"], order["threads"]), order["nodes"]
    chain_of_nodes(lib, 100).backward()
    gc.collect()
    if order["traced"]:
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
    reset = reset_peak()
    held = resident("VmRSS")
    marks = [time.process_time()]
    end = chain_of_nodes(lib, nodes)
    marks.append(time.process_time())
    end.backward()
    marks.append(time.process_time())
    del end
    marks.append(time.process_time())
    if order["traced"]:
        current, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return {"peak_bytes": (peak - before) / nodes - ITEM_BYTES, "left_bytes": (current - before) / nodes}
    forward, backward, free = (after - mark for mark, after in pairwise(marks))
    result = {"forward_seconds": forward / nodes, "backward_seconds": backward / nodes, "free_seconds": free / nodes}
    if reset and held is not None:
        result["resident_bytes"] = (resident("VmHWM") - held) / nodes - ITEM_BYTES
    return result
