"""``gradscope diff``."""

import pytest

from gradscope.cli import main
from tests.inspect.ranks.jobs import record_ranks
from tests.inspect.recording.programs import recorded


@pytest.fixture
def paths(tmp_path):
    for name, lr in (("a", 0.1), ("same", 0.1), ("b", 0.3)):
        recorded(tmp_path / name, lr=lr).close()
    return {name: str(tmp_path / name) for name in ("a", "same", "b")}


def test_equal(paths, capsys):
    assert main(["diff", paths["a"], paths["same"], "--exact"]) == 0
    assert capsys.readouterr().out == "no difference in 27 nodes of 3 iterations\n"


def test_different(paths, capsys):
    assert main(["diff", paths["a"], paths["b"]]) == 1
    lines = capsys.readouterr().out.splitlines()
    # The first step is the same: the learning rate has not been used yet.
    assert lines[0].startswith("first difference after 10 nodes: iteration 2, backward 1")
    assert lines[1].startswith(f"  A {paths['a']}: node 1 of 9: PowBackward0")
    assert lines[2].startswith(f"  B {paths['b']}: node 1 of 9: PowBackward0")
    assert lines[3].startswith("  grad_inputs[0]: norm ")


def test_iterations(paths, capsys):
    assert main(["diff", f"{paths['a']}:1", f"{paths['b']}:1"]) == 0
    assert main(["diff", f"{paths['a']}:1", f"{paths['a']}:2"]) == 1
    assert main(["diff", f"{paths['a']}:1", f"{paths['a']}:2", "--rtol", "10"]) == 0
    capsys.readouterr()


def test_a_table(paths, capsys):
    assert main(["diff", paths["a"], paths["b"], "--table"]) == 1
    assert "grad_inputs[0]" in capsys.readouterr().out


def test_what_is_not_there(paths, tmp_path, capsys):
    assert main(["diff", paths["a"], str(tmp_path / "none")]) == 2
    assert main(["diff", f"{paths['a']}:9", f"{paths['a']}:1"]) == 2
    assert "has no iteration 9; it has 1 to 3" in capsys.readouterr().err


def test_ranks_are_compared_one_by_one(tmp_path, capsys):
    record_ranks(tmp_path / "a", 2)
    record_ranks(tmp_path / "b", 2, [0])
    record_ranks(tmp_path / "b", 2, [1], lr=0.3)
    assert main(["diff", str(tmp_path / "a"), str(tmp_path / "a")]) == 0
    assert capsys.readouterr().out.splitlines()[::2] == ["rank 0:", "rank 1:"]
    assert main(["diff", str(tmp_path / "a"), str(tmp_path / "b")]) == 1
    told = capsys.readouterr().out
    assert "rank 0:\nno difference in 18 nodes of 2 iterations\nrank 1:\nfirst difference after 10 nodes" in told
    assert main(["diff", str(tmp_path / "a"), str(tmp_path / "a" / "rank-0.gscope")]) == 2
    assert "Choose one with --rank N" in capsys.readouterr().err
