from __future__ import annotations

import io

import pytest

from gradscope.inspect.dap.adapter import DebugAdapter
from gradscope.inspect.dap.framing import Stream


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "launch needs `program`, a script's path, or `module`, a module's name"),
        ({"program": "/nowhere/train.py"}, "there is no script '/nowhere/train.py'"),
        ({"program": "/nowhere/train.py", "nprocPerNode": 2}, "there is no script '/nowhere/train.py'"),
    ],
    ids=["nothing", "no such script", "no such script for ranks"],
)
def test_a_launch_without_what_it_needs_is_refused_by_name(arguments, message):
    asked, sink = io.BytesIO(), io.BytesIO()
    Stream(io.BytesIO(), asked).send({"type": "request", "command": "launch", "arguments": arguments})
    DebugAdapter(Stream(io.BytesIO(asked.getvalue()), sink)).run()
    answer = Stream(io.BytesIO(sink.getvalue()), io.BytesIO()).receive()
    assert (answer["success"], answer["message"]) == (False, message)
