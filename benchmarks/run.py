"""Measure gradscope beside PyTorch and print the tables of ``docs/performance.md``.

    python benchmarks/run.py                  # the Markdown tables: about ten minutes
    python benchmarks/run.py --only gpt-2     # one workload, a group, or a pattern; may be repeated
    python benchmarks/run.py --columns fast   # one column; see `measuring.COLUMNS`
    python benchmarks/run.py --json           # the same, with every round, as JSON
    python benchmarks/run.py --check          # exit status 1 where a target is missed
    python benchmarks/run.py --instruments    # and what instruments cost: five minutes more
    python benchmarks/run.py --plots          # and how costs grow, as docs/images/growth-*.svg
    python benchmarks/run.py --write          # every table that is whole into docs/performance.md
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
from instruments import OBSERVED, measure_observed, title_of
from measuring import COLUMNS, ask, measure_cases, measure_chain, measure_peak
from report import MEANS, machine, machine_line, markdown, means, missed, parts, write_part
from workloads import CASES

WORK = {
    "times": measure_cases,
    "peak": measure_peak,
    "chain": measure_chain,
    "observed": measure_observed,
    "growth": measure_growth,
}
"""What a measuring process may be asked for."""

GROUPS = {
    **{key: case.group for key, case in CASES.items()},
    "chain-memory": "chain-memory",
    **dict.fromkeys(OBSERVED, "instruments"),
    **dict.fromkeys(CURVES, "growth"),
}
"""Everything that can be measured, and the group that it belongs to."""


def chosen(args: argparse.Namespace) -> list[str]:
    """Return what is to be measured."""
    if args.only:
        return [
            key
            for key, group in GROUPS.items()
            if any(fnmatch(key, pattern) or group == pattern for pattern in args.only)
        ]
    left_out = ["instruments"] * (not args.instruments) + ["growth"] * (not args.plots)
    return [key for key, group in GROUPS.items() if group not in left_out]


def measure(args: argparse.Namespace) -> dict[str, Any]:
    """Return everything that the tables show."""
    keys = chosen(args)
    report: dict[str, Any] = {
        "machine": machine(args.candidate, args.baseline),
        "candidate": args.candidate,
        "baseline": args.baseline,
        "events": args.events,
        "cases": measure_workloads([key for key in keys if key in CASES], args),
        "chains": measure_chains(args) if "chain-memory" in keys else [],
        "observed": measure_instruments([key for key in keys if key in OBSERVED], args),
        "growth": measure_curves([key for key in keys if key in CURVES], args),
    }
    report["means"] = {group: means(report["cases"].values(), group) for group in MEANS}
    return report


def measure_workloads(keys: list[str], args: argparse.Namespace) -> dict[str, Any]:
    """Return what was measured of each workload, column by column."""
    found: dict[str, Any] = {
        key: {
            "title": CASES[key].title,
            "group": CASES[key].group,
            "target": CASES[key].target,
            "plain_target": CASES[key].plain_target,
        }
        for key in keys
    }
    settings = {"candidate": args.candidate, "baseline": args.baseline, "events": args.events}
    settings.update(rounds=args.rounds, least_rounds=5, seconds=args.seconds, limit=args.limit)
    for name in args.columns if keys else ():
        if name == "memory":
            measured = {key: measure_peaks(key, args) for key in keys if CASES[key].trains}
        else:
            measured = ask("times", COLUMNS[name], column=name, cases=keys, **settings)
        for key, figures in measured.items():
            if figures is not None:
                found[key][name] = figures
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


def measure_instruments(keys: list[str], args: argparse.Namespace) -> dict[str, Any]:
    """Return what each instrument costs on each program, in both libraries and with the kernels of AVX2."""
    found: dict[str, Any] = {key: {"title": title_of(key), "target": OBSERVED[key], "columns": {}} for key in keys}
    kernels = "fast" if "fast" in args.columns else "numpy"
    for library in (args.candidate, args.baseline) if keys else ():
        for name in (kernels, f"{kernels}-avx2"):
            if name in args.columns:
                settings = {"column": name, "library": library, "cases": keys, "limit": args.limit}
                label = f"{library}, AVX2" if COLUMNS[name].avx2 else library
                for key, measured in ask("observed", COLUMNS[name], **settings).items():
                    found[key]["columns"][label] = measured
    return found


def measure_curves(keys: list[str], args: argparse.Namespace) -> dict[str, Any]:
    """Return the lines of every plot."""
    columns = [name for name in ("fast", "numpy") if name in args.columns]
    settings = {"candidate": args.candidate, "baseline": args.baseline}
    return {key: measure_curve(key, columns, **settings) for key in keys}


def parse(argv: list[str] | None = None) -> argparse.Namespace:
    """Return the command line's arguments."""
    names = f"one of {', '.join(GROUPS)}; a group: {', '.join(dict.fromkeys(GROUPS.values()))}; or a pattern"
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", metavar="NAME", help=f"{names}; may be repeated")
    parser.add_argument("--instruments", action="store_true", help="measure what instruments cost, too")
    parser.add_argument("--plots", action="store_true", help="measure how costs grow, too, and draw it")
    parser.add_argument("--candidate", default="gradscope", help="the module to measure (default: %(default)s)")
    parser.add_argument("--baseline", default="torch", help="the module to measure against (default: %(default)s)")
    parser.add_argument("--columns", nargs="+", choices=list(COLUMNS), help="default: all but wall")
    parser.add_argument("--rounds", type=int, default=11, help="rounds of each case at most (default: %(default)s)")
    parser.add_argument(
        "--seconds", type=float, default=0.03, help="time each library gets in a round, about (default: %(default)s)"
    )
    parser.add_argument(
        "--limit", type=float, default=2.0, help="seconds after which a case has but 5 rounds (default: %(default)s)"
    )
    parser.add_argument("--nodes", type=int, default=1_000_000, help="length of the long chain (default: %(default)s)")
    parser.add_argument("--events", action="store_true", help="with a subscription to no kind of gradscope's events")
    parser.add_argument("--json", action="store_true", help="print JSON instead of Markdown")
    parser.add_argument("--write", action="store_true", help="write every table that is whole into the page")
    parser.add_argument("--check", action="store_true", help="exit with status 1 where a target is missed")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    if args.events and args.candidate != "gradscope":
        parser.error("--events measures gradscope; leave out --candidate")
    if args.write and args.columns:
        parser.error("--write writes all columns; leave out --columns")
    for pattern in args.only or ():
        if not chosen(argparse.Namespace(only=[pattern])):
            parser.error(f"--only {pattern}: no such name; it is {names}")
    if args.columns is None:
        args.columns = [name for name in COLUMNS if name != "wall"]
        if importlib.util.find_spec("numba") is None:
            print("run.py: Numba is not installed, so there is no column with `fast`.", file=sys.stderr)
            args.columns = [name for name in args.columns if not name.startswith("fast")]
    return args


