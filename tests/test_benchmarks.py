"""What the benchmark measures: every workload computes the same in both libraries, and targets are judged as told."""

import json

import numpy as np
import pytest

import gradscope
import growth
import instruments
import latency
import report as report_of
import run
import run_to_end
from measuring import COLUMNS
from tests.quick_cases import quick
from workloads import CASES


def numbers(result):
    """Return all numbers of what a body returned, as one array in float64."""
    if isinstance(result, (tuple, list)):
        return np.concatenate([numbers(part) for part in result])
    return np.asarray(result.detach() if hasattr(result, "detach") else result, dtype=np.float64).reshape(-1)


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize("key", [key for key, case in CASES.items() if case.beside is None])
def test_both_libraries_do_the_same_work(key, torch):
    results = []
    for lib in (gradscope, torch):
        prepare, body = CASES[key].build(lib)
        results.append(body(prepare()))
    if results[1] is None:
        assert results[0] is None
    else:
        actual, expected = map(numbers, results)
        np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5 * np.abs(expected).max())


def measured(ratio):
    return {
        "ratio": ratio,
        "quartiles": [ratio, ratio],
        "candidate_seconds": ratio,
        "baseline_seconds": 1.0,
        "candidate_bytes": ratio,
        "baseline_bytes": 1,
    }


def case(group="macro", **ratios):
    columns = {name.replace("_", "-"): measured(ratio) for name, ratio in ratios.items()}
    return {"title": "a layer", "group": group, "target": 1.0, "plain_target": 1.5, **columns}


def report(**cases):
    found = {
        "cases": cases,
        "chains": [],
        "observed": {},
        "events": False,
        "candidate": "gradscope",
        "baseline": "torch",
    }
    found["machine"] = {"processor": "a processor", "cpus": 1, "versions": {}}
    found["means"] = {group: report_of.means(cases.values(), group) for group in report_of.MEANS}
    return found


def test_a_column_is_judged_by_the_target_of_its_kernels():
    assert report_of.missed(report(a=case(fast=1.0, fast_avx2=1.1, numpy=1.5, numpy_avx2=1.6))) == [
        "a, with `fast`, AVX2: 1.10, wanted at most 1.0",
        "a, NumPy alone, AVX2: 1.60, wanted at most 1.5",
    ]


def test_peak_memory_and_wall_clock():
    assert report_of.missed(report(a=case(wall=9.0, memory=1.3))) == [
        "a, peak memory, NumPy alone: 1.30, wanted at most 1.2"
    ]


def test_a_time_has_three_digits_and_the_unit_that_it_is_rounded_to():
    told = [report_of.duration(seconds) for seconds in (2.5, 0.9996, 0.0123, 9.996e-4, 9.99e-4, 3e-8)]
    assert told == ["2.5 s", "1 s", "12.3 ms", "1 ms", "999 µs", "0.03 µs"]


def test_the_geometric_mean_of_a_group_is_judged():
    found = report(a=case("micro", fast=1.0), b=case("micro", fast=0.49), c=case(fast=0.1))
    assert report_of.missed(found) == ["geometric mean of micro, with `fast`: 0.70, wanted at most 0.6"]
    assert "| **geometric mean** | ≤ 0.6 | **0.70** |" in report_of.markdown(found)


@pytest.mark.parametrize("columns", [{"fast": 1.0, "numpy": 2.0, "memory": 0.5}, {"numpy": 1.0}, {"memory": 0.5}])
def test_every_row_of_a_table_has_its_header_s_columns(columns):
    timed = {name: ratio for name, ratio in columns.items() if name != "memory"}
    found = report(a=case(**columns), b=case(**timed))
    rows = [line for line in report_of.markdown(found).splitlines() if line.startswith("|")]
    assert {row.count("|") for row in rows} == {rows[0].count("|")}


def test_only_takes_names_groups_and_patterns(capsys):
    args = run.parse(["--only", "gpt-*", "--only", "library", "--only", "record-tiny", "--columns", "numpy"])
    assert run.chosen(args) == [
        "special-functions",
        "linear-equations",
        "gpt-2",
        "gpt-2-by-hand",
        "gpt-6",
        "record-tiny",
    ]
    with pytest.raises(SystemExit):
        run.parse(["--only", "no-such-thing"])
    assert "--only no-such-thing: no such name" in capsys.readouterr().err


