"""Norms of gradients in TensorBoard, as its own reader sees them."""

from __future__ import annotations

import warnings

import pytest

import gradscope as gs
import gradscope.inspect as gi
from gradscope.cli import main
from gradscope.inspect.ranks.recorded_ranks import open_ranks
from gradscope.inspect.ranks.tensorboard_events import write_tensorboard
from gradscope.inspect.recording import RecordingError
from tests.inspect.ranks.jobs import record_ranks

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    pytest.importorskip("tensorboard.summary.writer.event_file_writer", reason="the extra `tensorboard`")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator


def read(folder):
    found = EventAccumulator(str(folder))
    found.Reload()
    return found


def test_each_rank_has_its_norms_by_iteration(tmp_path):
    record_ranks(tmp_path / "run", 2, steps=3)
    # Four parameters, before the step and after the reduction, and one count and the loss for each backward.
    assert write_tensorboard([str(tmp_path / "run")], str(tmp_path / "logs")) == 2 * 3 * 10
    found = read(tmp_path / "logs" / "rank-1")
    assert len(found.Tags()["scalars"]) == 10
    scalars = found.Scalars("gradient/0.weight")
    with open_ranks(tmp_path / "run") as ranks:
        member = ranks.member(1)
        norms = [n.norm for task in member.tasks() for n in task.nodes if n.parameter == "0.weight"]
        began = member.run.started / 1e9
    assert [scalar.step for scalar in scalars] == [1, 2, 3]
    assert [scalar.value for scalar in scalars] == pytest.approx(norms)
    assert began <= scalars[0].wall_time < began + 100
    with open_ranks(tmp_path / "run") as ranks:
        losses = [task.loss for task in ranks.member(1).tasks()]
    assert [scalar.value for scalar in found.Scalars("loss")] == pytest.approx(losses)
    assert [scalar.value for scalar in found.Scalars("reduced/0.weight")] == pytest.approx(norms)


def test_what_went_wrong_is_seen(tmp_path):
    with gi.record(tmp_path / "run.gscope") as recorder:
        x = gs.tensor([0.0, 1.0], requires_grad=True)
        x.log().sum().backward()
        recorder.mark("the rate was lowered")
    write_tensorboard([str(tmp_path / "run.gscope")], str(tmp_path / "logs"))
    found = read(tmp_path / "logs" / "rank-0")
    assert found.Scalars("health/nan_or_inf")[0].value == 1
    (text,) = found.Tensors("events")
    assert text.tensor_proto.string_val[0] == b"mark: the rate was lowered"


def test_event_files_are_not_mixed(tmp_path, capsys):
    record_ranks(tmp_path / "run", 1)
    command = ["export", str(tmp_path / "run"), "-o", str(tmp_path / "logs"), "--format", "tensorboard"]
    assert main(command) == 0
    assert capsys.readouterr().out == f"wrote 12 scalars to {tmp_path}/logs\n"
    with pytest.raises(RecordingError, match="rank-0 is there already"):
        write_tensorboard([str(tmp_path / "run")], str(tmp_path / "logs"))
    assert main(command) == 2
    assert "is there already" in capsys.readouterr().err
    assert main([*command, "--follow"]) == 2
