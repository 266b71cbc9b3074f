"""Names that do harm where they are obeyed, through everything that shows a name."""

from __future__ import annotations

import io
import json
import os
import random
import re
import tempfile
import warnings
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import networkx

import gradscope as gs
import gradscope.inspect as gi
from gradscope.cli import main
from gradscope.inspect.graphs.formats.graph_files import FORMATS, render_graph
from gradscope.inspect.graphs.formats.notebook import mime_bundle
from gradscope.inspect.output.terminal_text import printable, say
from gradscope.inspect.recording.reports.html_report import html_report
from tests.hostile.guarded import silenced

_TERMINAL = (
    "\x1b[2J", "\x1b]0;owned\x07", "\x1b]8;;http://evil\x1b\\x\x1b]8;;\x1b\\", "\x9b31m", "\x90q\x9c", "\r", "\x08" * 9,
    "\x00", "\x7f", "\x0b\x0c", "\u202e", "\u2066", "\u200e", "\u2028", "\u2029", "\ufeff", "\ufffe", "\ud800",
    "\udcff",     "\n", "\t", "\r\n", "\U000e0041", "x" * 5000, "é" * 300, "世界", "👩\u200d💻", "", " ",
)  # fmt: skip
_MARKUP = (
    "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "</title><b>", "</svg><a href=x>", "]]>", "<!--",
    "-->", "' onload='x", '" onload="x', "&lt;b&gt;", "&#x3c;", "javascript:x", "{{ 7 * 7 }}", "{% raw %}", "${x}",
    "{0.__class__}", "[red]x[/red]", "[link=http://evil]x[/link]", "[@click=app.quit]x[/]", "[/]", "\\", "\\n", "|",
    "`", "#", ";", "%%", "%s", '"]; a -> b [label="', "end\nclick A href", "graph TD", "../../etc/passwd", "C:\\x",
    "-o", "=1+1", "@x",
)  # fmt: skip
_PARTS = _TERMINAL + _MARKUP


def hostile_name(number: int) -> str:
    """Return a name: the first ones are single parts, the others are put together of several."""
    if number < len(_PARTS):
        return _PARTS[number]
    chance = random.Random(number)
    return "".join(chance.choices(_PARTS, k=chance.randrange(2, 6)))


def _program(name: str) -> tuple[gs.nn.Module, str]:
    """Return a module with a name, and the path of a file with it whose line made its output."""
    model = gs.nn.Sequential()
    model.add_module(name.replace(".", "_") or "empty", gs.nn.Linear(2, 2))
    return model, name.replace("\0", "") or "empty"


def _run(name: str) -> None:
    """Run a backward of a program in which all that can have a name has this one, and one that fails."""
    model, filename = _program(name)
    scope = {"model": model, "gs": gs}
    source = "def f():\n    return model(gs.ones(1, 2)).sum()\n"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(compile(source, filename.encode("utf-8", "replace").decode(), "exec"), scope)
    scope["f"]().backward()
    loss = scope["f"]()

    def fail(grad: gs.Tensor) -> None:
        raise ValueError(name)

    loss.register_hook(fail)
    try:
        loss.backward()
    except ValueError:
        pass


def _recorded(name: str, path: Path) -> Path:
    with gi.record(path, title=name, keep="all") as recorder:
        recorder.iteration(name)
        _run(name)
        recorder.mark(name)
    assert not recorder.failure, recorder.failure
    return path


def _commands(path: Path, other: Path) -> list[list[str]]:
    file = str(path)
    return [
        ["view", file, "--text"],
        ["view", file, "--events"],
        ["view", file, "--violations"],
        ["view", file, "--iteration", "1", "--limit", "0"],
        ["view", file, "--iteration", "1", "--node", "1"],
        ["view", file, "-c", "overview; iterations; backward 1; nodes; node 1; value; events; backward 77"],
        ["diff", file, str(other)],
        ["diff", file, str(other), "--table"],
        ["report", file, "-o", str(path.with_suffix(".html"))],
        ["view", file, "--export", str(path.with_suffix(".json"))],
    ]


