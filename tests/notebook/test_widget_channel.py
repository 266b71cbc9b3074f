"""The protocol's messages as a page sends and reads them."""

from __future__ import annotations

import json
import math
import threading
from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gradscope.inspect as gi
from gradscope.inspect.wire import messages as m
from gradscope.inspect.wire.channel import ChannelError, encode
from gradscope.notebook.widget_channel import WidgetChannel, plain_message


def test_what_the_page_sends_is_received_in_its_order():
    channel = WidgetChannel(print)
    channel.take({"type": "request", "id": 1, "verb": {"verb": "step", "n": 3}})
    channel.take({"type": "cancel", "id": 1})
    assert channel.receive() == m.Request(1, m.Step(3))
    assert channel.receive() == m.Cancel(1)


@pytest.mark.parametrize(
    "content",
    [None, {}, {"type": "request", "id": 1, "verb": {"verb": "explode"}}, {"type": "reply"}, {"type": "cancel"}],
)
def test_what_is_no_message_is_refused(content):
    with pytest.raises(ChannelError, match="no message of the protocol"):
        WidgetChannel(print).take(content)


def test_closing_it_wakes_who_waits():
    channel, received = WidgetChannel(print), []
    waiter = threading.Thread(target=lambda: received.append(channel.receive()))
    waiter.start()
    channel.close()
    waiter.join(20)
    assert received == [None]


@given(st.floats(), st.text(), st.integers(-(2**53), 2**53))
def test_every_message_is_json(norm, text, number):
    sent = []
    WidgetChannel(sent.append).send(m.Reply(number, m.Raw(encode([norm, text])), None))
    (message,) = sent
    back = json.loads(json.dumps(message, allow_nan=False))
    assert back["id"] == number
    told, said = back["result"]
    assert said == text
    assert (told == norm) if math.isfinite(norm) else (told == str(norm))


def test_a_record_has_its_fields():
    summary = gi.summarize([3.0, float("nan")])
    told = plain_message(summary)
    assert list(told) == [field.name for field in fields(summary)]
    assert told["norm"] == "nan"
    assert told["shape"] == [2]
