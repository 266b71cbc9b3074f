"""Measure gradscope beside PyTorch and print the tables of ``docs/performance.md``.

    python benchmarks/run.py                  # the Markdown tables: about ten minutes
    python benchmarks/run.py --only gpt-2     # one workload, a group, or a pattern; may be repeated
    python benchmarks/run.py --columns fast   # one column; see `measuring.COLUMNS`
    python benchmarks/run.py --json           # the same, with every round, as JSON
    python benchmarks/run.py --check          # exit status 1 where a target is missed
    python benchmarks/run.py --plots          # and how costs grow, as docs/images/growth-*.svg
    python benchmarks/run.py --write          # the tables into docs/performance.md
    python benchmarks/run.py --events         # with an events subscription that asks for nothing

Both libraries run the same function (``workloads/``) in the same process, in rounds that alternate which goes first; a
ratio is the median of the rounds' ratios, with their quartiles. The steady figure is CPU time of the process with one
thread each. It is taken with the compiled kernels of the extra ``fast`` and without, and each of the two as the
machine comes and with NumPy, OpenBLAS and Numba held to the kernels of a processor with AVX2. The cyclic garbage
collector stays on. Each column is measured in a process of its own, because threads and kernels must be set before
NumPy is loaded; so is each peak of memory.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
from fnmatch import fnmatch
from typing import Any

from growth import CURVES, draw, measure_curve, measure_growth, slow_threads
from measuring import COLUMNS, ask, measure_cases, measure_chain, measure_peak
from report import GROUPS, MEANS, machine, markdown, means, missed, write_part
from workloads import CASES

WORK = {"times": measure_cases, "peak": measure_peak, "chain": measure_chain, "growth": measure_growth}


def measure(args: argparse.Namespace) -> dict[str, Any]:
    """Return everything that the tables show."""
    report: dict[str, Any] = {
        "machine": machine(args.candidate, args.baseline),
        "candidate": args.candidate,
        "baseline": args.baseline,
        "events": args.events,
        "cases": measure_workloads(args),
        "chains": measure_chains(args) if chosen("chain-memory", "", args.only) else [],
        "growth": measure_curves(args) if args.plots else {},
    }
    report["means"] = {group: means(report["cases"].values(), group) for group in MEANS}
    return report


def chosen(key: str, group: str, only: list[str] | None) -> bool:
    """Whether something is to be measured, by its name or by its group's."""
    return not only or any(fnmatch(key, pattern) or group == pattern for pattern in only)


def measure_workloads(args: argparse.Namespace) -> dict[str, Any]:
    """Return what was measured of each workload, column by column."""
    cases = {key: case for key, case in CASES.items() if chosen(key, case.group, args.only)}
    found: dict[str, Any] = {
        key: {
            "title": case.title,
            "group": case.group,
            "target": case.target,
            "plain_target": case.plain_target,
        }
        for key, case in cases.items()
    }
    settings = {"candidate": args.candidate, "baseline": args.baseline, "events": args.events}
    settings.update(rounds=args.rounds, least_rounds=5, seconds=args.seconds, limit=args.limit)
    for name in args.columns:
        if name == "memory":
            for key, case in cases.items():
                if case.trains and (peaks := measure_peaks(key, args)):
                    found[key]["memory"] = peaks
        elif cases:
            for key, measured in ask("times", COLUMNS[name], column=name, cases=list(cases), **settings).items():
                found[key][name] = measured
    return found


def measure_peaks(key: str, args: argparse.Namespace) -> dict[str, Any] | None:
    """Return the peak memory of a training step in both libraries, each in a process of its own."""
    print(f"peak memory: {CASES[key].title}", file=sys.stderr)
    column = COLUMNS["memory"]
    candidate, baseline = (ask("peak", column, library=name, case=key) for name in (args.candidate, args.baseline))
    if candidate is None or baseline is None:
        return None
    return {
        "ratio": candidate["bytes"] / baseline["bytes"],
        "candidate_bytes": candidate["bytes"],
        "baseline_bytes": baseline["bytes"],
    }


