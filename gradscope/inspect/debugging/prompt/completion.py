"""Tab completion and history at a terminal."""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from ...diagnosis.explain_topics import TOPICS
from .prompt_verbs import VERBS

if TYPE_CHECKING:
    from ..session.debugger import Debugger

__all__ = ["NAMES", "complete", "install"]

NAMES = (
    "grad", "grads", "produced", "saved", "norm", "node", "index", "last", "at_node(", "changed(", "isnan(", "isinf(",
    "np",
)  # fmt: skip
"""What expressions know at a node; a function with its parenthesis."""

_SPECS = ("op:", "node:", "param:", "mod:", "line:", "iter:", "backward:", "saved:", "nan", "inf")
_NEAR = 1000
_HISTORY = "GRADSCOPE_HISTORY"
_installed: list[Callable[[str, int], str | None]] = []


def complete(debugger: Debugger, line: str) -> list[str]:
    """Return what the last word of a line may become.

    Parameters
    ----------
    line : str
        What has been typed, up to the cursor.

    Examples
    --------
    >>> import gradscope as gs
    >>> from gradscope.inspect import Debugger
    >>> session = Debugger.for_call(gs.ones(2, requires_grad=True).sum().backward)
    >>> complete(session, "reverse-"), complete(session, "b bac"), complete(session, "explain inp")
    (['reverse-continue', 'reverse-step'], ['backward:'], ['inplace'])
    """
    head, space, word = line.lstrip().rpartition(" ")
    verbs = {name: verb for verb in VERBS for name in verb.names}
    if not space:
        words = list(verbs)
    else:
        verb = verbs.get(head.split(" ")[0])
        words = _arguments(debugger, verb.name if verb is not None else "", " if " in line or "::" in line)
    return sorted({found for found in words if found.startswith(word) and found != word})


def _arguments(debugger: Debugger, verb: str, condition: bool) -> list[str]:
    if verb in ("break", "tbreak", "log", "until") and not condition:
        return [*_SPECS, *_places(debugger)]
    asked = _ASKED.get(verb)
    return asked(debugger) if asked is not None else list(NAMES)


def _breakpoints(debugger: Debugger) -> list[str]:
    return [str(point.id) for point in debugger.breakpoints]


_ASKED: dict[str, Callable[[Debugger], list[str]]] = {
    "delete": _breakpoints,
    "enable": _breakpoints,
    "disable": _breakpoints,
    "ignore": _breakpoints,
    "catch": lambda debugger: ["nan", "inf", "violation", "exception", "on", "off"],
    "limit": lambda debugger: [f"{name}=" for name in debugger.limits],
    "record": lambda debugger: ["on", "off"],
    "list": lambda debugger: ["all"],
    "explain": lambda debugger: list(TOPICS),
    "help": lambda debugger: [name for verb in VERBS for name in verb.names],
    "unwatch": lambda debugger: [str(watch.id) for watch in debugger.watches],
    "why": lambda debugger: debugger.parameter_names(),
    "parameters": lambda debugger: debugger.parameter_names(),
    "thread": lambda debugger: [str(thread.number) for thread in debugger.threads],
    "compare": lambda debugger: [],
    "memory": lambda debugger: [],
    "flow": lambda debugger: [],
}
"""What may follow a verb, asked of the session only for the verb that is typed."""


def _places(debugger: Debugger) -> list[str]:
    """Return specs of the nodes near the current one."""
    here = max(0, debugger.current)
    found = []
    for node in debugger.nodes[max(0, here - _NEAR) : here + _NEAR]:
        found.append(node.operator)
        if node.parameter:
            found.append(f"param:{node.parameter}")
        if node.module:
            found.append(f"mod:{node.module}")
        if node.location is not None:
            found.append(f"line:{os.path.basename(node.location.filename)}:{node.location.lineno}")
    return found


def install(debugger: Debugger) -> None:
    """Let the Tab key complete commands, where this Python has readline.

    The history lasts as long as the process; the environment variable ``GRADSCOPE_HISTORY`` names a file for it.
    """
    try:
        import readline  # Windows has no readline
    except ImportError:
        return
    found: list[str] = []

    def completer(text: str, state: int) -> str | None:
        if not state:
            found[:] = complete(debugger, readline.get_line_buffer()[: readline.get_endidx()])
        return found[state] if state < len(found) else None

    readline.set_completer(completer)
    readline.set_completer_delims(" ")
    readline.parse_and_bind("bind ^I rl_complete" if "libedit" in (readline.__doc__ or "") else "tab: complete")
    path = os.environ.get(_HISTORY)
    if path and not _installed:
        try:
            readline.read_history_file(path)
        except OSError:
            pass  # there is no history yet
        atexit.register(_write_history, readline.write_history_file, path)
    _installed.append(completer)


def _write_history(write: Callable[[str], None], path: str) -> None:
    try:
        write(path)
    except OSError:
        pass  # a history that cannot be kept is no reason to fail at the end
