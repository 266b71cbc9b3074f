"""Say what was measured: Markdown tables, missed targets, and the parts of a page that a command writes."""

from __future__ import annotations

import os
import platform
import re
import statistics
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from measuring import COLUMNS

__all__ = ["GROUPS", "MEANS", "machine", "machine_line", "markdown", "means", "missed", "parts", "write_part"]

PAGE = Path(__file__).parents[1] / "docs" / "performance.md"
MEANS = {"macro": (1.0, 1.35), "micro": (0.6, 0.6)}  # of a group's ratios: with `fast`, with NumPy alone
PEAK_TARGET = 1.2  # the peak memory of a training step beside PyTorch's
CHAIN_TARGET = 1536  # bytes a node at the peak, beyond the arrays' data
GROUPS = {
    "macro": "real layers",
    "micro": "small tensors",
    "promotion": "mixed dtypes : one dtype",
    "library": "special functions and LAPACK",
}


# --- targets ----------------------------------------------------------------------------------------------------------


def missed(report: dict[str, Any]) -> list[str]:
    """Return a line for each target that was missed: ratios by the slower kernels, memory at the longer chain."""
    lines = []
    for key, case in report["cases"].items():
        lines += [
            f"{key}, {COLUMNS[name].title}: {case[name]['ratio']:.2f}, wanted at most {target}"
            for name, target in targets(case).items()
            if name in case and case[name]["ratio"] > target
        ]
    for group, columns in report["means"].items():
        lines += [
            f"geometric mean of {group}, {COLUMNS[name].title}: {mean:.2f}, wanted at most {target}"
            for name, (mean, target) in columns.items()
            if target is not None and mean > target
        ]
    for key, case in report["observed"].items():
        lines += [
            f"{key}, {column}: {measured['ratio']:.2f}, wanted at most {case['target']}"
            for column, measured in case["columns"].items()
            if measured["ratio"] > case["target"]
        ]
    for chain in report["chains"][-1:]:
        if chain["peak_bytes"] > CHAIN_TARGET:
            lines.append(f"chain-memory: {chain['peak_bytes']:.0f} bytes a node, wanted at most {CHAIN_TARGET}")
    return lines


def targets(case: dict[str, Any]) -> dict[str, float]:
    """Return the ratio that is wanted at most in each column of a case."""
    with_fast, without = case["target"], case["plain_target"]
    return {
        "fast": with_fast,
        "fast-avx2": with_fast,
        "numpy": without,
        "numpy-avx2": without,
        "memory": PEAK_TARGET,
    }


def means(cases: Iterable[dict[str, Any]], group: str) -> dict[str, tuple[float, float | None]]:
    """Return the geometric mean of a group's ratios in each column, and what is wanted of it at most."""
    found = {}
    for name, column in COLUMNS.items():
        ratios = [case[name]["ratio"] for case in cases if case["group"] == group and name in case]
        if len(ratios) > 1:
            judged = name not in ("wall", "memory")
            found[name] = (statistics.geometric_mean(ratios), MEANS[group][not column.compiled] if judged else None)
    return found


# --- tables -----------------------------------------------------------------------------------------------------------


def markdown(report: dict[str, Any]) -> str:
    """Return the report as Markdown."""
    return "\n\n".join([machine_line(report), *parts(report).values()])


def machine_line(report: dict[str, Any]) -> str:
    """Return what was measured with which versions, and where."""
    versions = ", ".join(f"{name} {number}" for name, number in report["machine"]["versions"].items())
    events = " With an events subscription that asks for no kind of event." if report["events"] else ""
    return f"{report['machine']['processor']}, {report['machine']['cpus']} CPUs; {versions}.{events}"


def parts(report: dict[str, Any]) -> dict[str, str]:
    """Return the tables by the names of their places in the page."""
    found = {group: group_table(report, group) for group in GROUPS}
    if report["observed"]:
        found["instruments"] = observed_table(report)
    if report["chains"]:
        found["chain-memory"] = chain_table(report["chains"])
    return {name: text for name, text in found.items() if text}


def group_table(report: dict[str, Any], group: str) -> str:
    """Return the table of a group, or nothing where nothing of it was measured."""
    cases = {key: case for key, case in report["cases"].items() if case["group"] == group}
    if not cases:
        return ""
    columns = [name for name in COLUMNS if any(name in case for case in cases.values())]
    timed = [name for name in columns if name != "memory"]
    header = [GROUPS[group], "wanted", *(COLUMNS[n].title for n in timed)]
    both = "fast" in timed and "numpy" in timed
    header += ["fast : without"] * both + [report["candidate"], report["baseline"]] * bool(timed)
    header += [COLUMNS["memory"].title, report["candidate"], report["baseline"]] * ("memory" in columns)
    rows = []
    for key, case in cases.items():
        row = [f"{case['title']} · `{key}`", wanted(case["target"], case["plain_target"], group)]
        row += [ratio_cell(case.get(name)) for name in timed]
        if both:
            row.append(f"{case['fast']['candidate_seconds'] / case['numpy']['candidate_seconds']:.2f}")
        row += [duration(case[name][f"{side}_seconds"]) for name in timed[:1] for side in ("candidate", "baseline")]
        rows.append(row + memory_cells(case) * ("memory" in columns))
    if report["means"].get(group):
        found = report["means"][group]
        row = ["**geometric mean**", wanted(*MEANS[group], group)]
        row += [f"**{found[name][0]:.2f}**" if name in found else "" for name in timed]
        row += [""] * (both + 2 * bool(timed))
        if "memory" in columns:
            row += [f"**{found['memory'][0]:.2f}**" if "memory" in found else "", "", ""]
        rows.append(row)
    return table(header, rows)


