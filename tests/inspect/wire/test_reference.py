from __future__ import annotations

import typing
from pathlib import Path

import msgspec

from gradscope.inspect.wire import messages as m
from gradscope.inspect.wire.reference import protocol_reference

PAGE = Path(__file__).parents[3] / "docs" / "protocol.md"


def test_every_message_and_verb_is_described():
    text = protocol_reference()
    for kind in {*typing.get_args(m.FromFront), *typing.get_args(m.FromProgram)}:
        assert f"### `{kind.__struct_config__.tag}`" in text
        for field in msgspec.structs.fields(kind):
            row = next(line for line in text.splitlines() if line.startswith(f"| `{field.name}` |"))
            assert not row.endswith("|  |")
    for verb in typing.get_args(m.AnyVerb):
        assert f"| `{verb.__struct_config__.tag}` |" in text


def test_the_page_is_made_of_them():
    assert protocol_reference().strip() in PAGE.read_text(encoding="utf-8")
