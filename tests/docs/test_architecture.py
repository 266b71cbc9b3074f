"""What docs/architecture.md says about adding a thing is done, in a copy of the packages."""

import json
import re
from pathlib import Path

import pytest

from tests.one_file import example_of, follow, run

ROOT = Path(__file__).parents[2]


def test_every_path_that_is_named_before_the_examples_exists():
    told = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8").partition("## Adding")[0]
    named = set(re.findall(r"`([\w/]+(?:\.py|/))`", told))
    folders = [ROOT / name for name in ("gradscope", "startup", "tui")]
    there = [path for folder in folders for path in (folder, *folder.rglob("*"))]
    endings = [f"/{path.relative_to(ROOT).as_posix()}{'/' if path.is_dir() else ''}" for path in there]
    assert len(named) > 50
    assert {path for path in named if not any(ending.endswith(f"/{path}") for ending in endings)} == set()


@pytest.mark.slow
def test_an_operator_is_one_declaration(tmp_path):
    folder = follow("Adding an operator", tmp_path)
    assert len(example_of("Adding an operator").files) == 2  # the declaration, and a program that uses it
    stubs = (folder / "gradscope/runtime/ops/interface.pyi").read_text(encoding="utf-8")
    assert "def sech(" in stubs
    done = run(folder, "python -c 'import gradscope; print(gradscope.__file__)'")
    assert done.stdout == f"{folder / 'gradscope' / '__init__.py'}\n"


@pytest.mark.slow
def test_a_finding_is_one_file(tmp_path):
    folder = follow("Adding a finding", tmp_path)
    (rule, script) = example_of("Adding a finding").files
    assert (folder / rule.path).read_text(encoding="utf-8") == rule.text
    explained = run(folder, "gradscope explain D399").stdout
    assert explained.startswith("D399: a dropout that drops nothing (warning)\n\nIn eval mode a dropout hands on")
    (folder / script.path).write_text(script.text.replace(".eval()", ".train()"), encoding="utf-8")
    assert run(folder, f"gradscope doctor {script.path}").stdout.startswith("Nothing found in 1 backward pass.")
    told = run(folder, f"gradscope doctor --format json {script.path}").stdout
    assert json.loads(told)["symptoms"] == []


@pytest.mark.slow
def test_an_event_is_one_declaration_and_its_emit(tmp_path):
    folder = follow("Adding an event", tmp_path)
    assert len(example_of("Adding an event").files) == 3  # the declaration, the emit, and who listens
    done = run(folder, "python -c 'from gradscope.runtime.events import *; print(ModuleFrozen.__match_args__)'")
    assert done.stdout == "('module', 'count')\n"


@pytest.mark.slow
def test_an_export_format_is_one_file(tmp_path):
    folder = follow("Adding an export format", tmp_path)
    assert (folder / "loss.csv").read_text(encoding="utf-8").startswith("Sum,Exp\n")
    helped = run(folder, "gradscope graph --help").stdout
    assert ".text or .txt, .csv\n" in helped
    assert "html, text or csv" in helped
    refused = run(folder, "gradscope graph -o loss.png loss.py")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "choose one of svg, dot, mermaid, graphml, json, html, text, csv" in refused.stderr


@pytest.mark.slow
def test_a_subcommand_is_one_file(tmp_path):
    folder = follow("Adding a subcommand", tmp_path)
    commands = run(folder, "gradscope --help").stdout
    assert commands.index("    ops ") > commands.index("    report ")
    assert run(folder, "gradscope ops nothing-of-the-sort").returncode == 1
    assert run(folder, "gradscope ops").returncode == 2
