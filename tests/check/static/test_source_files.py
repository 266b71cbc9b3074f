"""What is found in sources: three bad ones of each kind, and lookalikes in which nothing is sure."""

import gc
import linecache
import re
from textwrap import dedent

import pytest

import gradscope as gs
from gradscope.check import Silences, check_sources

HEAD = "import torch\nfrom torch import nn\nimport torch.nn.functional as F\n"

BAD = {
    "GS101": [
        "net = nn.Sequential(nn.Linear(2, 2), nn.Sigmoid(), nn.Dropout(0.1, inplace=True))",
        "class N(nn.Module):\n    def f(self):\n        return nn.Sequential(nn.ReLU(),\n        nn.ReLU(True))",
        "return_it = [nn.Sequential(nn.Tanh(), nn.LeakyReLU(0.1, inplace=True))]",
    ],
    "GS103": [
        "w = torch.ones(3, requires_grad=True)\nw += 1",
        "def f():\n    w = nn.Parameter(torch.ones(3))\n    w[0] = 1",
        "w = torch.zeros(3, requires_grad=True)\nprint(w)\nw.normal_()",
    ],
    "GS111": [
        "rows = torch.zeros(3).expand(4, 3)\nrows[0] = 1",
        "def f(x):\n    rows = x.unsqueeze(0).expand(4, -1)\n    for i in range(4):\n        rows[i] = f(i)",
        "e = torch.broadcast_to(torch.ones((3, 1)), (3, 5))\nif x:\n    e[:, 2] += 1",
        "e = x[None, :].expand(n, -1)\ne[1] = 0",
        "e = mask.unsqueeze(-1).broadcast_to((2, 3, 4))\ne[0, 1, -1] = 0",
    ],
    "GS201": [
        "loss = F.mse_loss(a, b).detach()\nprint(loss)\nloss.backward()",
        "model(x).sum().item().backward()",
        "def f():\n    loss = model(x).sum().data\n    loss.backward()",
    ],
    "GS202": ["loss.backward", "def f(optimizer):\n    optimizer.zero_grad  # first", "self.scheduler.step"],
    "GS203": [
        "x.requires_grad == True",
        "for p in model.parameters():\n    p.require_grad = False",
        "for name, p in model.named_parameters():\n    p.requires_grads = False",
    ],
    "GS204": [
        "torch.no_grad()",
        "def f():\n    torch.inference_mode()\n    return model(x)",
        "torch.autograd.enable_grad()",
    ],
    "GS205": [
        "for _ in range(3):\n    loss = f(w)\n    loss.backward()\n    w = w - 0.1 * w.grad",
        "while True:\n    f(w).backward()\n    with torch.no_grad():\n        w = w - lr * w.grad",
        "for x in data:\n    f(w, x).backward()\n    w = w - sum([lr * w.grad])",
    ],
    "GS206": [
        "loss.backward()\noptimizer.zero_grad()\noptimizer.step()",
        "def f(self):\n    self.f().backward(None)\n    print()\n    self.opt.zero_grad()\n    self.opt.step()",
        "for x in data:\n    model(x).backward()\n    o.zero_grad(set_to_none=True)\n    o.step()",
    ],
}

