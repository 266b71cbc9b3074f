"""How the time of questions to a dataset of recordings grows with its rows: ``python benchmarks/lake.py``.

Tables of ``nodes`` with all columns are generated, laid out in partitions and written as ``gradscope export`` does, and
asked by what ``gradscope query`` asks with. 10^8 rows take about eight gigabytes for the time.

    python benchmarks/lake.py --rows 1e6 1e7 1e8 --plot      # docs/images/growth-lake.svg
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import duckdb

from gradscope.inspect.ranks.lake.lake_export import write_rows
from gradscope.inspect.ranks.lake.lake_query import ask
from gradscope.inspect.ranks.lake.lake_schema import BLOCK, MARKER, TABLES, VERSION

PLOT = Path(__file__).parents[1] / "docs" / "images" / "growth-lake.svg"

RANKS, NODES, PARAMETERS = 8, 250, 64
"""Ranks of the run, nodes of each backward, and how many of them bring a parameter its gradient."""

QUESTIONS = {
    "when did the norm of one parameter fall below 0.001": (
        "SELECT min(iteration) FROM nodes WHERE parameter = 'layers.7.weight' AND grad_outputs_norm < 0.001"
    ),
    "mean and largest norm of each rank": (
        "SELECT rank, avg(grad_outputs_norm), max(grad_outputs_norm) FROM nodes GROUP BY rank ORDER BY rank"
    ),
    "mean norm of each parameter in 50 iterations": (
        "SELECT parameter, avg(grad_outputs_norm) FROM nodes WHERE parameter != '' AND iteration BETWEEN 10 AND 59 "
        "GROUP BY parameter"
    ),
    "NaN by parameter, the five worst": (
        "SELECT parameter, sum(grad_outputs_nans) AS bad FROM nodes GROUP BY parameter ORDER BY bad DESC LIMIT 5"
    ),
}


def generate(folder: Path, rows: int) -> None:
    """Write a dataset of so many nodes: of each rank as many, the norms of parameters falling over the iterations."""
    (folder / MARKER).write_text(json.dumps({"version": VERSION}))
    known = {
        "iteration": "iteration",
        "task": "iteration + 1",
        "index": "place",
        "name": f"CASE WHEN place < {PARAMETERS} THEN 'AccumulateGrad' ELSE 'AddmmBackward0' END",
        "operator": f"CASE WHEN place < {PARAMETERS} THEN 'AccumulateGrad' ELSE 'Addmm' END",
        "module": "'layers.' || (place // 2)",
        "parameter": f"CASE WHEN place < {PARAMETERS} THEN 'layers.' || (place // 2) || "
        "CASE WHEN place % 2 = 0 THEN '.weight' ELSE '.bias' END ELSE '' END",
        "filename": "'train.py'",
        "grad_outputs_norm": "exp(-iteration / 400.0) * (0.5 + random())",
        "grad_outputs_nans": "CASE WHEN random() < 1e-5 THEN 1 ELSE 0 END",
    }
    columns = ", ".join(
        f"{known.get(column.name, 'random()' if column.type == 'double' else '0')} AS {column.name}"
        for column in TABLES["nodes"]
        if column.name not in ("run", "rank", "from_iteration")
    )
    iterations = rows // (RANKS * NODES)
    with duckdb.connect() as connection:
        for first, rank in itertools.product(range(0, iterations, BLOCK), range(RANKS)):
            partition = folder / "nodes" / "run=run" / f"rank={rank}" / f"from_iteration={first}"
            count = min(BLOCK, iterations - first) * NODES
            places = f"number % {NODES} AS place, {first} + number // {NODES} AS iteration"
            made = connection.sql(f"SELECT {columns} FROM (SELECT {places} FROM range({count}) r(number))")
            write_rows(made.to_arrow_table(), str(partition / "tasks-000000000001-000000001000.parquet"))


def measure(rows: int, repeats: int) -> dict[str, tuple[float, float]]:
    """Return for each question the median of its seconds on the wall and of processor time, over so many rows."""
    with tempfile.TemporaryDirectory() as folder:
        generate(Path(folder), rows)
        return {name: _median([_timed(folder, sql) for _ in range(repeats)]) for name, sql in QUESTIONS.items()}


def _timed(folder: str, sql: str) -> tuple[float, float]:
    began, cpu = time.perf_counter(), time.process_time()
    ask(folder, sql)
    return time.perf_counter() - began, time.process_time() - cpu


def _median(taken: Sequence[tuple[float, float]]) -> tuple[float, float]:
    walls, cpus = zip(*taken)
    return statistics.median(walls), statistics.median(cpus)


def draw(found: dict[int, dict[str, tuple[float, float]]]) -> None:
    """Draw the curves: seconds on the wall by rows."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "lake", "font.size": 9})
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(5, 3.2), layout="constrained")
    for name in QUESTIONS:
        axes.plot(list(found), [by[name][0] for by in found.values()], marker="o", markersize=3, label=name)
    axes.axhline(2, color="#999999", linewidth=0.8)
    axes.set(title="Questions to a dataset of recordings", xlabel="rows", ylabel="seconds, two cores")
    axes.set(xscale="log", yscale="log")
    axes.grid(color="#dddddd", linewidth=0.5)
    axes.legend(frameon=False, fontsize=7, loc="lower right")
    figure.savefig(PLOT, metadata={"Date": None, "Creator": None})


def main() -> None:
    """Measure, print a table, and draw."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=float, nargs="+", default=[1e6, 1e7], help="how many nodes (default: 1e6 1e7)")
    parser.add_argument("--repeats", type=int, default=5, help="how often each question is asked (default: 5)")
    parser.add_argument("--plot", action="store_true", help=f"draw {PLOT.name}")
    arguments = parser.parse_args()
    found = {int(rows): measure(int(rows), arguments.repeats) for rows in arguments.rows}
    print("| question |", " | ".join(f"{rows:.0e}" for rows in found), "|")
    print("|---|" + "---|" * len(found))
    for name in QUESTIONS:
        cells = (f"{by[name][0]:.2f} ({by[name][1]:.2f})" for by in found.values())
        print(f"| {name} |", " | ".join(cells), "|")
    if arguments.plot:
        draw(found)


if __name__ == "__main__":
    main()
