"""Ranks that wait for each other are found while they do, and those that go on, or may yet, are left alone."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from gradscope.cli import main
from gradscope.inspect.adapters import event_guards
from gradscope.inspect.ranks import live_hangs
from gradscope.inspect.ranks.live_hangs import ENDED, HangWatcher, MainThread, hang_text
from gradscope.inspect.ranks.rank_ends import waits_in
from gradscope.inspect.recording.recorder.hang_watch import BEHIND
from gradscope.inspect.records.before_step.forward_log import ForwardAccount, SkippedForward
from tests.inspect.ranks.test_rank_ends import HANGS, PROGRAM, SKIPS

REDUCE, BARRIER = "waits in all_reduce, called at train.py:9", "waits in barrier, called at train.py:12"
BACKWARD = "is in backward(), called at train.py:8"


class Store:
    """A process group's, for one process."""

    def __init__(self):
        self.kept = {}

    def set(self, key, value):
        self.kept[key] = value.encode()

    def check(self, keys):
        return all(key in self.kept for key in keys)

    def get(self, key):
        return self.kept[key]

    def add(self, key, more):
        self.kept[key] = self.kept.get(key, 0) + more
        return self.kept[key]


class Ranks:
    """Ranks that stand where a test puts them."""

    def __init__(self, monkeypatch, world):
        self.places, self.told, self.accounts, self.stand = {}, [], [], []
        self.account = ForwardAccount()
        store = Store()
        self.watchers = []
        for rank in range(world):
            watcher = HangWatcher(
                rank, world, 5, name="0", store=lambda: store, progress=tuple, account=self.account_at,
                left=lambda _: False, hangs=self.hangs, note=self.told.append,
            )  # fmt: skip
            watcher._store = store
            self.watchers.append(watcher)
        monkeypatch.setattr(live_hangs, "whereabouts", lambda: self.places[self.now])
        monkeypatch.setattr(MainThread, "stands", lambda _: 9.0 if self.places.get(self.now) else 0.0)

    def account_at(self, frame):
        self.stand.append(frame)
        return self.account

    def hangs(self, places, accounts):
        self.told.append(places)
        self.accounts.append(accounts)

    def look(self, times=1, **places):
        """Let all look; a rank stands at its place, and goes on where it has none."""
        self.places = {int(rank.removeprefix("rank")): place for rank, place in places.items()}
        for _ in range(times):
            for rank, watcher in enumerate(self.watchers):
                self.now = rank
                if self.places.get(rank) == ENDED:
                    watcher._say(ENDED)
                else:
                    watcher.look()


@pytest.mark.parametrize(
    "places",
    [
        {"rank0": REDUCE, "rank1": BARRIER},
        {"rank0": REDUCE, "rank1": REDUCE},
        {"rank0": BACKWARD, "rank1": BARRIER},
        {"rank0": REDUCE, "rank1": ENDED},
        {"rank0": ENDED, "rank1": BACKWARD},
    ],
)
def test_ranks_that_all_wait_hang(monkeypatch, places):
    ranks = Ranks(monkeypatch, 2)
    ranks.look(times=4, **places)
    assert ranks.told[0] == {0: places["rank0"], 1: places["rank1"]}


def test_ranks_that_all_stand_at_lines_are_told_once_and_not_ended(monkeypatch):
    """So it looks where collectives wait on a device."""
    ranks = Ranks(monkeypatch, 3)
    ranks.look(times=9, rank0="is at train.py:9", rank1=ENDED)
    assert ranks.told == []
    ranks.look(times=9, rank0="is at train.py:9", rank1=ENDED, rank2="is at train.py:7")
    (note,) = ranks.told
    assert note.startswith(
        "no rank has moved for 5 s: rank 0 is at train.py:9, rank 1 has come to its end, rank 2 is at train.py:7; "
    )


def test_how_far_each_rank_has_come_is_told_with_the_hang(monkeypatch):
    ranks = Ranks(monkeypatch, 2)
    skip = SkippedForward(3, "/a/train.py:9", "/a/train.py:5", "nan")
    ranks.account = ForwardAccount(5, "/a/train.py:9", (skip,), 2)
    ranks.look(times=4, rank0=BACKWARD, rank1=ENDED)
    assert ranks.accounts == [{0: ranks.account, 1: ranks.account}]


def test_a_rank_that_has_failed_hears_of_one_that_ended_before_it(monkeypatch):
    ranks = Ranks(monkeypatch, 2)
    ranks.account = ForwardAccount(4, "/a/train.py:9")
    first, other = ranks.watchers
    other._end = ENDED
    with other:
        pass
    (told,) = first.others_before()
    assert told.startswith("rank 1 came to the end of the program after step 4 (/a/train.py:9) while others wait")