FINE = {
    "GS101": [
        "net = nn.Sequential(nn.Linear(2, 2), nn.ReLU(inplace=True))",
        "net = nn.Sequential(nn.Sigmoid(), nn.Linear(2, 2), nn.ReLU(True))",
        "net = nn.Sequential(nn.Sigmoid(), nn.Dropout(True))",
        "from mine import nn\nnet = nn.Sequential(nn.Sigmoid(), nn.ReLU(inplace=True))",
        "net = nn.Sequential(nn.Sigmoid(), *more, nn.ReLU(inplace=True))",
    ],
    "GS103": [
        "w = torch.ones(3, requires_grad=True)\nwith torch.no_grad():\n    w += 1",
        "@torch.no_grad()\ndef f():\n    w = torch.ones(3, requires_grad=True)\n    w += 1",
        "w = torch.ones(3, requires_grad=True)\nw = w * 2\nw += 1",
        "w = torch.ones(3, requires_grad=True)\nw.requires_grad_(False)\nw += 1",
        "w = nn.Parameter(torch.ones(3), requires_grad=False)\nw += 1",
        "w = nn.Parameter(torch.ones(3, dtype=torch.uint8), False)\nw.zero_()",
        "torch.set_grad_enabled(False)\nw = torch.ones(3, requires_grad=True)\nw += 1",
        "with pytest.raises(RuntimeError):\n    w = torch.ones(3, requires_grad=True)\n    w += 1",
        "w = torch.ones(3, requires_grad=True)\nw.data.add_(1)",
    ],
    "GS111": [
        "rows = torch.zeros(3).expand(4, 3).clone()\nrows[0] = 1",
        "rows = torch.zeros(3).expand(4, 3)\nrows = rows.contiguous()\nrows[0] = 1",
        "rows = torch.zeros(3).expand(4, 3)\nif x:\n    rows = rows.clone()\n    rows[0] = 1",
        "e = x[None, :].expand(n, -1)\ne[0] = 0",
        "e = x.expand(4, 3)\ne[0] = 0",
        "e = torch.zeros(1, 3).expand(1, 3)\ne[0] = 0",
        "e = torch.zeros(4, 1).expand(4, 3)\ne[0] = 0",
        "e = torch.zeros(3).expand(4, 3)\ne[mask, 0] = 0",
        "e = torch.zeros(3).expand(4, 3)\ne[...] = 0",
        "e = torch.zeros(3).expand(4, 3)\ndef f(e):\n    e[0] = 1",
        "e = torch.zeros(1, 3).expand(4, 3)\ne.resize_(4, 3)\ne[0] = 1",
        "words = [w.expand(4) for w in words]\nwords[0] = 1",
        "e = pattern.expand('x', 4)\ne[0] = 1",
    ],
    "GS201": [
        "loss = model(x).detach().requires_grad_()\nloss.backward()",
        "loss = model(x).detach()\nloss.requires_grad = True\nloss.backward()",
        "loss = model(x).detach()\nloss = model(x)\nloss.backward()",
        "with pytest.raises(RuntimeError):\n    model(x).detach().backward()",
        "loss = stream.data\nloss.backward()",
        "loss = model(x).item(0)\nloss.backward()",
    ],
    "GS202": [
        "loss.backward()",
        "step = optimizer.step",
        "with pytest.raises(AttributeError):\n    thing.backward",
        "walker.step",
    ],
    "GS203": [
        "assert x.requires_grad == True",
        "for p in model.parameters():\n    p.requires_grad = False",
        "for p in self.options:\n    p.require_grad = False",
        "self.require_grad = False",
    ],
    "GS204": [
        "with torch.no_grad():\n    model(x)",
        "mode = torch.no_grad()",
        "torch.set_grad_enabled(False)",
        "mine.no_grad()",
        "torch.no_grad().__enter__()",
    ],
    "GS205": [
        "for _ in range(3):\n    f(w).backward()\n    w = w - 0.1 * w.grad\n    w = w.detach()",
        "for _ in range(3):\n    f(w).backward()\n    w = w - 0.1 * w.grad\n    w.requires_grad_()",
        "for _ in range(3):\n    w = w - 0.1 * w.grad",
        "f(w).backward()\nw = w - 0.1 * w.grad",
        "for _ in range(3):\n    f(w).backward()\n    v = w - 0.1 * w.grad",
    ],
    "GS206": [
        "optimizer.zero_grad()\noptimizer.step()",
        "loss.backward()\noptimizer.step()\noptimizer.zero_grad()",
        "loss.backward()\na.zero_grad()\nb.step()",
        "loss.backward()\no.zero_grad()\nloss2.backward()\no.step()",
        "with torch.no_grad():\n    loss.backward()\n    o.zero_grad()\n    o.step()",
    ],
}


def cases(sources):
    return [pytest.param(code, source, id=f"{code}-{i}") for code in sources for i, source in enumerate(sources[code])]


def check(tmp_path, text, **options):
    path = tmp_path / "net.py"
    path.write_text(text)
    return check_sources([str(path)], **options)


@pytest.mark.parametrize(("code", "source"), cases(BAD))
def test_what_is_sure_is_found_once(tmp_path, code, source):
    told = check(tmp_path, HEAD + source)
    assert ([finding.code for finding in told.findings], told.unread) == ([code], ())
    assert told.findings[0].primary.source


@pytest.mark.parametrize(("code", "source"), cases(FINE))
def test_what_is_not_sure_is_left_alone(tmp_path, code, source):
    told = check(tmp_path, HEAD + source)
    assert (told.findings, told.unread) == ([], ())


