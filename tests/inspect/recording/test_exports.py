"""A recording as a trace, a table and a page."""

import builtins
import json
import stat
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser

import numpy
import pytest

import gradscope as gs
import gradscope.inspect as gi
from gradscope.inspect.recording import RecordingError
from gradscope.inspect.recording.file.recording_columns import columns
from gradscope.inspect.recording.reports.html_report import html_report
from gradscope.inspect.recording.reports.parquet import arrow_table, write_parquet
from gradscope.inspect.recording.reports.perfetto import write_trace
from tests.inspect.recording.programs import recorded


@pytest.fixture
def recording(tmp_path):
    return recorded(tmp_path / "run.gscope", steps=3)


def spoiled(path):
    """Return a recording with an infinity, a NaN, an error, a violation and an odd name in it."""
    x = gs.ones(3, requires_grad=True)
    with gi.record(path, title="<script> & co") as recorder:
        (gs.log(x * 0) * 1).sum().backward()
        recorder.mark("now <b>")
        y = x.exp()
        z = y.sum()
        y += 1
        with pytest.raises(RuntimeError):
            z.backward()
    return gi.open_recording(path)


def test_columns_agree_with_the_records(recording):
    data = columns(recording)
    nodes = [(task, node) for task in recording.tasks() for node in task.nodes]
    assert len(data) == len(nodes) == 27
    for at, (task, node) in enumerate(nodes):
        assert (data.task[at], data.iteration[at], data.index[at]) == (task.id, task.iteration, node.index)
        assert data.static[int(data.node[at])].name == node.name
        for group, summaries in ((data.incoming, node.grad_outputs), (data.produced, node.grad_inputs)):
            there = [s for s in summaries if s is not None]
            norm = numpy.sqrt(sum(s.norm**2 for s in there)) if there else numpy.nan
            numpy.testing.assert_allclose(group["norm"][at], norm)
            assert group["zeros"][at] == sum(s.zeros for s in there)
            if there:
                assert group["min"][at] == min(s.min for s in there)
                assert group["mean"][at] == there[0].mean


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


def test_a_parquet_file(recording, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet", reason="the extra `parquet`")
    assert write_parquet(recording, tmp_path / "nodes.parquet") == 27
    table = parquet.read_table(tmp_path / "nodes.parquet")
    assert table.num_rows == 27
    assert table.column("name").to_pylist()[:2] == ["MeanBackward0", "PowBackward0"]
    assert table.column("parameter").to_pylist().count("0.weight") == 3
    norms = table.column("grad_outputs_norm").to_pylist()
    assert norms[0] == recording.tasks()[0].nodes[0].grad_outputs[0].norm


def test_without_pyarrow_the_extra_is_named(recording, monkeypatch):
    real = builtins.__import__

    def missing(name, *rest):
        if name.startswith("pyarrow"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(RecordingError, match=r"pip install 'gradscope-debugger\[parquet\]'"):
        arrow_table(recording)


class Page(HTMLParser):
    """Checks that what is opened is closed, and that nothing is fetched."""

    VOID = {"meta", "br", "rect"}

    def __init__(self):
        super().__init__()
        self.open, self.text = [], []

    def handle_starttag(self, tag, attrs):
        assert not {"src", "href"} & {name for name, _ in attrs}
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in self.VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def parsed(page):
    parser = Page()
    parser.feed(page)
    assert parser.open == []
    return " ".join(parser.text)


def test_the_report_of_a_healthy_run(recording):
    page = html_report(recording, title="My run")
    text = parsed(page)
    assert "My run: its gradients" in text
    assert "2.weight" in text
    svg = page[page.index("<svg") : page.index("</svg>") + 6]
    cells = [e for e in ElementTree.fromstring(svg).iter() if e.tag.endswith("rect") and len(e)]
    assert len(cells) == 4 * 3
    assert cells[0][0].text.startswith(("0.", "2."))


def test_the_report_of_a_run_that_went_wrong(tmp_path):
    text = parsed(html_report(spoiled(tmp_path / "run.gscope")))
    assert "<script> & co: its gradients" in text
    assert "LogBackward0" in text
    assert "produced them" in text
    assert "3 Inf" in text
    assert "ExpBackward0" in text
    assert "now <b>" in text
    assert "1" in text


def test_the_report_of_many_iterations_and_of_none(tmp_path):
    x = gs.ones(2, requires_grad=True)
    with gi.record(tmp_path / "many", "summaries"):
        for _ in range(250):
            (x * 2).sum().backward()
    assert "iterations 0 to 2" in html_report(gi.open_recording(tmp_path / "many"))
    with gi.record(tmp_path / "none"):
        pass
    assert "No gradient was recorded" in parsed(html_report(gi.open_recording(tmp_path / "none")))
