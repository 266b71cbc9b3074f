from __future__ import annotations

import io

from gradscope.inspect.dap.adapter import DebugAdapter
from gradscope.inspect.dap.framing import Stream


def test_a_request_without_what_it_needs_is_refused_by_name():
    asked, sink = io.BytesIO(), io.BytesIO()
    Stream(io.BytesIO(), asked).send({"type": "request", "command": "launch", "arguments": {}})
    DebugAdapter(Stream(io.BytesIO(asked.getvalue()), sink)).run()
    answer = Stream(io.BytesIO(sink.getvalue()), io.BytesIO()).receive()
    assert (answer["success"], answer["message"]) == (
        False,
        "launch needs `program`, a script's path, or `module`, a module's name",
    )
