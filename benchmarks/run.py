"""Measure gradscope beside PyTorch and print the table of ``docs/performance.md``.

    python benchmarks/run.py                  # the Markdown table
    python benchmarks/run.py --json           # the same, with every round, as JSON
    python benchmarks/run.py --check          # exit status 1 where a target is missed
    python benchmarks/run.py --only chain     # one case; may be repeated
    python benchmarks/run.py --events         # with an events subscription that asks for nothing

Both libraries run the same function (``cases.py``) in the same process, in rounds that alternate which goes first; a
ratio is the median of the rounds' ratios, with their quartiles. The steady figure is CPU time of the process with one
thread each; the second column is wall-clock time with two threads each. The cyclic garbage collector stays on. Each
column is measured in a process of its own, because the number of threads must be set before NumPy is loaded.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import importlib.util
import json
import os
import platform
import statistics
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from itertools import pairwise
from pathlib import Path
from typing import Any

from cases import CASES, MEMORY_TARGET, Case, chain_of_nodes

THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)
COLUMNS = {"cpu": (1, time.process_time), "wall": (2, time.perf_counter)}
ITEM_BYTES = 4  # a node of `chain_of_nodes` holds one float32 of array data


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


def block(case: Case, work: tuple[Callable, Callable], runs: int, clock: Callable[[], float]) -> float:
    """Return the seconds that one operation of a case took, over `runs` runs of its body."""
    prepare, body = work
    inputs = [prepare() for _ in range(runs)]
    gc.collect()  # neither library pays for what the other left behind
    started = clock()
    for prepared in inputs:
        body(prepared)
    return (clock() - started) / (runs * case.operations)


def calibrate(case: Case, work: tuple[Callable, Callable], clock: Callable[[], float], seconds: float) -> int:
    """Warm a case up and return the number of runs that take about `seconds`."""
    block(case, work, 1, clock)
    once = min(block(case, work, 2, clock) for _ in range(2)) * case.operations
    return max(1, min(1000, round(seconds / max(once, 1e-9))))


def measure_case(case: Case, libs: list[Any], column: str, rounds: int, seconds: float) -> dict[str, Any]:
    """Return the times of a case in both libraries, round by round, and the ratio of the first to the second."""
    clock = COLUMNS[column][1]
    works = [case.build(lib) for lib in libs]
    runs = [calibrate(case, work, clock, seconds) for work in works]
    times: list[list[float]] = [[], []]
    for number in range(rounds):
        for which in (0, 1) if number % 2 == 0 else (1, 0):
            times[which].append(block(case, works[which], runs[which], clock))
    ratios = [candidate / baseline for candidate, baseline in zip(*times, strict=True)]
    low, middle, high = statistics.quantiles(ratios, n=4, method="inclusive")
    return {
        "ratio": middle,
        "quartiles": [low, high],
        "candidate_seconds": statistics.median(times[0]),
        "baseline_seconds": statistics.median(times[1]),
        "rounds": ratios,
    }


def peak_rss() -> int | None:
    """Return the most memory this process has had resident, in bytes, where the system tells."""
    try:
        import resource
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def measure_memory(lib: Any, nodes: int, traced: bool) -> dict[str, Any]:
    """Build, run backward and free a long chain; return times, or with `traced` the exact bytes, a node."""
    chain_of_nodes(lib, 100).backward()
    gc.collect()
    if traced:
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
    rss = peak_rss()
    marks = [time.process_time()]
    end = chain_of_nodes(lib, nodes)
    marks.append(time.process_time())
    end.backward()
    marks.append(time.process_time())
    del end
    marks.append(time.process_time())
    if traced:
        current, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return {"peak_bytes": (peak - before) / nodes - ITEM_BYTES, "left_bytes": (current - before) / nodes}
    forward, backward, free = (after - mark for mark, after in pairwise(marks))
    result = {"forward_seconds": forward / nodes, "backward_seconds": backward / nodes, "free_seconds": free / nodes}
    after_rss = peak_rss()
    if rss is not None and after_rss is not None:
        result["resident_bytes"] = (after_rss - rss) / nodes - ITEM_BYTES
    return result


def work(order: dict[str, Any]) -> Any:
    """Carry out one order of the parent process and return what is printed as JSON."""
    names = [order["candidate"], order["baseline"]]
    if order["kind"] == "memory":
        return measure_memory(load(names[0], 1), order["nodes"], order["traced"])
    threads = COLUMNS[order["kind"]][0]
    libs = [load(name, threads) for name in names]
    measured = {}
    for key in order["cases"]:
        print(f"{order['kind']}: {CASES[key].title}", file=sys.stderr)
        measured[key] = measure_case(CASES[key], libs, order["kind"], order["rounds"], order["seconds"])
    return measured


# --- in the process the user started ----------------------------------------------------------------------------------


def ask(kind: str, args: argparse.Namespace, **order: Any) -> Any:
    """Have a fresh process measure something, with its number of threads set from the start."""
    threads = str(COLUMNS[kind][0] if kind in COLUMNS else 1)
    environment = {**os.environ, **dict.fromkeys(THREAD_VARIABLES, threads)}
    order.update(kind=kind, candidate=args.candidate, baseline=args.baseline, events=args.events)
    command = [sys.executable, str(Path(__file__).resolve()), "--worker", json.dumps(order)]
    finished = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    if finished.returncode != 0:
        raise SystemExit(f"run.py: the measuring process failed with exit status {finished.returncode}; see above.")
    return json.loads(finished.stdout.splitlines()[-1])


def measure(args: argparse.Namespace) -> dict[str, Any]:
    """Return everything the table shows."""
    report: dict[str, Any] = {"machine": machine(args), "events": args.events, "cases": {}, "memory": []}
    keys = [key for key in CASES if not args.only or key in args.only]
    if keys:
        columns = {kind: ask(kind, args, cases=keys, rounds=args.rounds, seconds=args.seconds) for kind in args.columns}
        for key in keys:
            report["cases"][key] = {
                "title": CASES[key].title,
                "target": CASES[key].target,
                **{kind: measured[key] for kind, measured in columns.items()},
            }
    if not args.only or "memory" in args.only:
        for nodes in (args.nodes // 10, args.nodes):
            print(f"memory: chain of {nodes:,} nodes", file=sys.stderr)
            measured = {"nodes": nodes, "target": MEMORY_TARGET}
            for traced in (False, True):
                measured.update(ask("memory", args, nodes=nodes, traced=traced))
            report["memory"].append(measured)
    return report


def machine(args: argparse.Namespace) -> dict[str, Any]:
    """Say what the figures were measured on."""
    processor = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        lines = cpuinfo.read_text(encoding="utf-8").splitlines()
        processor = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), processor)
    versions = {"Python": platform.python_version()}
    for package in dict.fromkeys(["numpy", args.candidate, args.baseline]):
        distribution = "gradscope-debugger" if package == "gradscope" else package
        try:
            versions[package] = version(distribution)
        except PackageNotFoundError:
            versions[package] = "(not packaged)"
    return {"processor": processor, "cpus": os.cpu_count(), "system": platform.platform(), "versions": versions}


def duration(seconds: float) -> str:
    """Return a time in the unit in which it is easiest read."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} µs"


