from __future__ import annotations

import socket

import pytest


@pytest.fixture
def ends():
    """Make both ends of connections, which are closed afterwards."""
    made: list[socket.socket] = []

    def pair():
        made.extend(socket.socketpair())
        return made[-2:]

    yield pair
    for end in made:
        end.close()
