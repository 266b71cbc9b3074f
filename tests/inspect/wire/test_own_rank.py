"""A process knows its rank only where its environment tells all of it."""

from __future__ import annotations

import pytest

from gradscope.inspect.wire.own_rank import OwnRank, own_rank


@pytest.mark.parametrize(
    "told", [{}, {"RANK": "1"}, {"RANK": "x", "WORLD_SIZE": "2"}, {"RANK": "2", "WORLD_SIZE": "2"}]
)
def test_a_process_that_is_no_rank_has_none(monkeypatch, told):
    for name in ("RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in told.items():
        monkeypatch.setenv(name, value)
    assert own_rank() == OwnRank(None, 1, "")