def cell(measured: dict[str, Any] | None) -> list[str]:
    """Return one column's ratio and the two times behind it."""
    if measured is None:
        return ["", "", ""]
    low, high = measured["quartiles"]
    times = [duration(measured[f"{side}_seconds"]) for side in ("candidate", "baseline")]
    return [f"**{measured['ratio']:.2f}** ({low:.2f}–{high:.2f})", *times]


def table(header: list[str], rows: list[list[str]]) -> str:
    """Return a Markdown table; every column but the first is aligned to the right."""
    rule = ["---", *["--:"] * (len(header) - 1)]
    return "\n".join("| " + " | ".join(row) + " |" for row in [header, rule, *rows])


def markdown(report: dict[str, Any], args: argparse.Namespace) -> str:
    """Return the report as Markdown."""
    versions = ", ".join(f"{name} {number}" for name, number in report["machine"]["versions"].items())
    parts = [f"{report['machine']['processor']}, {report['machine']['cpus']} CPUs; {versions}."]
    if report["events"]:
        parts.append("With an events subscription that asks for no kind of event.")
    if report["cases"]:
        header = ["ratio, lower is better", "target"]
        for kind, name in (("cpu", "CPU time, 1 thread"), ("wall", "wall clock, 2 threads")):
            if kind in args.columns:
                header += [name, args.candidate, args.baseline]
        rows = [
            [measured["title"], f"≤ {measured['target']}", *(c for kind in args.columns for c in cell(measured[kind]))]
            for measured in report["cases"].values()
        ]
        parts.append(table(header, rows))
    if report["memory"]:
        header = ["chain", "target", "peak a node", "resident a node", "left a node", "forward", "backward", "free"]
        rows = [
            [
                f"{measured['nodes']:,} nodes",
                f"≤ {MEMORY_TARGET} B",
                f"**{measured['peak_bytes']:.0f} B**",
                f"{measured['resident_bytes']:.0f} B" if "resident_bytes" in measured else "",
                f"{measured['left_bytes']:.1f} B",
                *(duration(measured[f"{phase}_seconds"]) for phase in ("forward", "backward", "free")),
            ]
            for measured in report["memory"]
        ]
        parts.append(table(header, rows))
        parts.append(
            f"{args.candidate} alone. Bytes a node beyond the arrays' data: by tracemalloc at the peak, by the "
            "resident set at its peak, and by tracemalloc after the chain was freed. CPU time a node."
        )
    return "\n\n".join(parts)


