from __future__ import annotations

import pytest

import gradscope as gs
from gradscope.inspect import Debugger, SessionState
from tests.inspect.wire.programs import served


def train() -> None:
    gs.manual_seed(0)
    long, count, seen = gs.zeros(3000), 1, []
    model = gs.nn.Sequential(gs.nn.Linear(3, 4), gs.nn.Tanh(), gs.nn.Linear(4, 2))
    loss = model(gs.ones(5, 3)).pow(2).sum()
    loss.backward()
    assert all((len(long), count, seen is not None))


@pytest.fixture
def program():
    """A front's view of a program at the first node of its backward."""
    with served(Debugger.for_call(train)) as remote:
        remote.start()
        assert remote.wait(10) is SessionState.PAUSED_BEFORE
        yield remote