def measure_chains(args: argparse.Namespace) -> list[dict[str, Any]]:
    """Return what a node takes in a chain, and in one ten times as long."""
    chains = []
    for nodes in (args.nodes // 10, args.nodes):
        print(f"memory: chain of {nodes:,} nodes", file=sys.stderr)
        chain = {"nodes": nodes}
        for traced in (False, True):
            chain.update(ask("chain", COLUMNS["memory"], library=args.candidate, nodes=nodes, traced=traced))
        chains.append(chain)
    return chains


def measure_curves(args: argparse.Namespace) -> dict[str, Any]:
    """Return the lines of every plot."""
    columns = [name for name in ("fast", "numpy") if name in args.columns]
    return {
        key: measure_curve(key, columns, candidate=args.candidate, baseline=args.baseline)
        for key in CURVES
        if chosen(key, "growth", args.only)
    }


def parse(argv: list[str] | None = None) -> argparse.Namespace:
    """Return the command line's arguments."""
    groups = {**{key: case.group for key, case in CASES.items()}, **dict.fromkeys(CURVES, "growth"), "chain-memory": ""}
    names = f"a workload ({', '.join(CASES)}), a group ({', '.join(GROUPS)}, growth), a curve or a pattern"
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", metavar="NAME", help=f"{names}; may be repeated")
    parser.add_argument("--candidate", default="gradscope", help="the module to measure (default: %(default)s)")
    parser.add_argument("--baseline", default="torch", help="the module to measure against (default: %(default)s)")
    parser.add_argument("--columns", nargs="+", choices=list(COLUMNS), help="default: all but wall")
    parser.add_argument("--rounds", type=int, default=11, help="rounds of each case at most (default: %(default)s)")
    parser.add_argument(
        "--seconds", type=float, default=0.04, help="time each library gets in a round, about (default: %(default)s)"
    )
    parser.add_argument(
        "--limit", type=float, default=2.0, help="seconds after which a case has but 5 rounds (default: %(default)s)"
    )
    parser.add_argument("--nodes", type=int, default=1_000_000, help="length of the long chain (default: %(default)s)")
    parser.add_argument("--events", action="store_true", help="with a subscription to no kind of gradscope's events")
    parser.add_argument("--plots", action="store_true", help="measure how costs grow too, and draw it")
    parser.add_argument("--json", action="store_true", help="print JSON instead of Markdown")
    parser.add_argument("--write", action="store_true", help="write the tables into docs/performance.md")
    parser.add_argument("--check", action="store_true", help="exit with status 1 where a target is missed")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    if args.events and args.candidate != "gradscope":
        parser.error("--events measures gradscope; leave out --candidate")
    for pattern in args.only or ():
        if not any(chosen(key, group, [pattern]) for key, group in groups.items()):
            parser.error(f"--only {pattern}: no such name; it is {names}")
    if args.columns is None:
        args.columns = [name for name in COLUMNS if name != "wall"]
        if importlib.util.find_spec("numba") is None:
            print("run.py: Numba is not installed, so there is no column with `fast`.", file=sys.stderr)
            args.columns = [name for name in args.columns if not name.startswith("fast")]
    return args


def main() -> int:
    """Measure, print, and judge where asked to."""
    args = parse()
    if args.worker:
        order = json.loads(args.worker)
        print(json.dumps(WORK[order["kind"]](order)))
        return 0
    for name in {args.candidate, args.baseline, *(["matplotlib"] if args.plots else [])}:
        if importlib.util.find_spec(name) is None:
            print(f"run.py: {name} is not installed; the benchmark needs it.\nTry: pip install {name}", file=sys.stderr)
            return 2
    report = measure(args)
    print(json.dumps(report, indent=2) if args.json else markdown(report))
    if args.write:
        write_part("table", markdown(report))
    for key, lines in report["growth"].items():
        print(f"drawn: {draw(key, lines, args.candidate, args.baseline)}", file=sys.stderr)
    lines = [*missed(report), *slow_threads(report["growth"])] if args.check else []
    for line in lines:
        print(f"missed: {line}", file=sys.stderr)
    return 1 if lines else 0


if __name__ == "__main__":
    raise SystemExit(main())
