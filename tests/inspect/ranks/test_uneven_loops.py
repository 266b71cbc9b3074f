"""Ranks that run fewer backwards than others, and why, as far as their accounts and the program's lines tell."""

from __future__ import annotations

import linecache

import pytest

from gradscope.inspect.ranks.uneven_loops import ended_early, left_the_loop, skipped_apart
from gradscope.inspect.records.before_step.forward_log import ForwardAccount

PROGRAM = """\
for epoch in range(2):
    dist.barrier()
    for batch in batches:
        model(batch).sum().backward()
        while reduced():
            dist.all_reduce(grad)
        optimizer.step()
    dist.barrier()
dist.barrier()


def validate():
    dist.broadcast(loss, 0)
"""
STEPPED = "/a/loops.py:7"


@pytest.fixture(autouse=True)
def source(monkeypatch):
    lines = PROGRAM.splitlines(keepends=True)
    monkeypatch.setitem(linecache.cache, "/a/loops.py", (len(PROGRAM), None, lines, "/a/loops.py"))


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
    told = list(ended_early([1, 2, 3], accounts))
    assert told[0].startswith(
        "ranks 1, 2 came to the end of the program after step 4 (/a/loops.py:7) while others wait"
    )
    assert told[1:] == ["rank 3 came to the end of the program while others wait in a collective"]


@pytest.mark.parametrize(
    ("line", "left"), [(8, True), (2, True), (9, True), (4, False), (6, False), (13, False)],
)  # fmt: skip
def test_a_rank_has_left_the_loop_in_which_it_stepped(line, left):
    accounts = {rank: ForwardAccount(3, STEPPED) for rank in range(2)}
    waiting = {0: "backward(), called at loops.py:4", 1: f"barrier, called at loops.py:{line}"}
    told = [sentence.partition(",")[0] for sentence in left_the_loop(waiting, accounts)]
    assert told == (["rank 1 left its training loop after step 3 (/a/loops.py:7)"] if left else [])


def test_where_all_have_left_the_loop_none_is_early():
    accounts = {rank: ForwardAccount(3, STEPPED) for rank in range(2)}
    waiting = {0: "barrier, called at loops.py:9", 1: "barrier, called at loops.py:8"}
    assert list(left_the_loop(waiting, accounts)) == []


@pytest.mark.parametrize("stepped", ["", "/a/other.py:7", "/a/nowhere/loops.py:7"])
def test_of_lines_that_cannot_be_read_nothing_is_said(stepped):
    accounts = {rank: ForwardAccount(3, stepped) for rank in range(2)}
    waiting = {0: "backward(), called at loops.py:4", 1: "barrier, called at loops.py:9"}
    assert list(left_the_loop(waiting, accounts)) == []