def _assert_terminal_is_safe(text: str) -> None:
    # The borders of Rich's tables are its own; without a terminal it writes no escape sequences.
    assert printable(text) == text, f"not printable: {text!r:.200}"


class _Structure(HTMLParser):
    """Elements with the names of their attributes, in their order; a page's own are all there are."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[tuple[str, tuple[str, ...]]] = []
        self.other: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, tuple(name for name, _ in attrs)))

    def handle_comment(self, data: str) -> None:
        self.other.append(data)

    def handle_pi(self, data: str) -> None:
        self.other.append(data)

    def unknown_decl(self, data: str) -> None:
        self.other.append(data)


def _shape(page: str) -> tuple[list[tuple[str, tuple[str, ...]]], list[str]]:
    read = _Structure(page)
    return read.found, read.other


def _graph(name: str) -> gi.BackwardGraph:
    model, _ = _program(name)
    with gi.track():
        loss = model(gs.ones(1, 2)).sum()
    return gi.graph(loss, params=model)


_QUOTED = r'"(?:[^"\\]|\\.)*"'
_DOT_LINE = re.compile(rf"  (?:n\d+(?: -> n\d+)?|graph|node|edge) \[(?:{_QUOTED}|<[^\n]*>|[^\"\[\]<>])*\];")


def check_graphs(name: str, benign: dict[str, str]) -> None:
    """Write the graph of a program in every format; each must parse back, and have the shape of a benign one."""
    graph = _graph(name)
    made = {format: render_graph(graph, format) for format in FORMATS}
    for text in made.values():
        text.encode()
        assert printable(text) == text
    for format in ("svg", "html"):
        assert _shape(made[format]) == _shape(benign[format]), format
    ElementTree.fromstring(made["svg"])
    assert len(json.loads(made["json"])["nodes"]) == len(graph)
    assert len(networkx.parse_graphml(made["graphml"], force_multigraph=True)) == len(graph)
    head, *body, last = made["dot"].splitlines()
    assert (head, last, len(body)) == ("digraph backward {", "}", len(benign["dot"].splitlines()) - 2)
    assert all(_DOT_LINE.fullmatch(line) for line in body)
    assert len(made["mermaid"].splitlines()) == len(benign["mermaid"].splitlines())
    bundle = mime_bundle(graph)
    assert _shape(bundle["text/html"]) == _shape(benign["notebook"])


def _benign(name: str) -> dict[str, str]:
    graph = _graph(name)
    return {
        **{format: render_graph(graph, format) for format in FORMATS},
        "notebook": mime_bundle(graph)["text/html"],
    }


class Case:
    """The case of a number: a program with a hostile name, recorded, looked at, drawn and explained."""

    def __init__(self) -> None:
        self._kept = tempfile.TemporaryDirectory(prefix="hostile-")
        self._folder = Path(self._kept.name)
        self._other = _recorded("plain", self._folder / "plain.gscope")
        with gi.open_recording(self._other) as recording:
            self._page = html_report(recording)
        self._benign = _benign("plain")

    def __call__(self, number: int) -> None:
        name = hostile_name(number)
        path = _recorded(name, self._folder / f"{os.getpid()}.gscope")
        for command in _commands(path, self._other):
            with silenced() as printed:
                status = main(command)
            out, error = printed["stdout"].getvalue(), printed["stderr"].getvalue()
            assert status in (0, 1), f"{command[0]}: {error}"
            assert "Traceback" not in error
            _assert_terminal_is_safe(out + error)
        page = path.with_suffix(".html").read_text(encoding="utf-8")
        assert _shape(page) == _shape(self._page)
        assert printable(page) == page
        trace = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
        assert trace["traceEvents"]
        check_graphs(name, self._benign)
        self._check_explanations(name)

    def _check_explanations(self, name: str) -> None:
        model, _ = _program(name)
        with gi.track():
            loss = model(gs.ones(1, 2) / 0).sum()
        for explanation in (gi.memory(loss), gi.gradient_flow(model, loss)):
            stream = io.StringIO()
            say(explanation, file=stream)
            _assert_terminal_is_safe(stream.getvalue())
            made = explanation.to_json()
            _assert_terminal_is_safe(made)
            json.loads(made)
