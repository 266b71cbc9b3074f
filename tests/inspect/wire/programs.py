"""Programs to attach to, on both sides of a socket in one process or in two."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator

import gradscope as gs
from gradscope.inspect import Debugger
from gradscope.inspect.wire import messages as m
from gradscope.inspect.wire.addresses import Address
from gradscope.inspect.wire.channel import Channel
from gradscope.inspect.wire.client import RemoteDebugger, introduced
from gradscope.inspect.wire.server import DebugServer

SCRIPT = """\
import sys
import gradscope as gs
gs.manual_seed(0)
model = gs.nn.Sequential(gs.nn.Linear(3, 4), gs.nn.Tanh(), gs.nn.Linear(4, 1))
for epoch in range(2):
    model.zero_grad()
    loss = model(gs.ones(2, 3)).pow(2).sum()
    loss.backward()
    print("epoch", epoch)
"""


def train() -> None:
    gs.manual_seed(0)
    model = gs.nn.Sequential(gs.nn.Linear(3, 4), gs.nn.Tanh(), gs.nn.Linear(4, 1))
    for _ in range(2):
        model.zero_grad()
        loss = model(gs.ones(2, 3)).pow(2).sum()
        loss.backward()


@contextlib.contextmanager
def served(debugger: Debugger) -> Iterator[RemoteDebugger]:
    """Yield a front's view of a debugger."""
    here, there = socket.socketpair()
    server = DebugServer(debugger, None, Address(path=""))
    server.adopt(there)
    channel: Channel = Channel(here, m.FromProgram)
    hello, welcome = introduced(channel)
    remote = RemoteDebugger(channel, hello.pid, welcome)
    try:
        yield remote
    finally:
        remote.detach()
        server.close()
        if not debugger.ended:
            debugger.abort()
            debugger.wait(10)


@contextlib.contextmanager
def front_of(debugger: Debugger) -> Iterator[Channel]:
    """Yield a front's end of a connection, before the handshake."""
    here, there = socket.socketpair()
    server = DebugServer(debugger, None, Address(path=""))
    server.adopt(there)
    channel: Channel = Channel(here, m.FromProgram)
    try:
        yield channel
    finally:
        channel.close()
        server.close()