def test_a_rank_that_has_failed_hears_of_one_that_failed_too(monkeypatch):
    ranks = Ranks(monkeypatch, 2)
    first, other = ranks.watchers
    with other:
        other.failed(ZeroDivisionError("division by zero"))
    assert list(first.others_before()) == ["rank 1 failed: ZeroDivisionError: division by zero"]


def test_what_has_drawn_ranks_along_is_told_once_and_before_their_own_errors(monkeypatch):
    monkeypatch.setattr(live_hangs, "_AFTERTHOUGHT", 0.0)
    ranks = Ranks(monkeypatch, 3)
    closed = "Connection closed by peer"
    for watcher, error in zip(ranks.watchers, (closed, "out of luck", closed)):
        with watcher:
            watcher.failed(RuntimeError(error))
    told = [line for rank in (0, 2) for line in ranks.watchers[rank].others_before()]
    assert told == ["rank 1 failed: RuntimeError: out of luck"]


def test_who_is_drawn_along_by_the_end_of_a_job_that_hangs_says_no_more(monkeypatch):
    ranks = Ranks(monkeypatch, 2)
    ranks.look(times=4, rank0=REDUCE, rank1=BARRIER)
    assert [*ranks.told[0]] == [0, 1]
    assert list(ranks.watchers[1].others_before()) == []


def test_a_rank_whose_process_has_gone_is_named(monkeypatch):
    monkeypatch.setattr(live_hangs, "is_alive", lambda process: process != 77)
    ranks = Ranks(monkeypatch, 2)
    for watcher, process in zip(ranks.watchers, (os.getpid(), 77)):
        monkeypatch.setattr(live_hangs.os, "getpid", lambda process=process: process)
        watcher._tell_process()
    ranks.watchers[0]._find_processes()
    gone = "rank 1 is gone: its process 77 has been killed, or has ended by itself"
    ranks.look(times=4, rank0=REDUCE)
    assert hang_text(ranks.told[0], 5).splitlines()[-1] == f"likely cause: {gone}"
    assert list(ranks.watchers[0].others_before()) == [gone]
    ranks.watchers[1]._store.check = ranks.watchers[1]._store.add = refuse
    assert list(ranks.watchers[0].others_before()) == [gone]


def refuse(*_):
    raise RuntimeError("the store has gone with the rank that held it")


def test_how_far_a_rank_has_come_that_failed_is_told_by_where_it_did(monkeypatch):
    ranks = Ranks(monkeypatch, 2)
    with ranks.watchers[1] as watcher:
        try:
            raise ConnectionError
        except ConnectionError as error:
            watcher.failed(error)
    assert [frame.f_code.co_name for frame in ranks.stand] == [
        "test_how_far_a_rank_has_come_that_failed_is_told_by_where_it_did"
    ]


def test_a_rank_that_has_failed_waits_for_no_others_for_long(monkeypatch):
    monkeypatch.setattr(live_hangs, "_AFTERTHOUGHT", 0.0)
    assert list(Ranks(monkeypatch, 2).watchers[0].others_before()) == []


def test_a_long_backward_is_no_hang(monkeypatch):
    ranks = Ranks(monkeypatch, 2)
    ranks.look(times=9, rank0=BACKWARD, rank1=BACKWARD)
    assert ranks.told == []


def test_who_waits_for_ranks_that_may_come_yet_says_so_once(monkeypatch):
    ranks = Ranks(monkeypatch, 4)
    ranks.look(times=9, rank1=BARRIER, rank2=BARRIER, rank3="is at train.py:3")
    assert ranks.told == [f"rank 1 {BARRIER}, for 5 s; rank 0 goes on, rank 3 is at train.py:3"]


def test_a_rank_that_has_gone_on_hangs_with_nobody(monkeypatch):
    ranks = Ranks(monkeypatch, 2)
    for _ in range(5):
        ranks.look(rank0=REDUCE, rank1=BARRIER)
        ranks.look(rank0=REDUCE)
    assert ranks.told == []


def test_the_main_thread_stands_while_nothing_changes(monkeypatch):
    now, counts = [0.0], [0]
    monkeypatch.setattr(live_hangs.time, "monotonic", lambda: now[0])
    main_thread = MainThread(lambda: counts[0])
    gate, inside = threading.Event(), threading.Event()
    found = []

    def look(after):
        now[0] += after
        found.append(main_thread.stands())

    def others():
        inside.wait()
        look(1)
        look(3)
        counts[0] += 1
        look(2)
        look(2)
        gate.set()

    thread = threading.Thread(target=others)
    thread.start()
    inside.set()
    gate.wait()
    thread.join()
    assert found[-1] == 2.0
    assert found[1] in (3.0, 0.0)  # the main thread may still have been on its way to the gate


