"""What the documentation recommends for reading the dataset elsewhere works."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from gradscope.inspect.ranks.lake.lake_export import export_run
from tests.inspect.ranks.jobs import record_ranks

pytest.importorskip("pyarrow", reason="the extra `lake`")

PAGE = (Path(__file__).parents[4] / "docs" / "lake.md").read_text(encoding="utf-8")
RECIPES = {text.split(maxsplit=2)[1].partition(".")[0]: text for text in re.findall(r"```python\n(.*?)```", PAGE, re.S)}


def test_the_recipes_are_there():
    assert sorted(RECIPES) == ["dask", "polars"]


@pytest.fixture
def folder(tmp_path):
    record_ranks(tmp_path / "run", 2, steps=3)
    export_run([str(tmp_path / "run")], str(tmp_path / "lake"))
    return tmp_path


@pytest.mark.parametrize("name", ["dask", "polars"])
def test_a_recipe_runs(folder, name):
    pytest.importorskip(name, reason="reads the dataset")
    command = [sys.executable, "-c", RECIPES[name]]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_dask_reads_more_than_it_has_memory_for(folder):
    distributed = pytest.importorskip("distributed", reason="a local cluster")
    dataframe = pytest.importorskip("dask.dataframe", reason="reads the dataset")
    numpy = pytest.importorskip("numpy")
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    rows, files = 1_000_000, 40
    for block in range(files):
        place = folder / "big" / "nodes" / "run=r" / "rank=0" / f"from_iteration={1000 * block}"
        place.mkdir(parents=True)
        norms = numpy.random.default_rng(block).random(rows)
        iterations = 1000 * block + numpy.arange(rows) // 1000
        table = pyarrow.table({"iteration": iterations, "grad_outputs_norm": norms})
        parquet.write_table(table, place / "tasks-000000000001-000000001000.parquet")
    assert rows * files * 16 > 600e6
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, memory_limit="500MB", dashboard_address=None
        ) as cluster,
        distributed.Client(cluster),
    ):
        nodes = dataframe.read_parquet(str(folder / "big" / "nodes"), columns=["rank", "grad_outputs_norm"])
        assert int(nodes.groupby("rank").grad_outputs_norm.count().compute().iloc[0]) == rows * files
