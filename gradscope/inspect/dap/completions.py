"""Completions of what is typed in an editor's console."""

from __future__ import annotations

import ast
import re

from ..debugging.prompt.completion import NAMES
from ..wire.client import RemoteDebugger
from .variables import is_harmless

__all__ = ["complete"]

_WORD = re.compile(r"(?:(?P<owner>[\w.\[\]'\"]+)\.)?(?P<start>\w*)$")


def complete(debugger: RemoteDebugger, text: str) -> tuple[list[str], int]:
    """Return the words that the end of `text` may become, and the length of what is there of them.

    Parameters
    ----------
    text : str
        What has been typed, up to the cursor.
    """
    found = _WORD.search(text)
    owner, start = (found["owner"], found["start"]) if found is not None else (None, "")
    if owner:
        words = _attributes(debugger, owner)
    elif text.removesuffix(start).endswith("."):  # of something that would have to be computed
        words = []
    else:
        words = [*(name.rstrip("(") for name in NAMES), *(one.name for one in debugger.variables())]
    hidden = not start.startswith("_")
    return sorted({word for word in words if word.startswith(start) and not (hidden and word[0] == "_")}), len(start)


def _attributes(debugger: RemoteDebugger, owner: str) -> list[str]:
    if not is_harmless(owner):
        return []
    names: list[str] = ast.literal_eval(debugger.evaluate_text(f"dir({owner})"))
    return names
