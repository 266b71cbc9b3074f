"""The doctor says nothing of programs that are as they should be, models of other packages among them."""

import contextlib
import io
import json
from pathlib import Path

import pytest

from gradscope.cli import main

PROGRAMS = {path.stem: path for path in sorted((Path(__file__).parent / "healthy_programs").glob("*.py"))}
# What they need that gradscope is no stand-in for.
PACKAGES = {name for name, path in PROGRAMS.items() if "from transformers import" in path.read_text()}
CASES = [pytest.param(name, "torch", marks=pytest.mark.torch) for name in PROGRAMS]
CASES += [(name, "gradscope") for name in PROGRAMS if name not in PACKAGES]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "framework"), CASES)
def test_nothing_is_found(name, framework, tmp_path):
    for needed in ("torch",) * (framework == "torch") + ("transformers",) * (name in PACKAGES):
        module = pytest.importorskip(needed)
        if needed == "transformers" and not module.utils.is_torch_available():
            pytest.skip("this version of transformers needs a newer PyTorch")
    path = tmp_path / f"{name}.py"
    source = PROGRAMS[name].read_text()
    path.write_text(source if framework == "torch" else source.replace("torch", "gradscope"))
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        status = main(["doctor", "--format", "json", str(path)])
    assert ([symptom["text"] for symptom in json.loads(out.getvalue())["symptoms"]], status) == ([], 0)
