"""Sessions for the tests: start, wait, and never hang."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import gradscope as gs
from gradscope.inspect import Debugger, SessionState

PATIENCE = 60


def wait(session: Debugger) -> str:
    """Return the state of the next stop as text."""
    state = session.wait(PATIENCE)
    assert state is not SessionState.RUNNING, "the program did not stop"
    return state.value


@contextmanager
def debugging(function: Callable[[], Any]) -> Iterator[Debugger]:
    """Give a session of `function`, ended whatever happens."""
    session = Debugger.for_call(function)
    try:
        yield session
    finally:
        session.abort()
        assert session.wait(PATIENCE).ended, "the program did not end"


def where(session: Debugger) -> tuple[str, int, str]:
    """Return the state, the node's index and its operator."""
    return session.state.value, session.current, session.nodes[session.current].operator


def mlp() -> gs.nn.Module:
    """Return a small network, the same each time."""
    gs.manual_seed(0)
    return gs.nn.Sequential(gs.nn.Linear(3, 4), gs.nn.ReLU(), gs.nn.Linear(4, 2))


def train(model: gs.nn.Module, steps: int = 3) -> list[float]:
    """Train; return the losses."""
    optimizer = gs.optim.SGD(model.parameters(), lr=0.1)
    gs.manual_seed(1)
    inputs, losses = gs.randn(8, 3), []
    for _ in range(steps):
        loss = (model(inputs) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses
