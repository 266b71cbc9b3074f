"""``gradscope view``, and its prompt."""

import io
import json
import os
import subprocess
import sys

import pytest

import gradscope as gs
import gradscope.inspect as gi
from gradscope.cli import main
from gradscope.inspect.recording.reports.recording_prompt import RecordingPrompt
from tests.inspect.ranks.jobs import record_ranks
from tests.inspect.recording.programs import recorded


@pytest.fixture
def path(tmp_path):
    recorded(tmp_path / "run.gscope", keep="param:*", title="train.py").close()
    return str(tmp_path / "run.gscope")


def view(capsys, *arguments):
    status = main(["view", *arguments])
    done = capsys.readouterr()
    return status, done.out, done.err


def test_the_overview(path, capsys):
    status, out, err = view(capsys, path)
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].startswith("run 1: train.py  ")
    assert lines[0].endswith("finished  keep=param:*")
    assert lines[1] == "  3 iterations, 3 backwards, 27 nodes"
    rows = [line.split() for line in lines[2:]]
    assert rows[0] == ["iteration", "loss", "backwards", "nodes", "time"]
    assert [(row[0], *row[2:4]) for row in rows[1:]] == [("1", "1", "9"), ("2", "1", "9"), ("3", "1", "9")]
    assert all(0 < float(row[1]) < 10 for row in rows[1:])


def test_nodes(path, capsys):
    status, out, _ = view(capsys, path, "--iteration", "2", "--filter", "param:*.bias")
    assert status == 0
    lines = out.splitlines()
    assert lines[0] == "iteration 2, backward 2, 9 nodes"
    assert [line.split()[1:4] for line in lines[1:]] == [
        ["4", "AccumulateGrad", "2.bias"], ["8", "AccumulateGrad", "0.bias"],
    ]  # fmt: skip


def test_one_node(path, capsys):
    _, out, _ = view(capsys, path, "--backward", "2", "--node", "2")
    assert out.startswith("iteration 2, backward 2\nnode 2 of 9: AddmmBackward0  2  (done)\n")
    assert "-> node 3 AccumulateGrad input 0" in out
    assert "loss = (model(inputs) ** 2).mean()" in out


def test_a_limit(path, capsys):
    _, out, _ = view(capsys, path, "--iteration", "1", "--limit", "2")
    assert out.splitlines()[-1] == "... the first 2; --limit 0 shows all"
    assert len(out.splitlines()) == 4
    _, out, _ = view(capsys, path, "--iteration", "1", "--limit", "0")
    assert len(out.splitlines()) == 10


def test_bad_nodes_violations_and_events(tmp_path, capsys):
    path = str(tmp_path / "run.gscope")
    x = gs.ones(2, requires_grad=True)
    with gi.record(path) as recorder:
        (gs.log(x * 0) * 1).sum().backward()
        recorder.mark("the middle")
        y = x.exp()
        z = y.sum()
        y += 1
        with pytest.raises(RuntimeError):
            z.backward()
    _, out, _ = view(capsys, path)
    assert "first NaN or Inf: iteration 1, backward 1, node 2 LogBackward0" in out
    assert "1 backward failed, the first in iteration 2: SavedTensorModifiedError" in out
    assert "1 violation: saved tensors that had been modified" in out
    _, out, _ = view(capsys, path, "--bad", "--limit", "1")
    assert "LogBackward0" in out
    _, out, _ = view(capsys, path, "--violations")
    assert out.startswith("iteration 2, backward 2, node 1: ExpBackward0 needs `result`: saved at version 0, at 1 when")
    _, out, _ = view(capsys, path, "--events")
    assert "mark   the middle" in out


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["--node", "99"], 1, "no node 99; the backward has 9"),
        (["--iteration", "9"], 1, "no such iteration or backward"),
        (["--filter", "what:ever"], 2, "unknown kind"),
        (["--export", "nodes.csv"], 2, "writes .json or .parquet"),
        (["--export", "missing/trace.json"], 2, "No such file"),
    ],
)
def test_what_cannot_be_shown(path, capsys, arguments, status, message):
    found, _, err = view(capsys, path, *arguments)
    assert found == status
    assert message in err


