from __future__ import annotations

import subprocess
import sys

import pytest

import gradscope.inspect as gi
from gradscope.inspect.wire.addresses import parse_address
from gradscope.inspect.wire.client import connect

PROGRAM = """\
import sys, time
import gradscope as gs
import gradscope.inspect as gi
print(gi.listen().address, flush=True)
x = gs.ones(3, requires_grad=True)
while not sys.stdin.closed and time.monotonic() < {limit}:
    (x * 2).exp().sum().backward()
    if gs.isinf(x.grad).any():
        break
    time.sleep(0.01)
print("went on", flush=True)
"""


@pytest.fixture
def program(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    source = PROGRAM.format(limit=1e12)
    with subprocess.Popen([sys.executable, "-c", source], stdout=-1, stderr=-1, stdin=-1, text=True) as process:
        yield process, process.stdout.readline().strip()
        process.kill()


def test_fronts_come_and_go(program):
    process, address = program
    for _ in range(3):
        remote = connect(parse_address(address))
        remote.pause()
        assert remote.wait(20).paused
        remote.step()
        assert remote.wait(20).paused
        remote.detach()
        assert remote.wait_for_end(10)
    remote = connect(parse_address(str(process.pid)))
    assert str(remote.state) == "running"
    remote.pause()
    remote.wait(20)
    remote.add_breakpoint("op:Exp")
    remote.cont()
    assert remote.wait(20).paused
    remote.execute("x.grad = x.detach() / 0")
    remote.detach()  # the breakpoint, which nobody looks at, stops it no more
    assert process.stdout.readline() == "went on\n"
    assert process.wait(20) == 0


def test_a_front_that_dies_lets_the_program_run_on(program):
    _, address = program
    front = f"""if True:
        import os
        from gradscope.inspect.wire.client import connect
        from gradscope.inspect.wire.addresses import parse_address
        remote = connect(parse_address({address!r}))
        remote.pause()
        print(remote.wait(20))
        os.kill(os.getpid(), 9)
        """
    assert subprocess.run([sys.executable, "-c", front], capture_output=True).returncode == -9
    remote = connect(parse_address(address))
    remote.pause()
    assert remote.wait(20).paused
    assert remote.task_index > 1
    remote.detach()


def test_tcp_needs_a_token(monkeypatch):
    monkeypatch.delenv("GRADSCOPE_TOKEN", raising=False)
    with pytest.raises(ValueError, match="needs a token: whoever attaches can run any code in it"):
        gi.listen("tcp://:0")
    listening = gi.listen("tcp://:0", token="secret")
    try:
        assert gi.listen() is listening
        with pytest.raises(ConnectionError, match="token"):
            connect(parse_address(listening.address), b"guess")
        remote = connect(parse_address(listening.address), b"secret")
        assert str(remote.state) == "running"
        remote.detach()
        assert remote.wait_for_end(10)
    finally:
        listening.close()
