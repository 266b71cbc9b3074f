from __future__ import annotations

import io

import pytest

from gradscope.inspect.dap.framing import FramingError, Stream


def received(data: bytes):
    return Stream(io.BytesIO(data), io.BytesIO()).receive()


def test_what_is_sent_is_received():
    sink = io.BytesIO()
    Stream(io.BytesIO(), sink).send({"type": "event", "event": "é"})
    assert received(sink.getvalue()) == {"seq": 1, "type": "event", "event": "é"}


def test_the_end_of_the_connection_is_no_message():
    assert received(b"") is None


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", "Name: value"),
        (b"Name: x\r\n\r\n", "no Content-Length"),
        (b"Content-Length: -1\r\n\r\n", "is a number"),
        (b"Content-Length: 999999999\r\n\r\n", "is a number"),
        (b"Content-Length: 9\r\n\r\n{}", "2 of a message's 9"),
        (b"Content-Length: 2\r\n", "inside a header"),
        (b"Content-Length: 2\r\n\r\n[]", "no JSON object"),
        (b"Content-Length: 2\r\n\r\n{\xff", "no JSON object"),
    ],
)
def test_what_is_malformed_is_refused_in_one_line(data, text):
    with pytest.raises(FramingError, match=text) as caught:
        received(data)
    assert "\n" not in str(caught.value)
