"""``import gradscope`` is light: NumPy, and nothing that only an instrument, a test or a GPU needs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = (
    "cupy", "cupyx", "gradscope_tui", "hypothesis", "jinja2", "matplotlib", "ml_dtypes", "networkx", "pandas", "pytest",
    "rich", "scipy", "textual", "torch",
)  # fmt: skip


def modules_after(statement: str) -> set[str]:
    """Return the modules a fresh interpreter has after one statement."""
    code = f"import sys; {statement}; import json; print(json.dumps(sorted(sys.modules)))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(json.loads(result.stdout))


def test_import_loads_nothing_heavy() -> None:
    loaded = {name.partition(".")[0] for name in modules_after("import gradscope")}
    assert loaded.isdisjoint(HEAVY), sorted(loaded & set(HEAVY))


def test_import_leaves_the_instruments_for_later() -> None:
    loaded = modules_after("import gradscope")
    for name in ("inspect", "check", "testing", "cli", "utils", "serialization"):
        assert f"gradscope.{name}" not in loaded
    loaded = modules_after("import gradscope as gs; gs.utils.data.DataLoader, gs.save, gs.load, gs.serialization.save")
    assert "gradscope.serialization" in loaded
    assert "multiprocessing" not in loaded


def test_the_terminal_ui_loads_neither_numpy_nor_a_runtime() -> None:
    pytest.importorskip("textual")
    loaded = modules_after("import gradscope_tui.app")
    assert loaded.isdisjoint({"numpy", "torch", "sqlite3", "gradscope.runtime", "gradscope.inspect.adapters"})


@pytest.mark.slow
def test_scipy_loads_with_the_first_special_function() -> None:
    assert "scipy" not in modules_after("import gradscope as gs; gs.special.erf, gs.linalg.lu_factor, gs.erf")
    assert "scipy.special" in modules_after("import gradscope as gs; gs.erfc(gs.ones(2))")


def test_training_loads_nothing_heavy() -> None:
    statement = "import gradscope as gs; x = gs.ones(2, requires_grad=True); (x * x).sum().backward(); repr(x.grad)"
    loaded = {name.partition(".")[0] for name in modules_after(statement)}
    assert loaded.isdisjoint(HEAVY), sorted(loaded & set(HEAVY))


def test_gradient_assertions_need_neither_hypothesis_nor_pytest() -> None:
    loaded = modules_after("import gradscope.testing, gradscope.testing.strategies")
    assert loaded.isdisjoint({"hypothesis", "pytest"})


def test_the_screen_starts_without_what_its_first_paint_does_not_show() -> None:
    loaded = modules_after("import gradscope_tui.app")
    assert loaded.isdisjoint({
        "gradscope.check", "gradscope.inspect.adapters", "gradscope.inspect.debugging.session.debugger",
        "gradscope.inspect.diagnosis.nan.nan_stops", "gradscope.inspect.recording", "networkx",
    })  # fmt: skip


def test_a_front_loads_no_framework() -> None:
    """The program that it looks at does, in its own process."""
    prompt = "gradscope.cli.debug, gradscope.inspect.wire.process_prompt"
    for front in ("gradscope_tui.app", prompt, "gradscope.inspect.dap.adapter", "gradscope.cli"):
        loaded = modules_after(f"import {front}")
        assert loaded.isdisjoint({"numpy", "torch", "gradscope.runtime", "gradscope.inspect.adapters"})


@pytest.mark.parametrize("form", ["text", "sarif"])
def test_reading_sources_loads_no_runtime(form: str, tmp_path: Path) -> None:
    source = tmp_path / "train.py"
    source.write_text("loss.backward  # gradscope: ignore[GS101]\n")
    command = ["check", "--static", "--format", form, "--output-file", str(tmp_path / "report"), str(source)]
    loaded = modules_after(f"import gradscope.cli; assert gradscope.cli.main({command!r}) == 1")
    assert loaded.isdisjoint({"numpy", "torch", "gradscope.runtime", "gradscope.inspect.adapters"})
    assert "GS202" in (tmp_path / "report").read_text()


def test_infinite_numbers_are_computed_with_in_silence() -> None:
    """As PyTorch does; a test's own filters would hide that the package's are in the way of NumPy's warnings."""
    code = """if True:
        import gradscope as gs
        weight = gs.nn.Parameter(gs.ones(2))
        weight.grad = gs.tensor([float("inf"), 3e38])
        gs.nn.utils.clip_grad_norm_(weight, 1.0)
        weight.grad = gs.tensor([3e38, 3e38])
        gs.nn.utils.clip_grad_norm_(weight, 1.0)
        optimizer, scaler = gs.optim.SGD([weight]), gs.amp.GradScaler("cpu", init_scale=3e38)
        scaler.scale((weight * 1e5).sum() - (weight / 0).sum()).backward()
        scaler.step(optimizer)
        """
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stderr == ""