def test_the_text_names_each_rank_with_its_line():
    told = hang_text({0: REDUCE, 1: BARRIER, 2: REDUCE}, 60).splitlines()
    assert told[:3] == ["3 ranks hang: none has moved for 60 s", f"  ranks 0, 2  {REDUCE}", f"  rank 1      {BARRIER}"]
    assert told[3:] == [
        "likely cause: they wait for each other: all ranks must call the same collectives in the same order"
    ]
    skip = SkippedForward(3, "/a/train.py:9", "/a/train.py:5", "nan")
    accounts = {0: ForwardAccount(5, "/a/train.py:9"), 1: ForwardAccount(5, "/a/train.py:9", (skip,), 1)}
    (cause,) = hang_text({0: BACKWARD, 1: ENDED}, 60, accounts).splitlines()[3:]
    assert cause.startswith(
        "likely cause: rank 1 skipped an iteration after step 3 (/a/train.py:9): no backward followed"
    )
    over = hang_text({0: ENDED, 1: BACKWARD}, 60).splitlines()
    waits = f"while rank 1 waits in {waits_in(BACKWARD)}"
    assert over[3:] == [f"likely cause: rank 0 came to the end of the program {waits}"]
    alike = hang_text({0: REDUCE, 1: REDUCE}, 60)
    assert "likely cause: all ranks wait in one call" in alike


def check(folder, program, *arguments):
    (folder / "train.py").write_text(program)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command += ["-m", "gradscope", "check", "--ranks", "--timeout", "2", "train.py", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=200)


@pytest.mark.slow
@pytest.mark.torch
@pytest.mark.parametrize("how", HANGS)
def test_a_job_that_hangs_is_ended_with_who_waits_where(torch, tmp_path, how):
    done = check(tmp_path, PROGRAM.replace("seconds=8", "seconds=300"), how)
    assert done.returncode == 1, done.stderr
    told = done.stdout[done.stdout.index("2 ranks hang: none has moved for 2 s\n") :].splitlines()
    for line, rank, place in zip(told[1:], range(2), HANGS[how]):
        assert (line.split()[1], line.partition(" in ")[2].removesuffix(BEHIND)) == (str(rank), place)
    cause = (
        "they wait for each other" if how == "barrier" else "rank 1 left its training loop after step 2 (train.py:30)"
    )
    assert told[3].startswith(f"likely cause: {cause}")


@pytest.mark.slow
@pytest.mark.torch
@pytest.mark.parametrize("how", SKIPS)
def test_a_rank_that_runs_fewer_backwards_is_named_as_the_cause(torch, tmp_path, how):
    done = check(tmp_path, PROGRAM.replace("seconds=8", "seconds=300"), how)
    assert done.returncode == 1, done.stderr
    told = done.stdout.partition("likely cause: ")[2]
    assert told.startswith(SKIPS[how])


LATE = """\
import time
import torch, torch.distributed as dist
dist.init_process_group("gloo")
if dist.get_rank() == 1:
    time.sleep(6)
dist.barrier()
print("over")
dist.destroy_process_group()
"""


@pytest.mark.slow
@pytest.mark.torch
def test_a_rank_that_is_late_is_waited_for(torch, tmp_path):
    done = check(tmp_path, LATE)
    assert (done.returncode, done.stdout.count("over")) == (0, 2), done.stderr
    assert "rank 0 waits in barrier, called at train.py:6, for 2 s; rank 1 is at train.py:5" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--timeout", "3"], "--timeout is for ranks that wait for each other: add --ranks"),
        (["--ranks", "--timeout", "soon"], "argument --timeout: 'soon' is no time in seconds"),
        (["--ranks", "--timeout", "-1"], "argument --timeout: '-1' is no time in seconds"),
    ],
)
def test_a_time_that_means_nothing_is_refused(capsys, arguments, told):
    try:
        status = main(["check", *arguments, "train.py"])
    except SystemExit as left:
        status = left.code
    assert status == 2
    assert told in capsys.readouterr().err


def test_an_error_of_gradscopes_own_is_told_here_and_to_the_others(monkeypatch):
    monkeypatch.setattr(event_guards, "raising", False)
    store, told, known = Store(), [], threading.Event()

    def broken():
        raise ZeroDivisionError("a bug")

    def note(text):
        told.append(text)

    watcher = HangWatcher(
        0, 2, 0.2, name="0", store=lambda: store, progress=broken, account=lambda _: ForwardAccount(),
        left=lambda _: False, hangs=print, note=note,
    )  # fmt: skip
    stop = watcher._stop
    monkeypatch.setattr(watcher, "_stop", lambda error: (stop(error), known.set()))
    with watcher:
        assert known.wait(60)
        others = store.get("0/0").decode()
    own = "gradscope's own code failed"
    (line,) = told
    assert line.startswith("rank 0: no longer looked into whether ranks wait for each other: ")
    assert f"{own}; please report it: ZeroDivisionError: a bug (test_live_hangs.py:" in line
    assert others == f"is no longer looked at: {own} there"
    assert store.get("0/0").decode() == ENDED
