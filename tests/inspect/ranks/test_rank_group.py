"""Several debuggers as one: who stops with whom, who goes on, and what is waited for."""

from __future__ import annotations

import os
import threading
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from gradscope.inspect import SessionError, SessionState
from gradscope.inspect.ranks import rank_group
from gradscope.inspect.ranks.launch import start_ranks
from gradscope.inspect.ranks.rank_group import RankGroup

pytestmark = pytest.mark.skipif(os.name != "posix", reason="named pipes")

LONG = 60
"""Seconds after which a wait has hung."""

SCRIPT = """\
import os, sys
import gradscope as gs
waiting, endless = sys.argv[1:3]
rank = os.environ["RANK"]
x = gs.ones(2, requires_grad=True)
(x * 2).sum().backward()
if rank in waiting:
    print("waits", flush=True)
    open(f"gate{rank}").read()  # as in a collective, until somebody opens the other end
(x * 3).exp().sum().backward()
while rank in endless:
    (x * 2).sum().backward()
"""


@contextmanager
def ranks(folder, world, *, waiting="", endless="", **options):
    path = folder / "ranks.py"
    path.write_text(SCRIPT.replace('f"gate', f'f"{folder}/gate'))
    for rank in waiting:
        os.mkfifo(folder / f"gate{rank}")
    processes = start_ranks([str(path), waiting, endless], world)
    try:
        yield RankGroup([process.debugger for process in processes], **options)
    finally:
        for process in processes:
            process.end()


@pytest.mark.slow
def test_one_that_stops_stops_all(tmp_path):
    with ranks(tmp_path, 4, endless="0123") as group:
        group.start()
        assert group.wait(LONG) is SessionState.PAUSED_BEFORE
        assert all(member.state is SessionState.PAUSED_BEFORE for member in group.members)
        group.members[3].add_breakpoint("op:ExpBackward0")
        group.cont()
        group.wait(LONG)
        assert group.rank == 3
        assert group.chosen.nodes[group.chosen.current].name == "ExpBackward0"
        assert all(member.state is SessionState.PAUSED_BEFORE for member in group.members)


@pytest.mark.slow
def test_a_step_is_taken_by_all(tmp_path):
    with ranks(tmp_path, 2) as group:
        group.start()
        group.wait(LONG)
        group.step()
        group.wait(LONG)
        assert [member.current for member in group.members] == [1, 1]


@pytest.mark.slow
def test_all_are_started_again(tmp_path):
    with ranks(tmp_path, 2, endless="01") as group:
        with pytest.raises(SessionError, match="were not started by the debugger"):
            group.restart()
        group.start()
        group.wait(LONG)
        group.add_breakpoint("op:ExpBackward0")
        before = [member.pid for member in group.members]
        renewed = []
        group.renew = lambda: renewed.append(True)
        group.restart()
        assert group.wait(LONG) is SessionState.PAUSED_BEFORE
        assert renewed == [True]
        assert not set(before) & {member.pid for member in group.members}
        assert [member.state for member in group.members] == [SessionState.PAUSED_BEFORE] * 2
        assert [len(member.breakpoints) for member in group.members] == [1, 1]


@pytest.mark.slow
def test_under_non_stop_the_others_go_on(tmp_path):
    with ranks(tmp_path, 2, endless="1", non_stop=True) as group:
        group.start()
        while group.chosen.state is not SessionState.PAUSED_BEFORE or group.rank != 1:
            group.wait(LONG)
            group.choose(1)
        group.cont()
        group.choose(0)
        group.members[0].wait(LONG)
        group.step()
        group.wait(LONG)
        assert (group.rank, group.chosen.current) == (0, 1)
        assert group.members[1].state is SessionState.RUNNING