def test_without_only_instruments_and_plots_are_left_out_unless_they_are_asked_for():
    groups = {run.GROUPS[key] for key in run.chosen(run.parse([]))}
    assert groups == {"macro", "micro", "promotion", "library", "chain-memory"}
    assert set(run.chosen(run.parse(["--instruments", "--plots"]))) == set(run.GROUPS)


@pytest.mark.torch
def test_the_command_measures_a_workload(torch, monkeypatch, capsys):
    arguments = ["run.py", "--only", "matmul-8", "--columns", "numpy", "--json", "--seconds", "0.001", "--rounds", "5"]
    monkeypatch.setattr("sys.argv", arguments)
    assert run.main() == 0
    found = json.loads(capsys.readouterr().out)["cases"]["matmul-8"]
    assert len(found["numpy"]["rounds"]) == 5
    assert found["numpy"]["ratio"] > 0


def test_avx2_is_told_to_numpy_openblas_and_numba():
    environment = COLUMNS["numpy-avx2"].environment()
    assert environment["GRADSCOPE_KERNELS"] == "numpy"
    assert environment["OPENBLAS_CORETYPE"] == environment["NUMBA_CPU_NAME"].capitalize() == "Haswell"
    assert "X86_V3" not in environment["NPY_DISABLE_CPU_FEATURES"]


@pytest.mark.parametrize("old", ["", "old\n", "\nold\n\n"])
def test_a_part_of_the_page_is_replaced(old, tmp_path, monkeypatch):
    page = tmp_path / "page.md"
    page.write_text(f"before\n<!-- a -->\n{old}<!-- /a -->\nafter\n", encoding="utf-8")
    monkeypatch.setattr(report_of, "PAGE", page)
    report_of.write_part("a", "new")
    assert page.read_text(encoding="utf-8") == "before\n<!-- a -->\n\nnew\n\n<!-- /a -->\nafter\n"
    with pytest.raises(SystemExit, match="no part 'b'"):
        report_of.write_part("b", "new")


@pytest.mark.parametrize("key", growth.CURVES)
def test_a_curve_runs_at_its_smallest_size(key):
    drawn = growth.CURVES[key]
    prepare, body = drawn.build(gradscope, drawn.sizes[0])
    body(prepare())
    assert drawn.sizes == tuple(sorted(drawn.sizes))


