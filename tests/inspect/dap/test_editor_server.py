from __future__ import annotations

import os
import socket

import pytest

from gradscope.inspect.dap import editor_server
from gradscope.inspect.dap.editor_server import EditorServer


def test_a_port_that_is_taken_is_refused():
    with socket.create_server(("127.0.0.1", 0)) as other, pytest.raises(OSError, match="in use"):
        EditorServer(other.getsockname()[1])


def test_it_knows_whose_a_connection_is():
    if not editor_server._CONNECTIONS.exists():
        pytest.skip("only Linux tells whose a connection is")
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.create_connection(listener.getsockname()) as there:
        assert editor_server._owner(*there.getsockname()) == os.getuid()
    assert editor_server._owner("127.0.0.1", 1) == -1


@pytest.mark.parametrize(("owner", "begun"), [(os.getuid(), 1), (os.getuid() + 1, 0), (None, 1)])
def test_another_user_is_refused(monkeypatch, capsys, owner, begun):
    sessions = []
    server = EditorServer(0)
    monkeypatch.setattr(editor_server, "_owner", lambda host, port: owner)
    monkeypatch.setattr(server, "_begin", sessions.append)
    accept = server._listener.accept

    class Listener:
        left = 1

        def accept(self):
            if not self.left:
                raise KeyboardInterrupt
            self.left -= 1
            return accept()

        def __enter__(self):
            return self

        def __exit__(self, *error):
            listener.close()

    listener, server._listener = server._listener, Listener()
    with socket.create_connection(("127.0.0.1", server.port)):
        server.run()
    assert len(sessions) == begun
    assert ("another user was refused" in capsys.readouterr().err) == (not begun)
