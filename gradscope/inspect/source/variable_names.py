"""What a value is called in the program: the variable or attribute that holds it."""

from __future__ import annotations

from types import FrameType
from typing import Any

from .call_sites import fields_of
from .frame_variables import variables_of

__all__ = ["name_of"]


def name_of(value: Any, frame: FrameType | None) -> str:
    """Return the variable, or the attribute of ``self``, that is bound to an object in a frame.

    Returns
    -------
    str
        Empty when it has no name there.
    """
    if frame is None:
        return ""
    local = variables_of(frame)
    for prefix, scope in (("", local), ("self.", fields_of(local.get("self"))), ("", frame.f_globals)):
        for name, bound in list(scope.items()):
            if bound is value and name.isidentifier() and not name.startswith("_"):
                return prefix + name
    return ""