def missed(report: dict[str, Any]) -> list[str]:
    """Return a line for each target that was missed: ratios by the steady column, memory at the longer chain."""
    lines = []
    for measured in report["cases"].values():
        ratio = measured.get("cpu", measured.get("wall"))["ratio"]
        if ratio > measured["target"]:
            lines.append(f"{measured['title']}: {ratio:.2f}, wanted at most {measured['target']}")
    for measured in report["memory"][-1:]:
        if measured["peak_bytes"] > measured["target"]:
            lines.append(f"memory: {measured['peak_bytes']:.0f} bytes a node, wanted at most {measured['target']}")
    return lines


def parse(argv: list[str] | None = None) -> argparse.Namespace:
    """Return the command line's arguments."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", action="append", choices=[*CASES, "memory"], help="only this case; may be repeated")
    parser.add_argument("--candidate", default="gradscope", help="the module to measure (default: %(default)s)")
    parser.add_argument("--baseline", default="torch", help="the module to measure against (default: %(default)s)")
    parser.add_argument("--columns", nargs="+", choices=list(COLUMNS), default=list(COLUMNS), help="default: both")
    parser.add_argument("--rounds", type=int, default=15, help="rounds of each case (default: %(default)s)")
    parser.add_argument(
        "--seconds", type=float, default=0.05, help="time each library gets in a round, about (default: %(default)s)"
    )
    parser.add_argument("--nodes", type=int, default=1_000_000, help="length of the long chain (default: %(default)s)")
    parser.add_argument("--events", action="store_true", help="with a subscription to no kind of gradscope's events")
    parser.add_argument("--json", action="store_true", help="print JSON instead of Markdown")
    parser.add_argument("--check", action="store_true", help="exit with status 1 where a target is missed")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    if args.rounds < 2:
        parser.error("--rounds must be at least 2")
    if args.nodes < 1000:
        parser.error("--nodes must be at least 1000")
    if args.events and args.candidate != "gradscope":
        parser.error("--events measures gradscope; leave out --candidate")
    return args


def main() -> int:
    """Measure, print, and judge where asked to."""
    args = parse()
    if args.worker:
        order = json.loads(args.worker)
        if order["events"]:
            with idle_subscription():
                result = work(order)
        else:
            result = work(order)
        print(json.dumps(result))
        return 0
    for name in {args.candidate, args.baseline}:
        if importlib.util.find_spec(name) is None:
            print(
                f"run.py: {name} is not installed; the comparison needs it.\nTry: pip install {name}", file=sys.stderr
            )
            return 2
    report = measure(args)
    print(json.dumps(report, indent=2) if args.json else markdown(report, args))
    lines = missed(report) if args.check else []
    for line in lines:
        print(f"missed: {line}", file=sys.stderr)
    return 1 if lines else 0


if __name__ == "__main__":
    raise SystemExit(main())
