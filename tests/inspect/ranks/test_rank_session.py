"""All ranks as a session that nobody waits for."""

from __future__ import annotations

import os
import queue
import signal
from contextlib import contextmanager

import pytest

from gradscope.inspect import SessionState
from gradscope.inspect.ranks.launch import conclude_ranks, renew_ranks, start_ranks
from gradscope.inspect.ranks.rank_session import RankSession

pytestmark = pytest.mark.skipif(os.name != "posix", reason="processes have signals")

LONG = 60
SCRIPT = """\
import os
import gradscope as gs
rank = int(os.environ["RANK"])
x = gs.full((3,), 1.0 + rank, requires_grad=True)
print("begins")
while True:
    (x * 2).exp().sum().backward()
"""


class Changes:
    """What a session tells."""

    def __init__(self, session):
        self.told = queue.SimpleQueue()
        self.texts = set()
        self.stop = session.add_listener(self.told.put)

    def until(self, holds):
        while not holds():
            self.texts.add(self.told.get(timeout=LONG).text)


@contextmanager
def ranks(folder, source=SCRIPT, **options):
    path = folder / "ranks.py"
    path.write_text(source)
    processes = start_ranks([str(path)], 2)
    session = RankSession([process.debugger for process in processes], **options)
    try:
        yield session, Changes(session), processes
    finally:
        session.abort()
        conclude_ranks(processes)


def paused(session):
    return [member.state.paused for member in session.members]


@pytest.mark.slow
def test_a_step_is_taken_by_all_and_the_same_rank_is_looked_at(tmp_path):
    with ranks(tmp_path) as (session, changes, _):
        session.start()
        changes.until(lambda: all(paused(session)))
        session.choose(1)
        for place in (1, 2):
            session.step()
            changes.until(lambda place=place: [member.current for member in session.members] == [place, place])
            assert session.rank == 1
        found = session.compare_ranks()
        assert (found.chosen, found.title) == (1, "node 2 of 4: MulBackward0, on 2 ranks")
        norms = [row.norm for row in found.rows]
        assert norms == pytest.approx([12.798, 94.567], rel=1e-3)
        assert [session.rank_records(rank, 1)[2].norm for rank in (0, 1)] == norms
        with pytest.raises(ValueError, match="there is no rank 2"):
            session.rank_records(2, 1)


def test_a_rank_that_stops_is_looked_at_and_stops_the_others(tmp_path):
    with ranks(tmp_path) as (session, changes, _):
        session.start()
        changes.until(lambda: all(paused(session)))
        session.add_breakpoint("op:ExpBackward0", condition="rank == 1")
        session.cont()
        changes.until(lambda: all(paused(session)) and session.rank == 1)
        assert session.state is SessionState.PAUSED_BEFORE
        assert session.reason.kind == "breakpoint"
        assert session.members[0].reason.kind == "pause"


@pytest.mark.slow
def test_under_non_stop_the_others_go_on(tmp_path):
    with ranks(tmp_path, non_stop=True) as (session, changes, _):
        session.start()
        changes.until(lambda: all(paused(session)))
        session.choose(0)
        session.cont()
        session.choose(1)
        session.step()
        changes.until(lambda: session.current == 1)
        assert session.members[0].state is SessionState.RUNNING


@pytest.mark.slow
def test_lines_come_after_their_rank(tmp_path):
    with ranks(tmp_path) as (session, changes, _):
        session.start()
        changes.until(lambda: all(paused(session)))
        assert session.output == ["[rank 0] begins", "[rank 1] begins"]
        changes.until(lambda: changes.texts >= {"[rank 0] begins", "[rank 1] begins"})


@pytest.mark.slow
def test_a_rank_that_dies_is_told_and_all_come_to_their_ends(tmp_path):
    dies = SCRIPT.replace('print("begins")', "if rank: os._exit(7)")
    with ranks(tmp_path, dies) as (session, changes, processes):
        session.start()
        changes.until(lambda: session.members[1].ended and session.members[0].state.paused and session.rank == 0)
        assert not session.ended
        assert "exit status 7" in session.compare_ranks().rows[1].text
        session.leave()
        changes.until(lambda: session.ended)
        assert conclude_ranks(processes)[0] == 7


@pytest.mark.slow
def test_a_listener_that_has_gone_hears_nothing(tmp_path):
    with ranks(tmp_path) as (session, changes, _):
        changes.stop()
        session.start()
        assert session.members[0].wait(LONG).paused
        assert changes.told.empty()


WAITING = """\
import os
import gradscope as gs
x = gs.ones(3, requires_grad=True)
(x * 2).sum().backward()
if os.environ["RANK"] == "1":
    open("gate").read()  # as in a collective that another rank does not reach
while True:
    (x * 2).exp().sum().backward()
"""


@pytest.mark.slow
@pytest.mark.parametrize("trouble", ["killed", "waits"])
def test_ranks_are_started_again_from_the_screen(tmp_path, monkeypatch, trouble):
    monkeypatch.chdir(tmp_path)
    os.mkfifo("gate")
    with ranks(tmp_path, WAITING) as (session, changes, processes):
        session.renew = lambda: renew_ranks(processes)
        session.start()
        changes.until(lambda: all(paused(session)))
        session.choose(0)
        if trouble == "killed":
            os.kill(session.members[1].pid, signal.SIGKILL)
            changes.until(lambda: session.members[1].ended)
        else:
            session.add_breakpoint("op:Exp")
            session.cont()
            changes.until(lambda: paused(session) == [True, False])
        before = [member.pid for member in session.members]
        session.restart()
        changes.until(lambda: all(paused(session)))
        assert not set(before) & {member.pid for member in session.members}
        assert [member.reason.kind for member in session.members] == ["entry"] * 2