@pytest.mark.parametrize("key", ["length", "operators", "threads"])
def test_a_curve_is_drawn_as_a_small_file_with_its_lines_named(key, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib", reason="draws")
    monkeypatch.setattr(growth, "IMAGES", tmp_path)
    points = [[size, 1.0 + number] for number, size in enumerate(growth.CURVES[key].sizes)]
    lines = {"fast": points, "baseline": points}
    text = growth.draw(key, lines, "gradscope", "torch").read_text(encoding="utf-8")
    assert ">torch</text>" in text
    assert (">gradscope with fast</text>" in text) == growth.CURVES[key].kernels
    assert len(text) < 20_000
    assert growth.draw(key, lines, "gradscope", "torch").read_text(encoding="utf-8") == text


def test_two_threads_are_judged_at_large_sizes():
    lines = {"fast": [[4096, 0.9], [4_194_304, 1.4]], "numpy": [[4_194_304, 1.6]], "baseline": [[4_194_304, 1.0]]}
    assert growth.slow_threads({"threads": lines, "operators": lines}) == [
        "threads, with `fast`: 1.40 times as fast with two at 4,194,304 elements, wanted at least 1.5"
    ]


def test_only_whole_tables_are_written(tmp_path, monkeypatch):
    page = tmp_path / "page.md"
    marks = "".join(f"<!-- {name} -->\nold\n<!-- /{name} -->\n" for name in ("macro", "library", "instruments"))
    page.write_text(marks, encoding="utf-8")
    monkeypatch.setattr(report_of, "PAGE", page)
    found = report(**{"special-functions": case("library", fast=1.0), "linear-equations": case("library", fast=1.0)})
    found["cases"]["gpt-2"] = case(fast=1.0)
    run.write_page(found)
    text = page.read_text(encoding="utf-8")
    assert text.count("old") == 2
    assert "<!-- library -->\n\na processor, 1 CPUs; .\n\n| special functions" in text


def test_every_table_has_its_place_in_the_page():
    page = report_of.PAGE.read_text(encoding="utf-8")
    for name in (*report_of.GROUPS, "chain-memory", "instruments"):
        assert f"<!-- {name} -->" in page
        assert f"<!-- /{name} -->" in page


@pytest.mark.parametrize("instrument", quick(instruments.INSTRUMENTS, {"record"}))
def test_an_instrument_is_compared_with_the_plain_program(instrument, monkeypatch):
    monkeypatch.setattr(instruments, "STRETCH", 0.005)
    measured = instruments.compare(instruments.tiny(gradscope), instruments.INSTRUMENTS[instrument], seconds=0.0)
    assert len(measured["rounds"]) == 3
    assert measured["observed_seconds"] > 0


@pytest.mark.slow
@pytest.mark.parametrize("program", instruments.PROGRAMS)
def test_an_observed_program_trains(program):
    instruments.PROGRAMS[program](gradscope)()


def test_instruments_are_judged_in_every_column():
    found = report()
    ratio = {**measured(2.1), "plain_seconds": 1.0, "observed_seconds": 2.1}
    found["observed"] = {
        "record-gpt": {
            "title": instruments.title_of("record-gpt"),
            "target": instruments.OBSERVED["record-gpt"],
            "columns": {"gradscope": ratio | {"ratio": 1.9}, "torch": ratio},
        }
    }
    assert report_of.missed(found) == ["record-gpt, torch: 2.10, wanted at most 2.0"]
    assert "| `gradscope record`: A GPT over characters" in report_of.markdown(found)


def test_the_dataset_that_is_asked_has_the_rows_and_columns_of_an_exported_one(tmp_path):
    pytest.importorskip("duckdb")
    import lake

    lake.generate(tmp_path, 8 * 250 * 12)
    assert lake.ask(str(tmp_path), "SELECT count(*), count(DISTINCT rank), max(iteration) FROM nodes").rows == [
        (24_000, 8, 11)
    ]
    described = lake.ask(str(tmp_path), "DESCRIBE nodes").rows
    assert {row[0] for row in described} == {column.name for column in lake.TABLES["nodes"]}
    for sql in lake.QUESTIONS.values():
        assert lake.ask(str(tmp_path), sql).rows


@pytest.mark.slow
@pytest.mark.parametrize("name", ["wire", "stop"])
def test_what_one_waits_for_is_measured_and_told_in_a_table(name, monkeypatch):
    monkeypatch.setattr(latency, "NODES", (100,))
    monkeypatch.setattr(latency, "RANKS", (2,))
    header, rule, row = latency.TABLES[name](1).splitlines()
    assert header.count("|") == rule.count("|") == row.count("|")
    figures = [float(cell.strip(" *").removesuffix(" ms")) for cell in row.strip("|").split("|")]
    assert figures[0] in (100, 2)
    assert all(figure > 0 for figure in (figures[1], figures[2]))


@pytest.mark.slow
@pytest.mark.parametrize("way", run_to_end.WAYS)
def test_a_backward_that_runs_to_its_end_is_measured_in_each_way(way, tmp_path):
    path = tmp_path / "chain.py"
    path.write_text(run_to_end.SCRIPT.format(framework="gradscope", rounds=50))
    processor, wall = run_to_end.WAYS[way](path)
    assert processor >= 0
    assert 0 < wall < 30


def test_the_page_of_what_one_waits_for_has_a_part_for_each_table():
    page = latency.PAGE.read_text(encoding="utf-8")
    for name in latency.TABLES:
        made = page.partition(f"<!-- {name} -->")[2].partition(f"<!-- /{name} -->")[0]
        assert "CPUs, load" in made, f"python benchmarks/latency.py --only {name} --write"
