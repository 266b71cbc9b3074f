"""The norm of one node on every rank, whose graph differs, and who cannot be asked."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from gradscope.inspect.ranks.rank_comparison import matched_identities
from gradscope.inspect.records.records import EdgeRecord, Location, NodeRecord

pytestmark = pytest.mark.skipif(os.name != "posix", reason="processes have signals")

SCALED = """\
import os
import gradscope as gs
rank = int(os.environ["RANK"])
x = gs.ones(4, requires_grad=True)
y = x * (rank + 1)
if rank == 1:
    y = y.exp()
(y * (rank + 1)).sum().backward()
"""

UNBOUND = """\
import os
import gradscope as gs
one, two = gs.ones(2, requires_grad=True).unbind()
infinite = float("inf") if os.environ["RANK"] == "1" else 3.0
(one * infinite + two * (infinite - infinite + 4)).backward()
"""

KILLED = """\
import os, signal
import gradscope as gs
x = gs.ones(2, requires_grad=True)
(x * 2).sum().backward()
if os.environ["RANK"] == "1":
    os.kill(os.getpid(), signal.SIGKILL)
(x * 3).sum().backward()
"""


def compare(folder, script, commands):
    (folder / "script.py").write_text(script)
    command = [sys.executable, "-m", "gradscope", "debug", "--nproc-per-node", "2", "-c", commands, "script.py"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=200)


def graph(*names, line):
    """Return nodes whose forward was followed, or not, and a leaf."""
    place = Location("train.py", 3, "main", "y = f(x)") if line else None
    nodes = [
        NodeRecord(index, index, name, name, index, "body" if line else "", "", place, (EdgeRecord(index + 1, 0),))
        for index, name in enumerate(names)
    ]
    return [*nodes, NodeRecord(len(names), len(names), "AccumulateGrad", "AccumulateGrad", 0, "", "w", None, ())]


def test_nodes_without_lines_since_a_front_came_after_their_forward_are_matched_all_the_same():
    ours, theirs = matched_identities(graph("Exp", "Mul", line=True), graph("Exp", "Mul", line=False))
    assert ours == theirs
    ours, theirs = matched_identities(graph("Exp", "Mul", line=True), graph("Mul", line=False))
    assert set(ours).difference(theirs) == {ours[0]}
    ours, theirs = matched_identities(graph("Exp", line=True), graph("Exp", line=True))
    assert ours[0].place == "train.py, main: y = f(x)"


@pytest.mark.slow
def test_norms_stand_side_by_side_and_the_other_graph_is_named(tmp_path):
    run = compare(tmp_path, SCALED, "step; rank 0; ranks; quit")
    assert "node 1 of 4: MulBackward0, on 2 ranks\n" in run.stdout, run.stdout + run.stderr
    assert "> norm 2          rank 0: paused before node 1: MulBackward0, backward 1\n" in run.stdout
    assert "  norm 2          rank 1: paused before node 1: MulBackward0, backward 1\n" in run.stdout
    own = "rank 1: its graph differs; nodes of its own: 1, first ExpBackward0  [script.py, <module>: y = y.exp()]\n"
    assert own in run.stdout


@pytest.mark.slow
def test_a_node_that_one_rank_alone_has_is_not_looked_for_by_its_number(tmp_path):
    run = compare(tmp_path, SCALED, "step 2; rank 1; ranks; rank 0; ranks; quit")
    assert "node 2 of 5: ExpBackward0, on 2 ranks\n" in run.stdout, run.stdout + run.stderr
    assert "rank 0: paused before node 2: MulBackward0, backward 1; it has no such node\n" in run.stdout
    assert "  norm -          rank 1: paused before node 2: ExpBackward0, backward 1; it has not come" in run.stdout
    assert "rank 0: its graph differs; nodes of rank 1 that it lacks: 1, first ExpBackward0" in run.stdout


@pytest.mark.slow
def test_an_infinite_gradient_hides_no_nan_beside_it(tmp_path):
    run = compare(tmp_path, UNBOUND, "catch nan off; catch inf off; until op:Unbind; rank 0; ranks; quit")
    assert "> norm 5          rank 0" in run.stdout, run.stdout + run.stderr
    assert "  norm nan        rank 1" in run.stdout


@pytest.mark.slow
def test_a_rank_that_died_has_no_norm(tmp_path):
    run = compare(tmp_path, KILLED, "next-backward; rank 0; ranks; rank 1; ranks; quit")
    assert "norm -          rank 1: script.py was killed by SIGKILL\n" in run.stdout, run.stdout + run.stderr
    at_no_node = run.stdout.split("the rank that is looked at is at no node; `rank N` chooses another\n")[1]
    assert "  rank 0: paused before node" in at_no_node
    assert "> rank 1: script.py was killed by SIGKILL\n" in at_no_node
    assert "***" not in run.stdout