@pytest.mark.slow
def test_under_non_stop_a_verb_is_for_the_chosen_rank_and_a_breakpoint_for_all(tmp_path):
    with ranks(tmp_path, 2, non_stop=True) as group:
        group.start()
        for member in group.members:
            member.wait(LONG)
        group.wait(LONG)
        group.add_breakpoint("op:ExpBackward0")
        group.choose(1)
        group.step()
        group.wait(LONG)
        assert [member.current for member in group.members] == [0, 1]
        assert [len(member.breakpoints) for member in group.members] == [1, 1]


@pytest.mark.slow
def test_after_a_pause_a_rank_that_cannot_stop_is_not_waited_for(tmp_path):
    with ranks(tmp_path, 2, waiting="01") as group:
        arrived = {rank: threading.Event() for rank in range(2)}
        group.echo_to(lambda text, stream="stdout": arrived[int(text[6])].set())  # "[rank 1] waits"
        group.start()
        group.wait(LONG)
        group.cont()
        assert [event.wait(LONG) for event in arrived.values()] == [True, True]
        group.pause()
        assert group.wait() is SessionState.RUNNING
        for rank in range(2):
            (tmp_path / f"gate{rank}").write_text("go on")
        group.cont()  # it runs already, and is waited for again
        assert group.wait(LONG) is SessionState.PAUSED_BEFORE
        assert [member.task_index for member in group.members] == [2, 2]


@pytest.mark.slow
def test_the_end_of_all_ends_the_wait(tmp_path):
    with ranks(tmp_path, 2) as group:
        group.start()
        group.wait(LONG)
        group.cont()
        assert group.wait(LONG) is SessionState.FINISHED
        assert group.ended


@pytest.mark.slow
def test_a_rank_that_does_not_exist_is_refused(tmp_path):
    with ranks(tmp_path, 2) as group, pytest.raises(RuntimeError, match="there is no rank 2: they are 0 to 1"):
        group.choose(2)


class Member:
    """A rank that is about to go on: the front has heard that it runs, and it has nothing to pause yet."""

    def __init__(self, state, refusals=0):
        self.state, self.refusals = state, refusals
        self.reason = SimpleNamespace(kind="breakpoint")

    def add_listener(self, tell):
        self.tell = tell

    def whereabouts(self):
        return "train.py:3"

    def pause(self):
        if self.refusals:
            self.refusals -= 1
            raise SessionError("there is nothing to pause: the program is paused before")
        self.state = SessionState.PAUSED_BEFORE
        self.tell(SimpleNamespace(kind="state"))


def test_a_rank_that_had_nothing_to_pause_yet_is_asked_again():
    late = Member(SessionState.RUNNING, refusals=2)
    stopped = Member(SessionState.PAUSED_BEFORE)
    assert RankGroup([stopped, late]).stop_with(stopped)
    assert late.state is SessionState.PAUSED_BEFORE


class Silent(Member):
    """A rank in code that lets no other thread of its process run, so that it answers nothing."""

    def __init__(self):
        super().__init__(SessionState.RUNNING)
        self.answers, self.stopped, self.asked = threading.Event(), threading.Event(), 0

    def whereabouts(self):
        self.answers.wait(LONG)
        return "train.py:3"

    def pause(self):
        self.asked += 1
        self.answers.wait(LONG)
        super().pause()
        self.stopped.set()


def test_a_rank_that_does_not_answer_holds_up_nobody(monkeypatch):
    for patience in ("_ANSWERING", "_PAUSING"):
        monkeypatch.setattr(rank_group, patience, 0.3)
    silent, other = Silent(), Member(SessionState.RUNNING)
    stopped = Member(SessionState.PAUSED_BEFORE)
    group = RankGroup([stopped, silent, other])
    try:
        assert group.stop_with(stopped)
        assert not silent.answers.is_set()
        assert other.state is SessionState.PAUSED_BEFORE
        assert (silent.state, silent.asked) == (SessionState.RUNNING, 1)
    finally:
        silent.answers.set()
    assert silent.stopped.wait(LONG)
