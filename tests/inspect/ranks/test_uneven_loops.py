"""Ranks that run fewer backwards than others, and why, as far as their accounts and the program's lines tell."""

from __future__ import annotations

from gradscope.inspect.ranks.uneven_loops import ended_early, left_the_loop, skipped_apart
from gradscope.inspect.recording.recorder.hang_watch import BEHIND
from gradscope.inspect.records.before_step.forward_log import ForwardAccount

STEPPED = "/a/loops.py:7"


def test_who_has_skipped_more_is_behind():
    told = list(skipped_apart({0: ["x"], 1: ["x", "y"], 2: ["x", "y", "z"]}))
    assert [line.partition(";")[0] for line in told] == ["rank 1 y", "rank 2 z, the last of 2"]
    assert ["1 backward behind" in told[0], "2 backwards behind" in told[1]] == [True, True]
    assert list(skipped_apart({0: ["x"], 1: ["y"]})) == []


def test_more_may_have_been_skipped_than_is_known():
    (told,) = skipped_apart({0: [], 1: ["x"]}, {0: 3, 1: 45})
    assert "the last of 42" in told


def test_ranks_that_ended_alike_are_named_together():
    accounts = {1: ForwardAccount(4, STEPPED), 2: ForwardAccount(4, STEPPED), 3: ForwardAccount()}
    told = list(ended_early([1, 2, 3], accounts, {}))
    assert told[0].startswith(
        "ranks 1, 2 came to the end of the program after step 4 (/a/loops.py:7) while others wait"
    )
    assert told[1:] == ["rank 3 came to the end of the program while others wait in a collective"]
    (told,) = ended_early([1], accounts, {0: "barrier, called at loops.py:9"})
    assert "(/a/loops.py:7) while rank 0 waits in barrier, called at loops.py:9: fewer batches" in told


def test_a_rank_that_has_left_its_loop_is_named_with_what_the_others_wait_in():
    accounts = {1: ForwardAccount(3, STEPPED)}
    backward = "backward(), called at loops.py:4"
    waiting = {0: backward, 1: f"barrier, called at loops.py:9{BEHIND}", 2: backward}
    (told,) = left_the_loop(waiting, accounts)
    assert told.startswith(
        "rank 1 left its training loop after step 3 (/a/loops.py:7) and waits in barrier, called at loops.py:9, "
        "while ranks 0, 2 wait in backward(), called at loops.py:4, in the loop still: fewer batches"
    )


def test_where_all_have_left_the_loop_none_is_early():
    waiting = {rank: f"barrier, called at loops.py:{8 + rank}{BEHIND}" for rank in range(2)}
    assert list(left_the_loop(waiting, {})) == []
