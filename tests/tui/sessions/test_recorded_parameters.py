"""The parameters of a recording."""

from __future__ import annotations

import pytest

import gradscope as gs
import gradscope.inspect as gi
from gradscope_tui.sessions.recorded_session import RecordedSession


def test_the_norms_of_the_latest_backwards_of_the_run_are_told(tmp_path):
    model = gs.nn.Sequential(gs.nn.Linear(3, 2), gs.nn.Tanh(), gs.nn.Linear(2, 1))
    norms = []
    with gi.record(tmp_path / "run.gscope"):
        for step in range(4):
            model.zero_grad()
            model(gs.full((2, 3), 1.0 + step)).sum().backward()
            norms.append(model[0].weight.grad.norm().item())
    with gi.open_recording(tmp_path / "run.gscope") as recording:
        session = RecordedSession(recording)
        session.start()
        for backward in (1, 2, 3):
            found = {one.path: one for one in session.parameters()}
            assert set(found) == {"0.weight", "0.bias", "2.weight", "2.bias"}
            assert found["0.weight"].recent == pytest.approx(norms[:backward], rel=1e-5)
            assert found["0.weight"].norm == found["0.weight"].recent[-1]
            assert found["0.weight"].shape == (2, 3)
            assert session.nodes[found["0.weight"].index].parameter == "0.weight"
            session.next_backward()
        assert [(one.path, one.kind) for one in session.modules()] == [
            ("", "Sequential"), ("0", "Linear"), ("1", "Tanh"), ("2", "Linear"),
        ]  # fmt: skip


def test_an_empty_recording_has_none(tmp_path):
    with gi.record(tmp_path / "run.gscope"):
        pass
    with gi.open_recording(tmp_path / "run.gscope") as recording:
        assert RecordedSession(recording).parameters() == ()
