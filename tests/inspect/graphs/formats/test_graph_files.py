"""Every format parses back."""

import io
import json
import os
import re
import shutil
import stat
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import networkx
import numpy as np
import pytest
from hypothesis import given, settings

import gradscope as gs
import gradscope.inspect as gi
from gradscope.inspect.graphs.formats.graph_files import FORMATS, format_of, render_graph
from gradscope.inspect.graphs.formats.html import to_html
from gradscope.inspect.graphs.formats.picture import PictureTooLargeError, make_picture
from gradscope.inspect.graphs.formats.plain import node_scalars
from gradscope.inspect.graphs.formats.svg import to_svg
from tests.inspect.random_graphs import backward_graphs, graph_from, node

SVG = "{http://www.w3.org/2000/svg}"


@given(backward_graphs())
def test_svg_is_well_formed_and_shows_every_node(graph):
    root = ElementTree.fromstring(to_svg(graph, graphviz=False))
    boxes = [g for g in root.iter(f"{SVG}g") if g.get("class", "").startswith("gs-box")]
    assert len(boxes) == len(graph)
    arrows = [path for path in root.iter(f"{SVG}path") if path.get("class") == "gs-arrow"]
    assert len(arrows) == len(set(graph.edges()))
    titles = {text.text for text in root.iter(f"{SVG}text") if text.get("class") == "gs-title"}
    assert {data["parameter"] or data["operator"] for _, data in graph.nodes(data=True)} == titles


@given(backward_graphs())
def test_dot_has_a_statement_for_every_node_and_edge(graph):
    text = render_graph(graph, "dot")
    quoted = r'"(?:[^"\\]|\\.)*"'
    html = r"<[^<>\n]*(?:<[^<>\n]*>[^<>\n]*)*>"
    attribute = rf"\w+=(?:{quoted}|{html}|[\w.]+)"
    statement = re.compile(rf"  (?:n\d+(?: -> n\d+)?|graph|node|edge) \[{attribute}(?:, {attribute})*\];")
    first, *body, last = text.splitlines()
    assert (first, last) == ("digraph backward {", "}")
    assert all(statement.fullmatch(line) for line in body)
    assert sum(line.startswith("  n") and "->" not in line.partition("[")[0] for line in body) == len(graph) + 1
    assert sum("->" in line.partition("[")[0] for line in body) == len(set(graph.edges()))


@given(backward_graphs())
def test_mermaid_leaves_no_markup_in_a_text(graph):
    first, *body = render_graph(graph, "mermaid").splitlines()
    assert first == "flowchart TD"
    nodes = [line for line in body if re.match(r"  n\d+[(\[]", line)]
    assert len(nodes) == len(graph)
    for line in nodes:
        text = re.fullmatch(r'  n\d+[(\[]+"(.*)"[)\]]+:::gs-\w+', line)[1]
        plain = re.sub(r"</?b>|<br/>|#\d+;", "", text)
        assert not set(plain) & set('"<>&`|#;\\')
    assert sum("-->" in line for line in body) == len(set(graph.edges()))


@given(backward_graphs())
def test_graphml_reads_back(graph):
    read = networkx.read_graphml(io.BytesIO(render_graph(graph, "graphml").encode()), force_multigraph=True)
    assert {int(key) for key in read} == set(graph)
    expected = sorted((a, b, data["output_nr"], data["input_nr"]) for a, b, data in graph.edges(data=True))
    found = [(int(a), int(b), data["output_nr"], data["input_nr"]) for a, b, data in read.edges(data=True)]
    assert sorted(found) == expected
    for key, data in graph.nodes(data=True):
        assert read.nodes[str(key)]["name"] == data["name"]
        assert read.nodes[str(key)]["sequence_nr"] == str(data["sequence_nr"])


@given(backward_graphs())
def test_json_reads_back_with_everything(graph):
    data = json.loads(render_graph(graph, "json"))
    assert data["graph"]["version"] == 1
    read = networkx.node_link_graph(data, edges="links")
    assert (list(read), list(read.edges(keys=True))) == (list(graph), list(graph.edges(keys=True)))
    for key, facts in graph.nodes(data=True):
        assert read.nodes[key]["module"] == facts["module"]
        assert read.nodes[key]["location"]["source"] == facts["location"].source
        assert read.nodes[key]["outputs"][0]["shape"] == list(facts["outputs"][0].shape)
        assert len(read.nodes[key]["saved"]) == len(facts["saved"])


class Page(HTMLParser):
    """Checks that elements nest, and keeps what is in scripts."""

    VOID = {"meta", "input"}

    def __init__(self, text):
        super().__init__()
        self.stack, self.scripts, self.links = [], [], []
        self.feed(text)
        self.close()
        assert self.stack == []

    def handle_starttag(self, tag, attrs):
        self.links += [value for name, value in attrs if name in ("src", "href")]
        if tag not in self.VOID:
            self.stack.append(tag)
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag):
        assert self.stack.pop() == tag

    def handle_data(self, data):
        if self.stack and self.stack[-1] == "script":
            self.scripts[-1] += data


