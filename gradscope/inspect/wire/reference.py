"""``python -m gradscope.inspect.wire.reference``: the messages of the protocol as Markdown, made from their types."""

from __future__ import annotations

import dataclasses
import inspect
import re
import types
import typing
from collections.abc import Iterator
from typing import Any

import msgspec

from ..debugging.session import session_records
from ..output.terminal_text import say
from ..records import records
from . import messages as m
from .verb_table import result_type

__all__ = ["protocol_reference"]

_FRONT, _PROGRAM = "front", "program"
_SENT: dict[Any, tuple[str, ...]] = {
    m.Hello: (_FRONT, _PROGRAM),
    m.Proof: (_FRONT, _PROGRAM),
    m.Refused: (_FRONT, _PROGRAM),
    m.Welcome: (_PROGRAM,),
    m.Request: (_FRONT,),
    m.Cancel: (_FRONT,),
    m.Reply: (_PROGRAM,),
    m.Failure: (_PROGRAM,),
    m.Changed: (_PROGRAM,),
    m.Logged: (_PROGRAM,),
}
_SECTION = re.compile(r"\n\n[A-Z]\w+(?: \w+)?\n---")
_ATTRIBUTE = re.compile(r"^(?P<names>\w+(?:, \w+)*)(?: : .*)?\n(?P<text>(?:    .*\n?)+)", re.MULTILINE)


def protocol_reference() -> str:
    """Return all messages, verbs and records with their fields, as Markdown."""
    return "\n".join([*_messages(), *_verbs(), *_records()])


def _messages() -> Iterator[str]:
    yield "## Messages\n"
    for kind, senders in _SENT.items():
        yield f"### `{_tag(kind)}`\n"
        yield f"From the {' and the '.join(senders)}. {_summary(kind)}\n"
        yield from _fields(kind)


def _verbs() -> Iterator[str]:
    yield "## Verbs\n"
    yield "| `verb` | fields | returns | |\n|---|---|---|---|"
    for kind in typing.get_args(m.AnyVerb):
        defaults = {field.name: field for field in msgspec.structs.fields(kind)}
        hints = typing.get_type_hints(kind)
        fields = ", ".join(f"`{name}`: {_type(hints[name])}{_default(defaults[name])}" for name in defaults)
        returned = result_type(kind)
        text = _markdown(" ".join((inspect.getdoc(kind) or "").split()))
        yield f"| `{_tag(kind)}` | {fields} | {'' if returned is None else _type(returned)} | {text} |"
    yield ""


def _records() -> Iterator[str]:
    yield "## Records\n"
    kinds: list[Any] = [m.Standing, m.BreakpointRecord, m.Conclusion]
    for module in (records, session_records):
        found = (value for value in vars(module).values() if inspect.isclass(value) and dataclasses.is_dataclass(value))
        kinds += [
            value for value in found if value.__module__ == module.__name__ and value is not records.DebuggerEvent
        ]
    for kind in kinds:
        yield f"### {kind.__name__}\n"
        yield f"{_summary(kind)}\n"
        yield from _fields(kind)
    yield "### SessionState\n"
    yield "One of " + ", ".join(f"`{state}`" for state in records.SessionState) + ".\n"


def _fields(kind: Any) -> Iterator[str]:
    hints = typing.get_type_hints(kind)
    names = kind.__struct_fields__ if issubclass(kind, msgspec.Struct) else [f.name for f in dataclasses.fields(kind)]
    texts = _texts(kind)
    if not names:
        return
    yield "| field | type | |\n|---|---|---|"
    for name in names:
        yield f"| `{name}` | {_type(hints[name])} | {texts.get(name, '')} |"
    yield ""


def _summary(kind: Any) -> str:
    """Return what the docstring says before its first section."""
    return _markdown(" ".join(_SECTION.split(inspect.getdoc(kind) or "")[0].split()))


def _texts(kind: Any) -> dict[str, str]:
    """Return what the docstring says of each attribute."""
    described = (inspect.getdoc(kind) or "").partition("Attributes\n----------\n")[2]
    found = {}
    for match in _ATTRIBUTE.finditer(described + "\n"):
        for name in match["names"].split(", "):
            found[name] = _markdown(" ".join(match["text"].split()))
    return found


def _markdown(text: str) -> str:
    return re.sub(r":\w+:`~?([^`]*)`", lambda match: f"`{match[1].rpartition('.')[2]}`", text).replace("``", "`")


def _tag(kind: type[msgspec.Struct]) -> str:
    return str(kind.__struct_config__.tag)


def _default(field: Any) -> str:
    return "" if field.required else f" = `{field.default!r}`"


def _type(hint: Any) -> str:
    """Return a type as one reads it."""
    origin, parameters = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        if set(parameters) == set(typing.get_args(m.AnyVerb)):
            return "a verb"
        return " or ".join(_type(part) for part in parameters)
    if origin in (tuple, list):
        inner = [part for part in parameters if part is not Ellipsis]
        return f"{origin.__name__} of {' and '.join(_type(part) for part in inner)}"
    if origin is dict:
        return f"map of {_type(parameters[0])} to {_type(parameters[1])}"
    if hint is type(None):
        return "nil"
    return "the verb's result" if hint is msgspec.Raw else hint.__name__


if __name__ == "__main__":
    say(protocol_reference())
