"""``python -m gradscope.debuggee``: the process that runs a script."""

from __future__ import annotations

import subprocess
import sys

import pytest

from gradscope.inspect.wire.addresses import parse_address
from gradscope.inspect.wire.client import connect

SCRIPT = """\
import sys
import gradscope as gs
x = gs.ones(2, requires_grad=True)
for _ in range(3):
    (x * 2).sum().backward()
print("trained", *sys.argv[1:], flush=True)
sys.exit(4)
"""


@pytest.fixture
def start(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    started = []

    def run(*options, source=SCRIPT):
        (tmp_path / "train.py").write_text(source)
        command = [sys.executable, "-m", "gradscope.debuggee", *options, "train.py", "--lr", "1"]
        process = subprocess.Popen(command, cwd=tmp_path, stdout=-1, stderr=-1, text=True)
        started.append(process)
        return process

    yield run
    for process in started:
        with process:
            process.kill()


def address_of(process):
    return process.stderr.readline().split("listening at ")[1].split(";")[0]


def test_it_waits_for_a_front_and_stops_at_the_first_backward(start):
    process = start()
    remote = connect(parse_address(address_of(process)))
    assert str(remote.state) == "not started"
    remote.start()
    assert remote.wait(30).paused
    remote.cont()
    assert remote.wait(30).ended
    remote.back()  # it stays as long as somebody looks
    assert remote.conclusion()[0] == 4
    remote.detach()
    assert process.wait(30) == 4
    assert process.stdout.read() == "trained --lr 1\n"


@pytest.mark.parametrize(
    ("options", "command", "effect"),
    [
        ([], "gradscope attach {pid}", "attaches, and starts it"),
        (["--run", "--listen", "{folder}/x.sock"], "gradscope attach {folder}/x.sock", "attaches"),
    ],
    ids=["it waits", "it runs"],
)
def test_the_command_that_it_tells_attaches_to_it(start, tmp_path, options, command, effect):
    process = start(*(option.format(folder=tmp_path) for option in options))
    told = process.stderr.readline().split("; ")[1]
    assert told == f"`{command.format(pid=process.pid, folder=tmp_path)}` {effect}\n"


@pytest.mark.slow
def test_it_runs_at_once_where_it_is_told_to(start):
    process = start("--run")
    assert process.wait(30) == 4
    assert process.stdout.read() == "trained --lr 1\n"


@pytest.mark.parametrize(("choice", "status"), [("continue", 4), ("end", 0)])
def test_what_becomes_of_it_when_a_front_dies(start, choice, status):
    process = start("--on-disconnect", choice)
    remote = connect(parse_address(address_of(process)))
    remote.start()
    assert remote.wait(30).paused
    remote._channel.close()
    assert process.wait(30) == status
    assert process.stdout.read() == ("trained --lr 1\n" if status else "")


@pytest.mark.slow
def test_it_waits_for_another_front_where_the_program_stands(start):
    process = start("--on-disconnect", "wait")
    address = parse_address(address_of(process))
    remote = connect(address)
    remote.start()
    remote.wait(30)
    remote.step()
    remote.wait(30)
    here = remote.current
    remote._channel.close()
    assert remote.wait_for_end(10)
    another = connect(address)
    assert (another.state.paused, another.current) == (True, here)
    another.detach()
    assert process.wait(30) == 4


@pytest.mark.slow
def test_a_later_front_may_look_at_the_end(start):
    process = start()
    address = parse_address(address_of(process))
    first = connect(address)
    first.start()
    assert first.wait(30).paused
    first.detach()
    assert process.wait(30) == 4
    process = start("--on-disconnect", "wait")
    address = parse_address(address_of(process))
    first = connect(address)
    first.start()
    assert first.wait(30).paused
    first._channel.close()
    assert first.wait_for_end(10)
    second = connect(address)
    second.cont()
    assert second.wait(30).ended
    assert second.conclusion()[0] == 4
    second.detach()
    assert process.wait(30) == 4


def test_nothing_of_a_screen_is_loaded(start, tmp_path):
    source = "import sys\nprint([n for n in ('textual', 'rich', 'networkx') if n in sys.modules])\n"
    process = start("--run", source=source)
    assert process.wait(30) == 0
    assert process.stdout.read() == "[]\n"


@pytest.mark.slow
def test_an_address_that_cannot_be_listened_at_is_said(start):
    process = start("--listen", "/missing/place.sock")
    assert process.wait(30) == 2
    assert process.stderr.read() == (
        "gradscope.debuggee: cannot listen at /missing/place.sock: No such file or directory\n"
    )
