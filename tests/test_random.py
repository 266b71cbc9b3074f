"""gs.random."""

from __future__ import annotations

import gradscope as gs


def test_nothing_was_drawn_after_a_fork() -> None:
    gs.manual_seed(1)
    expected = gs.rand(3).tolist()
    gs.random.manual_seed(1)
    with gs.random.fork_rng(devices=[]):
        gs.manual_seed(5)
        inside = gs.rand(3).tolist()
    assert gs.rand(3).tolist() == expected != inside
    assert gs.random.initial_seed() == 1


def test_a_fork_that_is_not_enabled_is_none() -> None:
    gs.manual_seed(1)
    before = gs.random.get_rng_state()
    with gs.random.fork_rng(enabled=False):
        gs.rand(1)
    assert before.tolist() != gs.random.get_rng_state().tolist()
