"""The doctor says nothing of programs that are as they should be, models of other packages among them."""

import ast
import contextlib
import importlib.util
import io
import json
import sys
from pathlib import Path

import pytest

from gradscope.cli import main

TRIAL = Path(__file__).parents[3] / "docs" / "doctor-trial.md"
PROGRAMS = {path.stem: path for path in sorted((Path(__file__).parent / "healthy_programs").glob("*.py"))}
# What is there wherever PyTorch is.
COMMON = {"torch", "numpy", *sys.stdlib_module_names}


def packages_of(source):
    """Return the packages that a program needs and that gradscope is no stand-in for."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module.partition(".")[0])
    return found - COMMON


PACKAGES = {name: packages_of(path.read_text()) for name, path in PROGRAMS.items()}
CASES = [pytest.param(name, "torch", marks=pytest.mark.torch) for name in PROGRAMS]
CASES += [(name, "gradscope") for name in PROGRAMS if not PACKAGES[name]]


def skip_without(package):
    """Skip the test where a package is not installed, or not for this version of PyTorch."""
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    try:
        module = importlib.import_module(package)
    except (ImportError, RuntimeError) as error:  # its binaries, or those of torchvision, are of another PyTorch
        pytest.skip(f"{package} cannot be imported: {error}")
    if package == "transformers" and not module.utils.is_torch_available():
        pytest.skip("this version of transformers needs a newer PyTorch")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "framework"), CASES)
def test_nothing_is_found(name, framework, tmp_path):
    if framework == "torch":
        pytest.importorskip("torch")
    for package in sorted(PACKAGES[name]):
        skip_without(package)
    path = tmp_path / f"{name}.py"
    source = PROGRAMS[name].read_text()
    path.write_text(source if framework == "torch" else source.replace("torch", "gradscope"))
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        status = main(["doctor", "--format", "json", str(path)])
    assert ([symptom["text"] for symptom in json.loads(out.getvalue())["symptoms"]], status) == ([], 0)


def test_the_trial_names_the_trainings_of_other_packages():
    page = TRIAL.read_text(encoding="utf-8")
    assert [
        name for name, packages in PACKAGES.items() if packages - {"transformers"} and f"| `{name}` |" not in page
    ] == []
