"""``gradscope agree``."""

from __future__ import annotations

import json

from gradscope.cli import main
from tests.inspect.ranks.jobs import record_ranks


def agree(capsys, *arguments):
    status = main(["agree", *map(str, arguments)])
    done = capsys.readouterr()
    return status, done.out, done.err


def test_ranks_that_agree(tmp_path, capsys):
    record_ranks(tmp_path, 2)
    told = "2 ranks agree: 4 parameters and buffers and their gradients in 2 steps\n"
    assert agree(capsys, tmp_path) == (0, told, "")
    assert agree(capsys, tmp_path / "rank-0.gscope", tmp_path / "rank-1.gscope") == (0, told, "")


def test_ranks_that_do_not(tmp_path, capsys):
    record_ranks(tmp_path, 3, [0])
    record_ranks(tmp_path, 3, [1], lr=0.2)
    status, out, _ = agree(capsys, tmp_path)
    assert (status, out.splitlines()[0]) == (1, "2 ranks disagree: iteration 1, before step 1, parameter 0.weight")
    assert out.endswith("note: no recording of rank 2: it was not started, or it could not write one\n")
    status, out, _ = agree(capsys, tmp_path, "--format", "json")
    data = json.loads(out)
    assert (status, data["agree"], data["first"]["name"], data["steps"]) == (1, False, "0.weight", 1)
    assert data["first"]["held"].keys() == {"0", "1"}


def test_what_is_no_run(tmp_path, capsys):
    status, _, err = agree(capsys, f"{tmp_path}/none/")
    assert (status, err.splitlines()[0]) == (2, f"gradscope agree: there is no directory {tmp_path}/none/")
    record_ranks(tmp_path, 2, [0])
    assert agree(capsys, tmp_path)[0] == 2
