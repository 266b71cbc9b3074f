"""What a type checker sees of gradscope, with all of its checks on."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import gradscope as gs

PACKAGE = Path(gs.__file__).parent
SEEN = {
    "gs.nn.Linear": r"def \(in_features: int, .*\) -> gradscope\.nn\.modules\.linear\.Linear",
    "gs.nn.Module": r"def \(\) -> gradscope\.nn\.modules\.module\.Module",
    "gs.nn.Linear(2, 3).weight": r"gradscope\.nn\.parameter\.Parameter",
    "gs.optim.SGD": r"def \(.*\) -> gradscope\.optim\.sgd\.SGD",
    "gs.nn.functional.relu": r"def \(.*\) -> gradscope\.runtime\.tensor\.tensor\.Tensor",
    "gs.ones(2) * 2": r"gradscope\.runtime\.tensor\.tensor\.Tensor",
    "gs.float32": r"gradscope\.runtime\.memory\.dtype\.dtype",
    "gs.bool": r"gradscope\.runtime\.memory\.dtype\.dtype",
    "gs.save": r"def \(.*\)",
    "gs.autocast": r"def \(.*\) -> gradscope\.amp\.autocast_mode\.autocast",
    **dict.fromkeys((f"gs.{name}" for name in gs._LAZY), r"types\.ModuleType"),
}


@pytest.mark.slow
def test_names_have_their_types(tmp_path: Path) -> None:
    pytest.importorskip("mypy", reason="asks a type checker")
    program = tmp_path / "program.py"
    program.write_text("import gradscope as gs\n" + "".join(f"reveal_type({expression})\n" for expression in SEEN))
    (tmp_path / "gradscope").symlink_to(PACKAGE)
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--no-error-summary", program.name]
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    types = re.findall(rf'{program.name}:\d+: note: Revealed type is "(.*)"', found.stdout)
    assert len(types) == len(SEEN), found.stdout + found.stderr
    assert not [line for line in found.stdout.splitlines() if line.startswith(program.name) and "error" in line]
    wrong = {e: seen for (e, expected), seen in zip(SEEN.items(), types) if not re.fullmatch(expected, seen)}
    assert wrong == {}
