"""The pre-commit hook and the GitHub Action of this repository: what they run finds what it should."""

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.test_check import BUG

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).parents[2]

needs_bash = pytest.mark.skipif(shutil.which("bash") is None, reason="the system has no bash")


@pytest.fixture
def project(tmp_path):
    (tmp_path / "script.py").write_text(BUG)
    # The command, as it is installed in the environment of the tests.
    (tmp_path / "bin").mkdir()
    command = tmp_path / "bin" / "gradscope"
    command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m gradscope "$@"\n')
    command.chmod(0o755)
    return tmp_path


def run(project, command, **variables):
    environment = {**os.environ, "PATH": f"{project / 'bin'}{os.pathsep}{os.environ['PATH']}", **variables}
    return subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, timeout=120)


def test_the_hook_runs_the_command_with_its_arguments(project):
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    done = run(project, [*shlex.split(hook["entry"]), "--select", "GS101", "script.py"])
    assert done.returncode == 1
    assert "GS101 error" in done.stdout
    assert (hook["id"], hook["language"], hook["pass_filenames"]) == ("gradscope-check", "system", False)


def step(**inputs):
    """Return the script of the action's last step, and its variables with the inputs filled in."""
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    values = {name: str(facts.get("default", "")) for name, facts in action["inputs"].items()} | inputs
    last = action["runs"]["steps"][-1]
    variables = {name: values[text.split("inputs.")[1].split(" ")[0]] for name, text in last["env"].items()}
    return last["run"], variables


@needs_bash
def test_the_action_annotates(project):
    script, variables = step(run="script.py --lr 1", options="--select GS101")
    done = run(project, ["bash", "-e", "-c", script], **variables)
    assert done.returncode == 1
    assert done.stdout.splitlines()[0] == "training ['--lr', '1']"
    assert "::error file=script.py,line=6,title=GS101" in done.stdout


@needs_bash
def test_the_action_writes_sarif_for_code_scanning(project):
    script, variables = step(run="script.py", format="sarif", **{"output-file": "out put.sarif"})
    assert run(project, ["bash", "-e", "-c", script], **variables).returncode == 1
    assert json.loads((project / "out put.sarif").read_text())["version"] == "2.1.0"


@needs_bash
def test_the_inputs_of_the_action_are_no_commands(project):
    script, variables = step(run="script.py $(touch spoiled) ; touch spoiled *")
    done = run(project, ["bash", "-e", "-c", script], **variables)
    assert "training ['$(touch', 'spoiled)', ';', 'touch', 'spoiled', '*']" in done.stdout
    assert not (project / "spoiled").exists()
