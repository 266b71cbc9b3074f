"""A process knows its rank only where its environment tells all of it."""

from __future__ import annotations

import pytest

from gradscope.inspect.records.own_rank import OwnRank, own_rank


@pytest.mark.parametrize(
    "told", [{}, {"RANK": "1"}, {"RANK": "x", "WORLD_SIZE": "2"}, {"RANK": "2", "WORLD_SIZE": "2"}]
)
def test_a_process_that_is_no_rank_has_none(monkeypatch, told):
    for name in ("RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in told.items():
        monkeypatch.setenv(name, value)
    assert own_rank() == OwnRank(None, 1, "")


def test_a_rank_knows_how_often_it_was_started_anew(monkeypatch):
    for name, value in (("RANK", "1"), ("WORLD_SIZE", "2"), ("TORCHELASTIC_RESTART_COUNT", "3")):
        monkeypatch.setenv(name, value)
    assert own_rank().restart == 3
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "many")
    assert own_rank().restart == 0
