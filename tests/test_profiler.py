"""The profiler: schedules, calls and their sums, nesting."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import gradscope as gs
from gradscope.profiler import ProfilerActivity, profile, record_function, schedule, tensorboard_trace_handler


@pytest.mark.torch
@pytest.mark.parametrize(
    "cycle",
    [
        {"wait": 1, "warmup": 1, "active": 2},
        {"wait": 0, "warmup": 1, "active": 1, "repeat": 2},
        {"wait": 2, "warmup": 1, "active": 3, "repeat": 1, "skip_first": 2},
    ],
    ids=str,
)
def test_a_schedule_is_pytorchs(torch: Any, cycle: dict[str, int]) -> None:
    ours, theirs = schedule(**cycle), torch.profiler.schedule(**cycle)
    assert [ours(step).name for step in range(20)] == [theirs(step).name for step in range(20)]


def test_calls_and_their_sums() -> None:
    x = gs.ones(4, 4, requires_grad=True)
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as prof:
        with record_function("forward"):
            y = (x @ x).relu().sum() + (x @ x).sum()
        y.backward()
    y.detach().exp()  # what comes after is not recorded
    rows = {row.key: row for row in prof.key_averages()}
    counts = {key: row.count for key, row in rows.items()}
    assert counts == {
        "aten::mm": 2,
        "aten::relu": 1,
        "aten::sum": 2,
        "aten::add": 1,
        "forward": 1,
        "AddBackward0": 1,
        "SumBackward0": 2,
        "ReluBackward0": 1,
        "MmBackward0": 2,
        "AccumulateGrad": 1,
    }
    assert next(call for call in prof.events() if call.name == "aten::mm").input_shapes == [[4, 4], [4, 4]]
    inside = sum(rows[name].cpu_time_total for name in ("aten::mm", "aten::relu", "aten::sum", "aten::add"))
    assert rows["forward"].cpu_time_total >= inside
    assert rows["forward"].self_cpu_time_total == pytest.approx(rows["forward"].cpu_time_total - inside, abs=1)


def test_a_table_is_sorted_and_cut() -> None:
    with profile() as prof:
        for _ in range(3):
            gs.ones(3).exp()
        gs.ones(3).sin()
    lines = prof.key_averages().table(sort_by="count", row_limit=1).splitlines()
    assert lines[1].split()[0] == "Name"
    assert [line.split()[0] for line in lines if "aten" in line] == ["aten::exp"]


@pytest.mark.torch
def test_a_cycle_ends_where_it_does_in_pytorch(torch: Any) -> None:
    def ends(m: Any, **options: Any) -> list[int]:
        found: list[int] = []
        cycle = m.profiler.schedule(wait=1, warmup=1, active=2, repeat=2)
        with m.profiler.profile(schedule=cycle, on_trace_ready=lambda p: found.append(p.step_num), **options) as prof:
            for _ in range(10):
                m.ones(2).exp()
                prof.step()
        return found

    assert ends(gs) == ends(torch, acc_events=True)


def test_traces_are_written(tmp_path: Path) -> None:
    with profile(on_trace_ready=tensorboard_trace_handler(str(tmp_path / "log"))) as prof:
        gs.ones(3).exp()
    prof.export_chrome_trace(tmp_path / "trace.json")
    for path in (tmp_path / "trace.json", next((tmp_path / "log").iterdir())):
        assert [event["name"] for event in json.loads(path.read_text())["traceEvents"]] == ["aten::exp"]


def test_a_label_outside_of_a_profile_does_nothing() -> None:
    @record_function("labelled")
    def double(x: gs.Tensor) -> gs.Tensor:
        return x * 2

    assert double(gs.ones(1)).tolist() == [2.0]


def test_gradients_are_the_same_while_it_runs() -> None:
    x = gs.randn(5, requires_grad=True)
    (expected,) = gs.autograd.grad((x.exp() * x).sum(), x)
    with profile():
        (found,) = gs.autograd.grad((x.exp() * x).sum(), x)
    assert gs.equal(found, expected)
