"""The protocol's own JSON schema, where debugpy is installed, which carries it: every message that is sent obeys it."""

from __future__ import annotations

import functools
import importlib.util
import json
from pathlib import Path
from typing import Any

import jsonschema

_PLACE = "_vendored/pydevd/_pydevd_bundle/_debug_adapter/debugProtocol.json"


@functools.cache
def schema() -> dict[str, Any] | None:
    """Return the schema; None where there is none."""
    found = importlib.util.find_spec("debugpy")
    places = [Path(found.origin).parent / _PLACE] if found is not None and found.origin else []
    return next((json.loads(place.read_text(encoding="utf-8")) for place in places if place.exists()), None)


def check(message: dict[str, Any]) -> None:
    """Hold a message of an adapter to the schema, where there is one.

    Raises
    ------
    jsonschema.ValidationError
        If it does not obey it.
    """
    known = schema()
    if known is not None and message is not None:
        _validator(_definition(message)).validate(message)


def _definition(message: dict[str, Any]) -> str:
    if message["type"] == "event":
        name = message["event"]
        return f"{name[0].upper()}{name[1:]}Event"
    if message["type"] == "response" and not message["success"]:
        return "ErrorResponse"
    name = message["command"]
    return f"{name[0].upper()}{name[1:]}{message['type'].capitalize()}"


@functools.cache
def _validator(definition: str) -> jsonschema.Draft4Validator:
    known = schema()
    assert known is not None
    assert definition in known["definitions"], f"the protocol has no {definition}"
    return jsonschema.Draft4Validator({**known, "$ref": f"#/definitions/{definition}"})
