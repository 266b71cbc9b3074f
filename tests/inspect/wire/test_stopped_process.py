"""A process that a signal such as SIGSTOP holds."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from gradscope.inspect.wire.stopped_process import is_stopped, let_go_on

pytestmark = pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="needs Linux's table of processes")


@pytest.fixture
def child():
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    yield process
    process.kill()
    process.communicate()


def test_one_that_is_held_is_told_from_one_that_is_not(child):
    assert not is_stopped(child.pid)
    child.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, child.pid, os.WSTOPPED)
    assert is_stopped(child.pid)
    let_go_on(child.pid)
    os.waitid(os.P_PID, child.pid, os.WCONTINUED)
    assert not is_stopped(child.pid)


def test_there_is_no_such_process(child):
    child.communicate(b"\n")
    assert not is_stopped(child.pid)
    let_go_on(child.pid)


def test_one_that_is_awake_gets_no_signal(child):
    let_go_on(child.pid)
    assert os.waitid(os.P_PID, child.pid, os.WCONTINUED | os.WNOHANG) is None
