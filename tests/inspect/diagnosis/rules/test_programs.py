"""The bad program of each of the doctor's rules has that finding alone, the good one has none."""

import contextlib
import io
import json

import pytest

from gradscope.cli import main
from gradscope.inspect.diagnosis.rule_registry import load_rules
from tests.pytorch_versions import require_pytorch

RULES = {rule.code: rule for rule in load_rules("gradscope.inspect.diagnosis.rules")}
CASES = [
    pytest.param(code, framework, marks=pytest.mark.torch if framework == "PyTorch" else ())
    for code in RULES
    for framework in ("gradscope", "PyTorch")
]


def found_in(program, path, framework, code):
    """Return the exit status and the codes of what the doctor finds in a program."""
    if framework == "PyTorch":
        torch = pytest.importorskip("torch")
        if code in ("D336", "D337"):
            require_pytorch(torch, "2.8")  # 2.4 does not tell what gradients its nodes expect
    path.write_text(f"import {'torch' if framework == 'PyTorch' else 'gradscope'} as gs\n\n{program}\n")
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        status = main(["doctor", "--format", "json", str(path)])
    return status, [symptom["code"] for symptom in json.loads(out.getvalue())["symptoms"]]


@pytest.mark.filterwarnings("ignore:Detected call of `lr_scheduler.step")
@pytest.mark.parametrize(("code", "framework"), CASES)
def test_the_bad_program_has_it_and_the_good_one_has_nothing(code, framework, tmp_path):
    assert found_in(RULES[code].bad, tmp_path / "bad.py", framework, code) == (1, [code])
    assert found_in(RULES[code].good, tmp_path / "good.py", framework, code) == (0, [])
