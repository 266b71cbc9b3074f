"""``gradscope export``."""

from __future__ import annotations

import pytest

from gradscope.cli import main
from tests.inspect.ranks.jobs import record_ranks

pytest.importorskip("pyarrow", reason="the extra `lake`")


def test_a_run_is_added_once(tmp_path, capsys):
    record_ranks(tmp_path / "run", 2)
    command = ["export", str(tmp_path / "run"), "-o", str(tmp_path / "lake")]
    assert main(command) == 0
    assert capsys.readouterr().out == f"added 36 nodes and 16 tensors of steps to {tmp_path}/lake, as run run\n"
    assert main([*command, "--follow"]) == 0
    assert capsys.readouterr().out == f"added 0 nodes and 0 tensors of steps to {tmp_path}/lake, as run run\n"


def test_what_cannot_be_exported(tmp_path, capsys):
    assert main(["export", f"{tmp_path}/none/", "-o", str(tmp_path / "lake")]) == 2
    assert capsys.readouterr().err.splitlines()[0] == f"gradscope export: there is no directory {tmp_path}/none/"
    record_ranks(tmp_path / "run", 1)
    (tmp_path / "file").touch()
    assert main(["export", str(tmp_path / "run"), "-o", str(tmp_path / "file")]) == 2
    what, cure = capsys.readouterr().err.splitlines()
    assert what == f"gradscope export: cannot write {tmp_path}/file: File exists"
    assert cure.startswith("What is there already stays: ")
