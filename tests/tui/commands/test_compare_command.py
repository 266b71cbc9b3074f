from __future__ import annotations

import pytest

import gradscope as gs
import gradscope.inspect as gi
from gradscope.inspect.debugging.session.session_errors import SessionError
from gradscope.inspect.recording import RecordingError
from gradscope_tui.commands.compare_command import recorded_nodes


def test_the_nodes_of_a_recorded_backward_are_read(tmp_path):
    with gi.record(tmp_path / "run.gscope"):
        gs.ones(3, requires_grad=True).exp().sum().backward()
    assert [node.operator for node in recorded_nodes(str(tmp_path / "run.gscope"), 1)] == [
        "Sum", "Exp", "AccumulateGrad",
    ]  # fmt: skip
    with pytest.raises(SessionError, match="no backward 2: it has 1"):
        recorded_nodes(str(tmp_path / "run.gscope"), 2)


def test_another_file_is_no_recording(tmp_path):
    (tmp_path / "train.py").write_text("print()")
    with pytest.raises(RecordingError):
        recorded_nodes(str(tmp_path / "train.py"), 1)
