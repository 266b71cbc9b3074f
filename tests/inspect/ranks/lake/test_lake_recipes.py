"""What the documentation recommends for reading the dataset elsewhere works."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from gradscope.inspect.ranks.lake.lake_export import export_run
from tests.inspect.ranks.jobs import record_ranks

pyarrow = pytest.importorskip("pyarrow", reason="the extra `lake`")

PAGE = (Path(__file__).parents[4] / "docs" / "lake.md").read_text(encoding="utf-8")
RECIPES = {text.split(maxsplit=2)[1].partition(".")[0]: text for text in re.findall(r"```python\n(.*?)```", PAGE, re.S)}


def test_the_recipes_are_there():
    assert sorted(RECIPES) == ["dask", "polars", "pyspark"]


@pytest.fixture
def folder(tmp_path):
    record_ranks(tmp_path / "run", 2, steps=3)
    export_run([str(tmp_path / "run")], str(tmp_path / "lake"))
    half = next((tmp_path / "lake" / "nodes").rglob("*.parquet"))
    half.with_name(f"_{half.name}.half-77").write_bytes(b"PAR1")  # an export that writes at this moment
    return tmp_path


def run(name, folder, more=""):
    """Run a recipe, and lines after it; return what those print."""
    command = [sys.executable, "-c", RECIPES[name] + more]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", ["dask", "polars"])
def test_a_recipe_runs(folder, name):
    pytest.importorskip(name, reason="reads the dataset")
    run(name, folder)


@pytest.mark.slow
def test_the_recipe_for_spark_runs(folder):
    pytest.importorskip("pyspark", reason="reads the dataset")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("Spark needs Java")
    counts = "print([spark.read.parquet(f'lake/{table}').count() for table in ('nodes', 'steps', 'series', 'runs')])"
    assert run("pyspark", folder, counts) == "[54, 24, 30, 2]\n"


def value_of(recipe):
    """Run a recipe; return the value of its last line, which it does not print."""
    *lines, last = ast.parse(recipe).body
    space = {}
    exec(compile(ast.Module(lines, []), "recipe", "exec"), space)
    return eval(compile(ast.Expression(last.value), "recipe", "eval"), space)


ROWS, FILES, LIMIT = 1_000_000, 40, 480_000_000


@pytest.mark.slow
def test_dask_reads_more_than_it_has_memory_for(tmp_path, monkeypatch):
    distributed = pytest.importorskip("distributed", reason="a local cluster")
    pytest.importorskip("dask.dataframe", reason="reads the dataset")
    parquet = pytest.importorskip("pyarrow.parquet")
    highest = []
    for block in range(FILES):
        place = tmp_path / "lake" / "nodes" / "run=r" / "rank=0" / f"from_iteration={1000 * block}"
        place.mkdir(parents=True)
        norms = np.random.default_rng(block).random(ROWS)
        iterations = 1000 * block + np.arange(ROWS) // (ROWS // 1000)
        highest.append(norms.reshape(1000, -1).max(1))
        table = pyarrow.table({"iteration": iterations, "grad_outputs_norm": norms})
        parquet.write_table(table, place / "tasks-000000000001-000000001000.parquet")
    assert ROWS * FILES * 3 * 8 == 2 * LIMIT  # rank, iteration, norm
    monkeypatch.chdir(tmp_path)
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, memory_limit=LIMIT, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        began = list(client.scheduler_info()["workers"])
        found = value_of(RECIPES["dask"])
        assert list(client.scheduler_info()["workers"]) == began  # the nanny would start a killed worker anew
    np.testing.assert_array_equal(found.sort_index().to_numpy(), np.concatenate(highest))
