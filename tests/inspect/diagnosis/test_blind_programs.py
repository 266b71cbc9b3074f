"""Programs that were broken without a look at the rules: the doctor says of each what the table says that it does."""

from pathlib import Path

import pytest

from tests.inspect.diagnosis.blind_trial import FOLDERS, TRIALS, VERDICTS, findings_in, table
from tests.pytorch_versions import require_pytorch

PAGE = Path(__file__).parents[3] / "docs" / "doctor-trial.md"


HIDES_ALL = ("causal_mask_of_the_wrong_sense",)
"""Programs in whose attention a row sees nothing: it is NaN in PyTorch 2.4, and 0 later."""


def case(trial):
    """Return a program as a parameter: what was named at first sight is what other tests hold too, and runs slowly."""
    marks = [pytest.mark.torch] if trial.needs_pytorch else []
    return pytest.param(trial, id=trial.program, marks=marks + [pytest.mark.slow] * (trial.first == "cause"))


@pytest.mark.parametrize("trial", [case(trial) for trial in TRIALS])
def test_the_verdict_is_that_of_the_table(trial):
    if trial.needs_pytorch:
        torch = pytest.importorskip("torch")
        if trial.finding in ("D336", "D337") or trial.program in HIDES_ALL:
            require_pytorch(torch, "2.8")  # 2.4 does not tell what gradients its nodes expect
    found = findings_in(trial.path)
    assert {code for code, _ in found} == ({trial.finding} if trial.finding else set())
    assert all(trial.says in text for _, text in found)


def test_every_program_has_its_verdict():
    for folder in FOLDERS:
        assert {trial.program for trial in TRIALS if trial.folder == folder} == {p.stem for p in folder.glob("*.py")}


def test_every_verdict_is_one_of_those_explained():
    assert {trial.first for trial in TRIALS} | {trial.now for trial in TRIALS} <= set(VERDICTS)
    assert [trial.program for trial in TRIALS if (trial.now == "missed") != (trial.finding == "")] == []


@pytest.mark.parametrize("folder", [folder.name for folder in FOLDERS])
def test_the_page_shows_the_table(folder):
    assert table(folder) in PAGE.read_text(encoding="utf-8")
