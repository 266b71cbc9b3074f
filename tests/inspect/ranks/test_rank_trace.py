"""Ranks on one time line."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import pytest

from gradscope.inspect.ranks import rank_trace
from gradscope.inspect.ranks.rank_trace import rank_events, write_rank_trace
from gradscope.inspect.ranks.recorded_ranks import open_ranks
from tests.inspect.ranks.jobs import record_ranks


def test_each_rank_has_a_track_that_begins_when_it_began(tmp_path):
    record_ranks(tmp_path / "run", 2, steps=3)
    record_ranks(tmp_path / "run", 2, steps=1, restart=1)
    with open_ranks(tmp_path / "run") as ranks:
        count = write_rank_trace(ranks, tmp_path / "trace.json")
        later = (ranks.member(1).run.started - ranks.member(0).run.started) / 1000
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert len(events) == count
    names = [event["args"]["name"] for event in events if event["name"] == "process_name"]
    assert [name.partition(" (")[0] for name in names] == ["train.py rank 0", "train.py rank 1"]
    assert [event["args"]["sort_index"] for event in events if event["name"] == "process_sort_index"] == [0, 1]
    backwards = [event for event in events if event["name"].startswith("backward")]
    assert [event["pid"] for event in backwards] == [0, 1]  # of the last start alone
    assert later > 0
    assert backwards[1]["ts"] > later > backwards[0]["ts"]


def steps_of(events, rank):
    """Return when each iteration of a rank began, in milliseconds."""
    return [event["ts"] / 1e3 for event in events if event["pid"] == rank and event["name"].startswith("backward")]


def trace_with_clocks(folder, monkeypatch, apart, *, reduced=True, rate=1.0):
    """Record two ranks that step together, the second by another clock; return the trace's events."""
    record_ranks(folder, 2, steps=6)
    monkeypatch.setattr(rank_trace, "_is_waited_for", lambda step: reduced)
    with open_ranks(folder) as ranks:
        first, second = (member.recording.path for member in ranks.members)
    with closing(sqlite3.connect(first)) as file:
        times = file.execute("SELECT time FROM steps ORDER BY id").fetchall()
        (started,) = file.execute("SELECT started FROM runs").fetchone()
        tasks = file.execute("SELECT started, ended FROM tasks ORDER BY id").fetchall()
    with closing(sqlite3.connect(second)) as file, file:
        file.execute("UPDATE runs SET started = ?", (started + apart,))
        for row, (time,) in enumerate(times, 1):
            file.execute("UPDATE steps SET time = ? WHERE id = ?", (round(time * rate), row))
        for row, (began, ended) in enumerate(tasks, 1):
            moved = round(began * rate), round(ended * rate), row
            file.execute("UPDATE tasks SET started = ?, ended = ? WHERE id = ?", moved)
    with open_ranks(folder) as ranks:
        return list(rank_events(ranks))


@pytest.mark.parametrize(("apart", "rate"), [(3600 * 10**9, 1.0), (-3600 * 10**9, 1.5)])
def test_where_clocks_are_apart_the_steps_of_ranks_stand_below_each_other(tmp_path, monkeypatch, apart, rate):
    events = trace_with_clocks(tmp_path, monkeypatch, apart, rate=rate)
    assert steps_of(events, 1) == pytest.approx(steps_of(events, 0), abs=1e-2)
    (label,) = [event["args"]["labels"] for event in events if event["name"] == "process_labels"]
    assert label == f"its clock is 3,600.0 s {'ahead' if apart > 0 else 'behind'}"
    assert min(event["ts"] for event in events if "ts" in event) >= 0


@pytest.mark.parametrize(("apart", "reduced"), [(50 * 10**6, True), (3600 * 10**9, False)])
def test_ranks_that_are_late_or_wait_for_nobody_stay_where_they_are(tmp_path, monkeypatch, apart, reduced):
    events = trace_with_clocks(tmp_path, monkeypatch, apart, reduced=reduced)
    later = [other - one for one, other in zip(steps_of(events, 0), steps_of(events, 1))]
    assert later == pytest.approx([apart / 1e6] * 6)
    assert not any(event["name"] == "process_labels" for event in events)
