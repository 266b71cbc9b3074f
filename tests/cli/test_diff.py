"""``gradscope diff``."""

import pytest

from gradscope.cli import main
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
    assert lines[0].startswith("first difference after 10 nodes: iteration 1, backward 0")
    assert lines[1].startswith(f"  A {paths['a']}: node 1 of 9: PowBackward0")
    assert lines[2].startswith(f"  B {paths['b']}: node 1 of 9: PowBackward0")
    assert lines[3].startswith("  grad_inputs[0]: norm ")


def test_iterations(paths, capsys):
    assert main(["diff", f"{paths['a']}:0", f"{paths['b']}:0"]) == 0
    assert main(["diff", f"{paths['a']}:0", f"{paths['a']}:1"]) == 1
    assert main(["diff", f"{paths['a']}:0", f"{paths['a']}:1", "--rtol", "10"]) == 0
    capsys.readouterr()


def test_a_table(paths, capsys):
    assert main(["diff", paths["a"], paths["b"], "--table"]) == 1
    assert "grad_inputs[0]" in capsys.readouterr().out


def test_what_is_not_there(paths, tmp_path, capsys):
    assert main(["diff", paths["a"], str(tmp_path / "none")]) == 2
    assert main(["diff", f"{paths['a']}:9", f"{paths['a']}:1"]) == 2
    assert "has no iteration 9; it has 0 to 2" in capsys.readouterr().err