def wanted(target: float, plain_target: float, group: str) -> str:
    """Return a target, and that of NumPy alone in parentheses where it is another."""
    return f"≤ {target}" if target == plain_target else f"≤ {target} ({plain_target})"


def ratio_cell(measured: dict[str, Any] | None) -> str:
    """Return a ratio with its quartiles."""
    if measured is None:
        return ""
    low, high = measured["quartiles"]
    return f"**{measured['ratio']:.2f}** ({low:.2f}–{high:.2f})"


def memory_cells(case: dict[str, Any]) -> list[str]:
    """Return the ratio of two peaks, and both."""
    if "memory" not in case:
        return ["", "", ""]
    measured = case["memory"]
    peaks = [f"{measured[f'{side}_bytes'] / 2**20:.1f} MiB" for side in ("candidate", "baseline")]
    return [f"**{measured['ratio']:.2f}**", *peaks]


def observed_table(report: dict[str, Any]) -> str:
    """Return the table of what instruments cost, a column for each library and for its kernels."""
    columns = list(dict.fromkeys(column for case in report["observed"].values() for column in case["columns"]))
    header = ["observed : plain", "wanted", *(column.replace("with `fast`, ", "") for column in columns)]
    header += ["plain step", "observed"]
    rows = []
    for key, case in report["observed"].items():
        measured = case["columns"]
        first = next(iter(measured.values()))
        times = [duration(first[f"{side}_seconds"]) for side in ("plain", "observed")]
        cells = [ratio_cell(measured.get(column)) for column in columns]
        rows.append([f"{case['title']} · `{key}`", f"≤ {case['target']}", *cells, *times])
    return table(header, rows)


def chain_table(chains: list[dict[str, Any]]) -> str:
    """Return the table of what a node of a long chain takes."""
    header = ["chain", "wanted", "peak a node", "resident a node", "left a node", "forward", "backward", "free"]
    rows = [
        [
            f"{chain['nodes']:,} nodes",
            f"≤ {CHAIN_TARGET} B",
            f"**{chain['peak_bytes']:.0f} B**",
            f"{chain['resident_bytes']:.0f} B" if "resident_bytes" in chain else "",
            f"{chain['left_bytes']:.1f} B",
            *(duration(chain[f"{phase}_seconds"]) for phase in ("forward", "backward", "free")),
        ]
        for chain in chains
    ]
    return table(header, rows)


def table(header: list[str], rows: list[list[str]]) -> str:
    """Return a Markdown table; every column but the first is aligned to the right."""
    rule = ["---", *["--:"] * (len(header) - 1)]
    return "\n".join("| " + " | ".join(row) + " |" for row in [header, rule, *rows])


def duration(seconds: float) -> str:
    """Return a time in the unit in which it is easiest read."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= 0.9995 * scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} µs"


def machine(*packages: str) -> dict[str, Any]:
    """Say what the figures were measured on."""
    processor = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        lines = cpuinfo.read_text(encoding="utf-8").splitlines()
        processor = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), processor)
    versions = {"Python": platform.python_version()}
    for package in dict.fromkeys(["numpy", *packages, "numba"]):
        distribution = "gradscope-debugger" if package == "gradscope" else package
        try:
            versions[package] = version(distribution)
        except PackageNotFoundError:
            versions[package] = "(not packaged)"
    return {"processor": processor, "cpus": os.cpu_count(), "system": platform.platform(), "versions": versions}


# --- the page ---------------------------------------------------------------------------------------------------------


def write_part(name: str, text: str, path: Path | None = None) -> None:
    """Replace a part of a page, by default that about performance: what is between ``<!-- NAME -->`` and ``/NAME``."""
    path = path or PAGE
    page = path.read_text(encoding="utf-8")
    marks = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.DOTALL)
    if not marks.search(page):
        raise SystemExit(f"{path} has no part {name!r}: it begins with <!-- {name} --> and ends with <!-- /{name} -->.")
    path.write_text(marks.sub(lambda found: f"{found[1]}\n{text}\n\n{found[2]}", page), encoding="utf-8")