def needed(args: argparse.Namespace) -> list[str]:
    """Return the modules that the measurement needs and that are not installed."""
    drawn = any(key in CURVES for key in chosen(args))
    modules = dict.fromkeys([args.candidate, args.baseline, *(["matplotlib"] if drawn else [])])
    return [name for name in modules if importlib.util.find_spec(name) is None]


def write_page(report: dict[str, Any]) -> None:
    """Write every table that has all of its rows into the page about performance."""
    measured = {*report["cases"], *report["observed"], *(["chain-memory"] if report["chains"] else [])}
    for name, text in parts(report).items():
        if measured.issuperset(key for key, group in GROUPS.items() if group == name):
            write_part(name, f"{machine_line(report)}\n\n{text}")


def main() -> int:
    """Measure, print, and judge where asked to."""
    args = parse()
    if args.worker:
        order = json.loads(args.worker)
        print(json.dumps(WORK[order["kind"]](order)))
        return 0
    for name in needed(args):
        print(f"run.py: {name} is not installed; the benchmark needs it.\nTry: pip install {name}", file=sys.stderr)
        return 2
    report = measure(args)
    print(json.dumps(report, indent=2) if args.json else markdown(report))
    for key, lines in report["growth"].items():
        print(f"drawn: {draw(key, lines, args.candidate, args.baseline)}", file=sys.stderr)
    if args.write:
        write_page(report)
    lines = [*missed(report), *slow_threads(report["growth"])] if args.check else []
    for line in lines:
        print(f"missed: {line}", file=sys.stderr)
    return 1 if lines else 0


if __name__ == "__main__":
    raise SystemExit(main())
