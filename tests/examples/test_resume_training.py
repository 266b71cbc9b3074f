"""The example that saves and goes on: to the same numbers, with any number of workers, here and in PyTorch."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "examples" / "resume_training.py"


def printed(path: Path, *args: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    spec = importlib.util.spec_from_file_location("resume_training", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.DATA = SCRIPT.parent / "data" / "digits.npz"
    monkeypatch.setattr("sys.argv", [str(path), *args])
    module.main()
    return capsys.readouterr().out.splitlines()


@pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")
def test_it_goes_on_to_the_same_numbers(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    alone = printed(SCRIPT, "--epochs", "3", "--save-after", "1", capsys=capsys, monkeypatch=monkeypatch)
    assert [line.endswith(": the same") for line in alone if "resumed" in line] == [True, True]
    values = [float(line.split()[-1]) for line in alone if line.startswith("epoch") and "resumed" not in line]
    assert values[0] > 2 * values[2] > 0
    shared = printed(
        SCRIPT, "--epochs", "3", "--save-after", "1", "--workers", "2", capsys=capsys, monkeypatch=monkeypatch
    )
    assert shared == alone


@pytest.mark.torch
def test_it_is_pytorchs_code(
    torch: object, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    source = SCRIPT.read_text(encoding="utf-8")
    twin = tmp_path / "resume_training.py"
    twin.write_text(
        source.replace("import gradscope as gs", "import torch as gs").replace("gradscope.utils", "torch.utils"),
        encoding="utf-8",
    )
    lines = printed(twin, "--epochs", "2", "--save-after", "1", capsys=capsys, monkeypatch=monkeypatch)
    assert lines[-1].endswith(": the same")
