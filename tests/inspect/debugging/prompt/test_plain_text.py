"""Records as text."""

from gradscope.inspect import EdgeRecord, Location, NodeRecord, SavedRecord, summarize
from gradscope.inspect.debugging.prompt.plain_text import (
    graph_text,
    list_text,
    node_text,
    place_of,
    saved_line,
    short_path,
    summary_line,
)
from gradscope.inspect.source import source_paths
from gradscope.inspect.source.source_paths import started_here


def nodes():
    place = Location("a.py", 3, "f", "y = x * 2")
    first = NodeRecord(
        0, 5, "MulBackward0", "Mul", 1, "layer", "", place, (EdgeRecord(6, 0), EdgeRecord(None, 0)), "current"
    )
    return [first, NodeRecord(1, 6, "AccumulateGrad", "AccumulateGrad", 2**64 - 1, "", "x", None, ())]


def test_node_text():
    assert node_text(nodes()[0], nodes()).splitlines() == [
        "node 0 of 2: MulBackward0  layer  (current)",
        "  made at        a.py:3  y = x * 2  (in f)",
        "  module         layer",
        "  gradients in   not seen",
        "  gradients out  not computed yet",
        "                 [0] -> node 1 AccumulateGrad input 0",
        "                 [1] -> nowhere",
        "  saved          nothing",
    ]


def test_list_and_graph_text():
    assert list_text(nodes()).splitlines() == [
        ">    0  MulBackward0    layer  a.py:3  y = x * 2",
        "     1  AccumulateGrad  x",
    ]
    assert graph_text(nodes()).splitlines() == [">    0  MulBackward0  layer  -> 1", "     1  AccumulateGrad  x"]
    assert list_text([]) == ""
    assert list_text(nodes(), 1).splitlines()[1] == "<    1  AccumulateGrad  x"


def test_summary_line():
    assert summary_line(None) == "undefined"
    line = summary_line(summarize([float("nan"), 0.0], "g", device="cuda:0"))
    assert line == "float64 (2) cuda:0  norm nan  finite 1 of 2  min 0  max 0  mean 0  std 0  zeros 1  nans 1  [nan, 0]"
    assert summary_line(summarize([])) == "float64 (0)  norm 0  min -  max -  mean -  std -  []"


def test_saved_line():
    assert saved_line(SavedRecord("w", None, "", 0, None, None, "released")) == "w  released"
    assert saved_line(SavedRecord("w", (2,), "float32", 8, None, None, "ok")) == (
        "w  float32 (2)  packed by a hook: no version"
    )
    assert saved_line(SavedRecord("w", (2,), "float32", 8, 3, 3, "ok", summarize([1.0]))) == (
        "w  float32 (2)  version 3 ok  norm 1  min 1  max 1  mean 1  std 0  [1]"
    )


def test_paths(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(source_paths, "_started_in", "")
    started_here()
    monkeypatch.chdir("/")  # the program goes elsewhere
    assert short_path(str(tmp_path / "train.py")) == "train.py"
    assert short_path("/elsewhere/x.py") == "/elsewhere/x.py"
    assert short_path("<stdin>") == "<stdin>"
    assert place_of(None) == ""
