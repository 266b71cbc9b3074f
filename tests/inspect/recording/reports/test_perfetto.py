"""A recording as a trace for Perfetto."""

import json
import stat

from gradscope.inspect.recording.reports.perfetto import write_trace
from tests.inspect.recording.programs import spoiled


def test_a_trace_has_each_node_on_its_thread(recording, tmp_path):
    count = write_trace(recording, tmp_path / "trace.json")
    assert stat.S_IMODE((tmp_path / "trace.json").stat().st_mode) == 0o600
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert len(events) == count
    spans = [event for event in events if event["ph"] == "X"]
    nodes = [span for span in spans if "index" in span["args"]]
    assert len(nodes) == 27
    backwards = {span["name"]: span for span in spans if span["name"].startswith("backward")}
    for node in nodes:
        assert node["dur"] >= 0
        assert any(b["ts"] <= node["ts"] <= b["ts"] + b["dur"] for b in backwards.values())
    assert {"name": "MainThread"} in [event.get("args") for event in events]


def test_a_trace_is_json_whatever_the_numbers(tmp_path):
    write_trace(spoiled(tmp_path / "run.gscope"), tmp_path / "trace.json")

    def refuse(constant):
        raise AssertionError(f"{constant} is no JSON")

    events = json.loads((tmp_path / "trace.json").read_text(), parse_constant=refuse)["traceEvents"]
    assert any(event["name"] == "mark: now <b>" for event in events)
