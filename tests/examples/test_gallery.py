"""The gallery: each script is blamed on the line it should be, here and in PyTorch, and its fix leaves nothing to find.

What docs/gallery.md shows of each is compared with what the command prints.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import gradscope as gs
from gradscope.check.findings.finding_codes import CODES, all_codes
from gradscope.cli import main
from gradscope.inspect.source.source_syntax import definition_line

ROOT = Path(__file__).parents[2]
GALLERY = ROOT / "examples" / "gallery"
PAGE = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")


class Mistake(NamedTuple):
    code: str
    """The rule that finds it."""
    line: str
    """A part of the line that is to blame, and of no line before it."""
    said: str
    """What the report says on the line that names it."""
    fix: tuple[tuple[str, str], ...]

    @property
    def kind(self) -> str:
        """What the report begins with."""
        rule = all_codes()[self.code]
        return rule.kind or f"{rule.code} {rule.severity}"


MISTAKES = {
    "residual_add": Mistake(
        "GS101",
        "x += residual",
        "<- written here by add_",
        (("x += residual", "x = x + residual"),),
    ),
    "reused_batch": Mistake(
        "GS106",
        "yield gs.from_numpy(array)",
        "<- its memory was handed out here by from_numpy()",
        (("gs.from_numpy(array)", "gs.from_numpy(array.copy())"),),
    ),
    "gan_step_order": Mistake(
        "GS102",
        "opt_d.step()",
        "<- written here by Adam.step",
        (
            ("discriminator(real), discriminator(fake)", "discriminator(real), discriminator(fake.detach())"),
            ("    loss_g = gs.nn.functional.softplus(-on_fake).mean()\n", ""),
            ("loss_d.backward(retain_graph=True)", "loss_d.backward()"),
            (
                "    opt_g.zero_grad()\n",
                "    loss_g = gs.nn.functional.softplus(-discriminator(fake)).mean()\n    opt_g.zero_grad()\n",
            ),
        ),
    ),
    "hidden_kept": Mistake(
        "GS104",
        "hidden = gs.tanh(",
        "TanhBackward0 was recorded here",
        (("    loss = 0\n", "    loss, hidden = 0, hidden.detach()\n"),),
    ),
    "list_of_layers": Mistake(
        "D308",
        "self.hidden = [",
        "made at",
        (
            (
                "[gs.nn.Linear(width, width) for _ in range(depth)]",
                "gs.nn.ModuleList(gs.nn.Linear(width, width) for _ in range(depth))",
            ),
        ),
    ),
    "head_replaced": Mistake(
        "D308",
        "model.head = ",
        "made at",
        (
            ("optimizer = gs.optim.Adam(model.parameters(), lr=1e-2)\n", ""),
            (
                "model.head = gs.nn.Linear(16, 3)\n",
                "model.head = gs.nn.Linear(16, 3)\noptimizer = gs.optim.Adam(model.parameters(), lr=1e-2)\n",
            ),
        ),
    ),
    "tensor_of_losses": Mistake(
        "D303",
        "gs.tensor(uneven)",
        "not reached: tensor() copies the values into a tensor without history",
        (("gs.tensor(uneven)", "gs.stack(uneven)"),),
    ),
    "recording_off": Mistake(
        "D303",
        "gs.set_grad_enabled(False)",
        "turns recording off for all that follows",
        (("    gs.set_grad_enabled(False)\n    return", "    with gs.no_grad():\n        return"),),
    ),
    "distance_at_zero": Mistake(
        "D302",
        "return (a - b)",
        "Inf is produced in backward by SqrtBackward0",
        (("(a - b).pow(2).sum(1).sqrt()", "((a - b).pow(2).sum(1) + 1e-12).sqrt()"),),
    ),
    "double_where": Mistake(
        "D302",
        "gs.where(x > 0",
        "Inf is produced in forward by exp",
        (("gs.exp(x) - 1", "gs.exp(x.clamp(max=0)) - 1"),),
    ),
    "masked_row": Mistake(
        "D302",
        "gs.softmax(scores",
        "NaN is produced in forward by softmax",
        (("mask = window & real.unsqueeze(1)", "mask = window & real.unsqueeze(1) | gs.eye(6).bool()"),),
    ),
    "log_of_softmax": Mistake(
        "D302",
        "gs.log(likelihood)",
        "Inf is produced in forward by log",
        (
            ("gs.softmax(self.body(x), 1)", "gs.log_softmax(self.body(x), 1)"),
            ("-gs.log(likelihood).mean()", "-likelihood.mean()"),
        ),
    ),
    "total_loss": Mistake(
        "D311",
        "total_loss += loss",
        "it grows at",
        (("total_loss += loss", "total_loss += loss.item()"),),
    ),
    "penalty_constant": Mistake(
        "D305",
        "gs.autograd.grad(",
        "a gradient that autograd.grad() gave without a graph",
        (("critic(between).sum(), between)", "critic(between).sum(), between, create_graph=True)"),),
    ),
    "dead_relu": Mistake(
        "D316",
        "model(rows)",
        "the ReLU in `1` is not active for any of its 2,048 inputs",
        (("lr=0.5", "lr=1e-4"),),
    ),
    "deep_sigmoid": Mistake(
        "D314",
        "model(rows)",
        "SigmoidBackward0",
        (("gs.nn.Sigmoid()", "gs.nn.LayerNorm(16), gs.nn.GELU()"),),
    ),
    "no_zero_grad": Mistake(
        "D307",
        "loss.backward()",
        "adds to the gradients of iterations before",
        (
            ("    optimizer.zero_grad()\n    for", "    for"),
            ("        loss.backward()", "        optimizer.zero_grad()\n        loss.backward()"),
        ),
    ),
    "column_of_predictions": Mistake(
        "D306",
        "model(rows) - targets",
        "the loss compares each prediction with all targets",
        (("model(rows) - targets", "model(rows).squeeze(1) - targets"),),
    ),
}

FRAMEWORKS = ["gradscope", pytest.param("torch", marks=pytest.mark.torch)]


@pytest.fixture(autouse=True)
def _nothing_left(own_objects: None) -> Iterator[None]:
    """Each script sees its own objects alone, and turns recording off for itself alone."""
    with gs.enable_grad():
        yield


def script(name: str, framework: str, folder: Path, fix: tuple[tuple[str, str], ...] = ()) -> Path:
    """Return a script of the gallery, made into one of `framework` by its import alone."""
    source = (GALLERY / f"{name}.py").read_text(encoding="utf-8")
    if framework == "torch":
        source = source.replace("import gradscope as gs", "import torch as gs")
    for old, new in fix:
        assert source.count(old) == 1, old
        source = source.replace(old, new)
    path = folder / f"{name}.py"
    path.write_text(source, encoding="utf-8")
    return path


def report(
    command: str, path: Path, framework: str, capsys: pytest.CaptureFixture[str], *options: str
) -> tuple[int, list[str]]:
    """Return the exit status of the command and what it printed, places by the name of their file alone."""
    if framework == "torch":
        torch = pytest.importorskip("torch", reason="runs the gallery in PyTorch")
        with torch.enable_grad():
            status = main([command, *options, str(path)])
    else:
        status = main([command, *options, str(path)])
    return status, bare(capsys.readouterr().out).splitlines()


def bare(text: str) -> str:
    return re.sub(r"[^\s(]*/(?=\w+\.py:)", "", text)


def place(name: str, line: str) -> str:
    """Return ``file:line`` of the first line of a script that contains `line`."""
    lines = (GALLERY / f"{name}.py").read_text(encoding="utf-8").splitlines()
    return f"{name}.py:{next(number for number, text in enumerate(lines, 1) if line in text)}"


def section(name: str) -> str:
    """Return what the page says about a script."""
    (found,) = [part for part in PAGE.split("\n### ") if f"/{name}.py" in part.partition("```\n<!-- /output")[0]]
    return bare(found)


@pytest.mark.filterwarnings("ignore:Converting a tensor with requires_grad=True to a scalar")
@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("name", MISTAKES)
def test_the_doctor_blames_the_line(name, framework, tmp_path, capsys):
    mistake = MISTAKES[name]
    status, lines = report("doctor", script(name, framework, tmp_path), framework, capsys)
    assert status == 1
    assert any(re.match(rf"(D\d+ )?{mistake.kind}( \(.+?\))?:", text) for text in lines)
    where = re.compile(rf"{re.escape(place(name, mistake.line))}\b")
    deciding = [text for text in lines if where.search(text) and mistake.said in text]
    assert deciding, "\n".join(lines)
    if framework == "gradscope":
        assert deciding[0] in section(name)


@pytest.mark.parametrize("name", [name for name, mistake in MISTAKES.items() if mistake.code in CODES])
def test_check_blames_the_line_too(name, tmp_path, capsys):
    status, lines = report("check", script(name, "gradscope", tmp_path), "gradscope", capsys)
    assert status == 1
    assert [text for text in lines if place(name, MISTAKES[name].line) in text and MISTAKES[name].said in text]


@pytest.mark.parametrize("name", MISTAKES)
def test_the_fix_leaves_nothing_to_find(name, tmp_path, capsys):
    fix = MISTAKES[name].fix
    status, lines = report("doctor", script(name, "gradscope", tmp_path, fix), "gradscope", capsys)
    assert status == 0, "\n".join(lines)
    for _, new in fix:
        for line in filter(None, map(str.strip, new.splitlines())):
            assert line in section(name)


def test_the_wrong_formula_is_found_by_a_test(monkeypatch):
    monkeypatch.syspath_prepend(str(GALLERY))
    from swish_formula import Swish

    x = gs.linspace(-2, 2, 5, dtype=gs.float64, requires_grad=True)
    with pytest.raises(AssertionError) as caught:
        gs.testing.assert_gradients(Swish.apply, x)
    first = bare(str(caught.value)).splitlines()[0]
    line = definition_line(Swish.backward.__code__)
    assert first == f"wrong gradient in Swish.backward() at swish_formula.py:{line}"
    assert first in section("swish_formula")

    class Mended(Swish):
        @staticmethod
        def backward(ctx, grad):
            x, gate = ctx.saved_tensors
            return grad * (gate + x * gate * (1 - gate))

    gs.testing.assert_gradients(Mended.apply, x)


@pytest.mark.parametrize("options", [(), ("--functions",)])
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_the_doctor_tells_of_a_formula(framework, options, tmp_path, capsys):
    path = script("swish_formula", framework, tmp_path)
    status, lines = report("doctor", path, framework, capsys, *options)
    assert (status, lines[-1].startswith("1 finding in 5 backward passes.")) == (1, True)
    assert any(text.startswith("D304 wrong gradient (likely): Swish.backward") for text in lines)


@pytest.mark.parametrize("name", MISTAKES)
def test_machines_are_told_the_code(name, tmp_path, capsys):
    _, lines = report("doctor", script(name, "gradscope", tmp_path), "gradscope", capsys, "--format", "json")
    told = json.loads("\n".join(lines))
    assert MISTAKES[name].code in [symptom["code"] for symptom in told["symptoms"]]


def test_every_script_is_short_and_told_of_once():
    names = {path.stem for path in GALLERY.glob("*.py")}
    assert names == {*MISTAKES, "swish_formula"}
    assert all(len(path.read_text(encoding="utf-8").splitlines()) <= 40 for path in GALLERY.glob("*.py"))
    told = re.findall(r"```console\n\$ gradscope doctor (?:--functions )?examples/gallery/(\w+)\.py\n```", PAGE)
    assert sorted(told) == sorted(names)
