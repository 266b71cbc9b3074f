from __future__ import annotations

import pytest

from gradscope.inspect import BreakpointError, SessionError
from gradscope.inspect.debuggee.pause_gate import NotParkedError
from gradscope.inspect.debugging.session.session_errors import ProgramEndedError
from gradscope.inspect.wire.remote_errors import RemoteError, remote_error


@pytest.mark.parametrize(
    "error", [SessionError("x"), ProgramEndedError("x"), BreakpointError("x"), ValueError("x"), NotParkedError()]
)
def test_an_error_has_its_class(error):
    found = remote_error(type(error).__name__, str(error))
    assert (type(found), str(found)) == (type(error), str(error))


@pytest.mark.parametrize("name", ["LinAlgError", "UnicodeDecodeError", "SystemExit", "print", "", "a b"])
def test_any_other_is_one_of_the_programs(name):
    found = remote_error(name, "text")
    assert isinstance(found, RemoteError)
    assert str(found) == "text"
    assert type(found).__name__ == (name if name.isidentifier() else "Error")
