from __future__ import annotations

import msgspec
import pytest

from gradscope.inspect.records.records import TensorSubject
from gradscope.inspect.wire import messages as m
from gradscope.inspect.wire.verb_table import OF_AN_ORDER, VERBS

EVERY_VERB = [kind for kind in vars(m).values() if isinstance(kind, type) and issubclass(kind, m.Verb)]


@pytest.mark.parametrize("kind", [kind for kind in EVERY_VERB if kind is not m.Verb])
def test_a_request_comes_back_as_it_was_sent(kind):
    values = {
        "int": 3, "str": "x", "bool": True, "float": 0.5, "int | str": "op:Mul", "str | None": None,
        "TensorSubject": TensorSubject("grad"), "tuple[Index, ...]": (1, (0, 4)),
    }  # fmt: skip
    fields = [values[kind.__annotations__[name]] for name in kind.__struct_fields__]
    request = m.Request(7, kind(*fields))
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(request), type=m.FromFront) == request


def test_every_verb_is_answered():
    about_the_connection = {m.Verb, m.Leave}
    assert set(VERBS) | set(OF_AN_ORDER) == set(EVERY_VERB) - about_the_connection


def test_fields_that_a_verb_does_not_have_are_refused():
    data = msgspec.msgpack.encode({"type": "request", "id": 1, "verb": {"verb": "step", "n": 1, "more": 2}})
    with pytest.raises(msgspec.ValidationError, match="more"):
        msgspec.msgpack.decode(data, type=m.FromFront)