@given(backward_graphs())
def test_html_is_well_formed_and_needs_no_network(graph):
    text = to_html(graph, title="<&>")
    page = Page(text)
    assert page.links == []
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "").replace("http-equiv=", "")
    data = json.loads(page.scripts[0])
    texts = data["texts"]
    shown = [data["parameter"] or data["operator"] for _, data in graph.nodes(data=True)]
    assert [texts[title] for title, *_ in data["nodes"]] == shown
    assert len(data["edges"]) == 2 * graph.number_of_edges()
    names = [texts[name] for name, *_ in data["groups"]]
    for (_, facts), (_, _, home, *_) in zip(graph.nodes(data=True), data["nodes"]):
        assert names[home] == facts["module"]
    assert all(parent < number or not number for number, (_, parent, *_) in enumerate(data["groups"]))


def test_a_page_of_a_large_graph_divides_it():
    datas = [node(i) for i in range(5000)]
    data = json.loads(Page(to_html(graph_from([(i, i + 1) for i in range(4999)], datas))).scripts[0])
    children = [0] * len(data["groups"])
    for number, (_, parent, *_) in enumerate(data["groups"]):
        children[parent] += bool(number)
    for _, _, home, *_ in data["nodes"]:
        children[home] += 1
    assert max(children) <= 60


NODE = shutil.which("node")

BROWSER = """
// As much of a browser as the page needs.
const made = [];
function element(name) {
  const listeners = {};
  return {
    name, children: [], dataset: {}, style: {}, value: "", attributes: {}, textContent: "",
    classList: { toggle() {}, add() {}, remove() {} },
    setAttribute(key, value) { this.attributes[key] = value; },
    appendChild(child) { this.children.push(child); return child; },
    replaceChildren(...children) { this.children = children; },
    addEventListener(kind, action) { listeners[kind] = action; },
    fire(kind, event) { listeners[kind](event || {}); },
    getBoundingClientRect: () => ({ left: 0, top: 0, width: 800, height: 600 }),
    getContext: () => ({ measureText: (text) => ({ width: 7 * text.length }) }),
    focus() {},
  };
}
const known = {};
globalThis.document = {
  getElementById: (id) => (known[id] = known[id] || element(id)),
  querySelector: (name) => (known[name] = known[name] || element(name)),
  querySelectorAll: () => known.scene.children.filter((child) => child.attributes.class === "arrow"),
  createElement: element,
  createElementNS: (space, name) => element(name),
  addEventListener() {},
};
globalThis.window = { addEventListener() {}, removeEventListener() {} };
const boxes = () => known.scene.children.filter((child) => (child.attributes.class || "").startsWith("box"));
const counts = [];
const fs = require("fs"), input = JSON.parse(fs.readFileSync(0));
document.getElementById("graph").textContent = input.data;
(0, eval)(input.script);
counts.push(boxes().length);
known.fold.fire("click");
counts.push(boxes().length);
known.unfold.fire("click");
counts.push(boxes().length);
known.search.value = input.search;
known.search.fire("input");
counts.push(parseInt(known[".status"].textContent));
known.search.fire("keydown", { key: "Enter" });
counts.push(known.aside.children[0].textContent);
boxes()[0].fire("click");
console.log(JSON.stringify(counts));
"""


@pytest.mark.skipif(NODE is None, reason="Node.js runs the page's script here")
def test_the_script_of_a_page_draws_folds_and_finds():
    net = gs.nn.Sequential(*(m for _ in range(30) for m in (gs.nn.Linear(2, 2), gs.nn.ReLU())))
    with gi.track():
        loss = net(gs.ones(1, 2)).sum()
    graph = gi.graph(loss, params=net)
    data, script = Page(to_html(graph)).scripts
    given = json.dumps({"data": data, "script": script, "search": "58.weight"})
    done = subprocess.run([NODE, "-e", BROWSER], input=given, capture_output=True, text=True, timeout=60)
    assert done.stderr == ""
    start, folded, unfolded, found, title = json.loads(done.stdout)
    assert folded < start <= 70 < unfolded == len(graph)
    assert (found, title) == (1, "58.weight")


# --- choosing ---


def loss_graph():
    return gi.graph(gs.ones(2, requires_grad=True).exp().sum())