@pytest.mark.parametrize("framework", ["gradscope", pytest.param("torch", marks=pytest.mark.torch)])
def test_layers_that_are_told_of_spoil_each_other(framework):
    """Every pair that GS101 knows: backward raises indeed."""
    from gradscope.check.rules.gs101_saved_tensor_modified import _IN_PLACE, _SAVING

    nn = (gs if framework == "gradscope" else pytest.importorskip("torch")).nn
    x = (gs if framework == "gradscope" else pytest.importorskip("torch")).ones(2, 4)
    for saving in _SAVING:
        for writing in _IN_PLACE:
            first = getattr(nn, saving)(1) if "oft" in saving else getattr(nn, saving)()
            net = nn.Sequential(nn.Linear(4, 4), first, getattr(nn, writing)(inplace=True))
            with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                net(x).sum().backward()


def test_comments_silence_and_are_told_of_where_they_do_not(tmp_path):
    silences = Silences()
    text = "loss.backward  # gradscope: ignore[GS202]\nloss.backward()  # gradscope: ignore[GS202, GS101, GS999]\n"
    told = check(tmp_path, text, silences=silences)
    assert (told.findings, told.suppressed) == ([], 1)
    assert [(notice.line, notice.text.partition(";")[0]) for notice in silences.notices(sources=told.files)] == [
        (2, "ignore[GS202] has silenced nothing in this run"),
        (2, "ignore[GS999]: no such code"),
    ]


def test_directories_are_read_without_what_was_built_or_installed(tmp_path):
    for name in ("a.py", "deep/b.py", ".venv/c.py", "build/d.py", "notes.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("loss.backward")
    told = check_sources([str(tmp_path), str(tmp_path / "a.py"), str(tmp_path / "build" / "d.py")])
    assert [path.removeprefix(f"{tmp_path}/") for path in told.files] == ["a.py", "deep/b.py", "build/d.py"]
    assert [finding.code for finding in told.findings] == ["GS202"] * 3


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"loss.backward\ndef", "line 2: "),
        (b"def f(:", "line 1: "),
        (b"x = 1\0", "null bytes"),
        (b"# coding: none\nloss.backward", "unknown encoding"),
        (b"loss.backward  # \xff", "invalid or missing encoding"),
        (b"loss.backward\n" + b"x = " + b"(" * 500 + b")" * 500, "too many nested parentheses"),
    ],
)
def test_a_file_that_cannot_be_read_is_told_of_and_the_others_are_read(tmp_path, content, words):
    (tmp_path / "a.py").write_bytes(content)
    (tmp_path / "b.py").write_text("loss.backward")
    told = check_sources([str(tmp_path)])
    assert len(told.findings) == len(told.files) == 1
    assert "line None" not in told.unread[0]
    assert re.match(re.escape(f"{tmp_path / 'a.py'}, which cannot be read: ") + ".*" + words, told.unread[0])


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no file or directory 'missing\.py'"):
        check_sources(["missing.py"])


def test_fixes_are_changes_of_the_source(tmp_path):
    text = dedent(
        """\
        def f(optimizer):
            optimizer.zero_grad  # clear
        """
    )
    (finding,) = check(tmp_path, text).findings
    (line, column), fix = finding.fix.start, finding.fix
    lines = text.splitlines()
    assert fix.start == fix.end
    assert (
        lines[line - 1][: column - 1] + fix.text + lines[line - 1][column - 1 :] == "    optimizer.zero_grad()  # clear"
    )


def test_a_file_is_read_once_where_no_comment_silences_anything(tmp_path, monkeypatch):
    monkeypatch.setattr(linecache, "getlines", lambda filename: pytest.fail(f"{filename} is read again"))
    silences = Silences()
    told = check(tmp_path, "loss.backward  # not called", silences=silences)
    assert [finding.code for finding in told.findings] == ["GS202"]
    assert list(silences.notices(sources=told.files)) == []


@pytest.mark.parametrize("on", [True, False])
def test_the_cyclic_collector_is_left_as_it_was(tmp_path, on):
    (gc.enable if on else gc.disable)()
    try:
        check(tmp_path, "loss.backward")
        with pytest.raises(FileNotFoundError):
            check_sources([str(tmp_path / "gone.py")])
        assert gc.isenabled() is on
    finally:
        gc.enable()


def test_a_notebook_is_not_taken_for_source_without_findings(tmp_path):
    (tmp_path / "explore.ipynb").write_text('{"cells": [{"source": ["optimizer.zero_grad"]}]}')
    told = check_sources([str(tmp_path / "explore.ipynb")])
    assert told.files == []
    assert told.unread[0].startswith(f"{tmp_path / 'explore.ipynb'}, which cannot be read: it is a notebook;")
    (tmp_path / "train.py").write_text("")
    assert check_sources([str(tmp_path)]).unread == ()