def test_no_recording(tmp_path, capsys):
    assert view(capsys, str(tmp_path / "none"))[0] == 2
    (tmp_path / "text").write_text("text" * 100)
    status, _, err = view(capsys, str(tmp_path / "text"))
    assert (status, err) == (2, f"gradscope view: {tmp_path / 'text'} is not a gradscope recording\n")


def test_whoever_reads_may_leave(path):
    command = [sys.executable, "-m", "gradscope", "view", path, "--iteration", "1"]
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, timeout=60)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")


def test_exports(path, tmp_path, capsys):
    status, out, _ = view(capsys, path, "--export", str(tmp_path / "trace.json"))
    assert status == 0
    assert f"events to {tmp_path / 'trace.json'}" in out
    assert len(json.loads((tmp_path / "trace.json").read_text())["traceEvents"]) == int(out.split()[1])
    pytest.importorskip("pyarrow", reason="the extra `parquet`")
    assert view(capsys, path, "--export", str(tmp_path / "n.parquet"))[1].startswith("wrote 27 nodes")


def test_commands_of_the_prompt(path, capsys):
    status, out, _ = view(capsys, path, "-c", "iteration 2; nodes param:*; node 3; value; next; previous; back 1; quit")
    assert status == 0
    assert "(recording) nodes param:*\niteration 2, backward 2, 9 nodes\n+    3  AccumulateGrad  2.weight" in out
    assert "node 4 of 9: AccumulateGrad  2.bias" in out
    assert out.count("node 3 of 9") == 2
    assert "[[" in out


def test_the_words_of_the_debugger_mean_the_same(path, capsys):
    theirs = view(capsys, path, "-c", "goto 3; step; n; back; print; p; list; exit")[1]
    ours = view(capsys, path, "-c", "node 3; next; next; previous; node; node; nodes; quit")[1]
    assert [line for line in theirs.splitlines() if not line.startswith("(recording)")] == [
        line for line in ours.splitlines() if not line.startswith("(recording)")
    ]
    assert "node 4 of 9" in theirs


def test_a_command_that_fails_gives_a_status(path, capsys):
    status, out, _ = view(capsys, path, "-c", "node 99; node x; foo; value; backward 77; iteration 50; nodes a:b")
    assert status == 1
    assert out.count("***") == 7
    assert "'foo' is no command; help lists them" in out


def test_the_prompt_on_a_pipe(path):
    out = io.StringIO()
    with gi.open_recording(path) as recording:
        commands = io.StringIO("help\n\niterations\nev\nrefresh\nvio\noverview\n")
        RecordingPrompt(recording, stdin=commands, stdout=out).run()
    text = out.getvalue()
    assert "next, previous" in text
    assert "no event" in text
    assert "no violation" in text
    assert text.count("3 iterations, 3 backwards, 27 nodes") == 3


def test_a_directory_is_a_run_of_many_ranks(tmp_path, capsys):
    record_ranks(tmp_path, 2)
    status, out, _ = view(capsys, str(tmp_path))
    assert (status, out.splitlines()[0].partition("  ")[0]) == (0, f"{tmp_path}: train.py, 2 of 2 ranks")
    status, out, _ = view(capsys, str(tmp_path), "--rank", "1", "--text")
    assert (status, out.split("  ")[0]) == (0, "run 1: train.py rank 1")
    status, out, _ = view(capsys, str(tmp_path), "--iteration", "2")
    assert (status, out.splitlines()[:2]) == (
        0, ["iteration 2, before step 2", "parameter  shape   reduced  rank 0   rank 1"]
    )  # fmt: skip
    status, _, err = view(capsys, str(tmp_path), "--iteration", "9")
    assert (status, err) == (2, f"gradscope view: {tmp_path} has no iteration 9\n")
    status, out, _ = view(capsys, str(tmp_path), "--export", str(tmp_path / "trace.json"))
    assert status == 0
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert out == f"wrote {len(events)} events to {tmp_path}/trace.json\n"
    status, _, err = view(capsys, str(tmp_path), "--node", "0")
    assert (status, err) == (
        2,
        f"gradscope view: {tmp_path} has the recordings of 2 ranks\nChoose one with --rank N.\n",
    )
    status, _, err = view(capsys, f"{tmp_path}/none/")
    assert (status, err.splitlines()[0]) == (2, f"gradscope view: there is no directory {tmp_path}/none/")
