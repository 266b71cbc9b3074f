"""Ranks on one time line."""

from __future__ import annotations

import json

from gradscope.inspect.ranks.rank_trace import write_rank_trace
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
