"""The norms that the latest backwards have brought to their leaves."""

from __future__ import annotations

import gc

import gradscope as gs
from gradscope.inspect.debugging.history.norm_history import NormHistory


def test_the_oldest_backwards_are_forgotten():
    w, history = gs.ones(1), NormHistory(kept=3)
    for norm in range(5):
        history.note([(w, float(norm))])
    assert history.norms([history.number_of(w)]) == [(2.0, 3.0, 4.0)]
    assert history.norms([history.number_of(w)], most=2) == [(3.0, 4.0)]


def test_leaves_that_nobody_looked_at_leave_no_trace():
    w, history = gs.ones(1), NormHistory()
    history.note([(w, None)])
    history.note([])
    assert history.norms([history.number_of(w)]) == [()]


def test_a_leaf_does_not_inherit_the_norms_of_one_that_had_its_id():
    history = NormHistory()
    leaf = gs.ones(1)
    was = id(leaf)
    history.note([(leaf, 1.0)])
    number = history.number_of(leaf)
    del leaf
    gc.collect()
    others = [gs.ones(1) for _ in range(1000)]
    same = next((one for one in others if id(one) == was), others[0])
    assert history.norms([history.number_of(same)]) == [()]
    assert history.norms([number]) == [(1.0,)]
    history.note([(same, 2.0)])
    assert history.norms([history.number_of(same)]) == [(2.0,)]