def test_the_ending_of_a_file_tells_the_format(tmp_path):
    for name, start in [("a.svg", "<svg"), ("a.gv", "digraph"), ("a.mmd", "flowchart"), ("a.HTM", "<!DOCTYPE")]:
        gi.write_graph(loss_graph(), tmp_path / name)
        assert (tmp_path / name).read_text(encoding="utf-8").startswith(start)
    gi.write_graph(loss_graph(), tmp_path / "a", "graphml")
    assert (tmp_path / "a").read_bytes().startswith(b"<?xml")
    with pytest.raises(ValueError, match=r"no format for the ending of 'a.png': choose one of svg, dot"):
        format_of("a.png")
    with pytest.raises(ValueError, match="no format 'png'"):
        render_graph(loss_graph(), "png")


@pytest.mark.parametrize("format", FORMATS)
def test_an_empty_graph_and_a_folded_one(format):
    assert render_graph(gi.graph([]), format)
    assert render_graph(gi.fold(gi.fold(loss_graph(), "chains"), "order"), format)


def test_what_has_been_seen_of_the_gradients_is_shown():
    w = gs.tensor([1.0, 0.0], requires_grad=True)
    session = gi.debug(w.log().sum())
    try:
        session.step(2)
        session.wait(20)
        graph = gi.graph_of(session)
    finally:
        session.abort()
        session.wait(20)
    boxes = make_picture(graph).boxes
    assert "gradient norm 1.41" in boxes[1].lines
    assert boxes[1].mark == "nonfinite"
    assert "1 Inf" in boxes[1].tooltip
    assert json.loads(render_graph(graph, "json"))["nodes"][1]["grad_inputs"][0]["norm"] == "inf"
    assert 'class="gs-box gs-node gs-nonfinite"' in to_svg(graph, graphviz=False)


@pytest.mark.parametrize(("scales", "norm"), [((3.0, 4.0), 5.0), ((np.inf, np.nan), np.nan), ((np.inf, 1.0), np.inf)])
def test_the_norm_of_a_node_is_that_of_all_its_incoming_gradients(scales, norm):
    one, two = gs.ones(2, requires_grad=True).unbind()
    session = gi.debug(one * scales[0] + two * scales[1])
    try:
        session.catch("nan", False)
        session.catch("inf", False)
        session.until("op:Unbind")
        session.wait(20)
        graph = gi.graph_of(session)
    finally:
        session.abort()
        session.wait(20)
    box = next(box for box in make_picture(graph).boxes if box.title == "Unbind")
    assert f"gradient norm {norm:.3g}" in box.lines
    data = next(data for _, data in graph.nodes(data=True) if data["operator"] == "Unbind")
    assert repr(node_scalars(data)["gradient_norm"]) == repr(float(norm))


def test_a_picture_that_nobody_can_look_at_is_refused_and_fitted_otherwise():
    graph = graph_from([], [node(i) for i in range(3001)])
    with pytest.raises(PictureTooLargeError, match=r"3,001 nodes cannot be looked at"):
        render_graph(graph, "svg", fit=False)
    assert render_graph(graph, "svg").startswith("<svg")


# --- Graphviz ---


def with_dot(tmp_path, monkeypatch, script):
    program = tmp_path / "dot"
    program.write_text(f"#!{sys.executable}\n{script}")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")


PLAIN = """\
graph 1 2 3
node 0 1 2.75 1 0.5 0 solid box black lightgrey
node 1 1 0.25 1 0.5 1 solid box black lightgrey
edge 0 1 4 1 2.5 1.5 2 1.5 1 1 0.5 solid black
stop
"""


def test_graphviz_lays_out_where_it_is_installed(tmp_path, monkeypatch):
    script = f"import sys; sys.stdin.read(); assert sys.argv[1:] == ['-Tplain']; sys.stdout.write({PLAIN!r})"
    with_dot(tmp_path, monkeypatch, script)
    text = to_svg(gi.graph(gs.ones(2, requires_grad=True).exp()))
    assert 'width="168" height="240"' in text
    assert 'd="M84 48 C120 84 120 156 84 192"' in text
    assert text.count('<text class="gs-title" x="84"') == 2


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
@settings(max_examples=10)
@given(backward_graphs())
def test_the_real_graphviz_reads_what_is_written(graph):
    text = render_graph(graph, "dot")
    done = subprocess.run(["dot", "-Tplain"], input=text.encode(), capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.count(b"\nnode ") == len(graph)


@pytest.mark.parametrize("script", ["import sys; sys.exit(1)", "import os; os.abort()", "print('graph 1 2')"])
def test_our_own_layout_stands_in_where_graphviz_fails(tmp_path, monkeypatch, script):
    with_dot(tmp_path, monkeypatch, script)
    assert "gs-box" in render_graph(loss_graph(), "svg")


def test_the_files_of_the_page_are_beside_the_code():
    page = Path(gi.__file__).parent / "graphs" / "formats" / "page"
    assert {path.name for path in page.iterdir()} == {"page.html", "page.css", "page.js", "layout.js"}
