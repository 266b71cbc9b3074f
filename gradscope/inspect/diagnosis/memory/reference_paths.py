"""Reference paths: the way from a variable to an object that it keeps alive, by gc.get_referrers().

References from C++ (a PyTorch node keeps its saved tensors) are not known to the collector; a way ends there.
"""

from __future__ import annotations

import gc
import re
import sys
import time
import types
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ....program_files import is_library_file
from ...records.object_search import referrers
from ...source.call_sites import fields_of
from ...source.frame_variables import variables_of

__all__ = ["SECONDS", "ReferencePath", "Roots", "cycle_of", "link"]

_DEPTH = 8
_WIDTH = 400
SECONDS = 10.0
"""How long what a program keeps is searched for; one look through millions of objects takes seconds."""
_LIBRARIES = ("gradscope", "gradscope_tui", "torch", "numpy", "networkx", "rich", "textual", "importlib", "_pytest")


@dataclass(frozen=True)
class ReferencePath:
    """The way from a variable to an object that it keeps alive.

    Attributes
    ----------
    name : str
        The variable at the root; empty when none was found.
    scope : str
        ``'module __main__'`` or ``'function train'``.
    path : str
        The whole way: ``'losses[3]'``.
    """

    name: str
    scope: str
    path: str

    def __str__(self) -> str:
        return f"`{self.path}` ({self.scope})" if self.name else self.path


class Roots:
    """The variables of the program that runs: globals of its modules and of what it executes, locals of its frames.

    Parameters
    ----------
    seconds : float
        After so much time no search goes on: what it has not come to by then, it does not know.

    Attributes
    ----------
    cut : bool
        Whether a search was ended by that.
    """

    def __init__(self, seconds: float = SECONDS) -> None:
        self.cut = False
        self._until = time.monotonic() + seconds
        self._by_id: dict[int, tuple[str, str]] = {}
        # The values are held, so that no other object gets their ids; referrers() lists no tuple that only a frame
        # holds.
        self._values: list[Any] = []
        self._own: set[int] = {id(self), id(self.__dict__), id(self._by_id), id(self._values)}
        modules = [module for module in list(sys.modules.values()) if type(module) is types.ModuleType]
        for module in modules:
            if not _is_library(module):
                self._add(vars(module), f"module {module.__name__}")
        of_modules = {id(vars(module)) for module in modules}
        for frame in _frames():
            code = frame.f_code
            if is_library_file(code.co_filename):
                continue
            if code.co_name != "<module>":
                self._add(variables_of(frame), f"function {code.co_qualname}")
            elif id(frame.f_globals) not in of_modules:  # a frame of exec() may have globals that are no module's
                self._add(frame.f_globals, f"module {frame.f_globals.get('__name__', code.co_filename)}")

    def _add(self, variables: dict[str, Any], scope: str) -> None:
        for name, value in list(variables.items()):
            if not name.startswith("__") and id(value) not in self._by_id:
                self._by_id[id(value)] = (name, scope)
                self._values.append(value)

    def path_to(self, thing: Any, ignore: Sequence[Any] = ()) -> ReferencePath | None:
        """Return the shortest way from a variable to `thing`; None if there is none.

        Parameters
        ----------
        ignore : sequence of object
            Containers of the caller's own, which do not count.
        """
        return self.search(thing, ignore)[0]

    def search(self, thing: Any, ignore: Sequence[Any] = ()) -> tuple[ReferencePath | None, list[Any]]:
        """Return the same, and the referrers that were passed on the way: without a variable, all of them."""
        passed: list[Any] = []
        root = self._by_id.get(id(thing))
        if root is not None:
            return ReferencePath(root[0], root[1], root[0]), passed
        seen = {id(thing), *self._own, *map(id, ignore), id(ignore), id(passed)}
        items, ways = [thing], {id(thing): ""}
        for _ in range(_DEPTH):
            items, ways = _referring_to(items, ways, seen)
            for item in items:
                root = self._by_id.get(id(item))
                if root is not None:
                    return ReferencePath(root[0], root[1], root[0] + ways[id(item)]), passed
            passed += items
            if not items or len(seen) > _WIDTH:
                break
            if time.monotonic() > self._until:
                self.cut = True
                break
        return None, passed


def _referring_to(items: list[Any], ways: dict[int, str], seen: set[int]) -> tuple[list[Any], dict[int, str]]:
    """Return who refers to some objects and has not been seen yet, and the way from each, by its id.

    What a search holds refers to what it has found, too: so that it does not find itself, the objects are in lists that
    count as seen, and nothing else refers to them from one look through all objects to the next.
    """
    found = referrers(items)
    above: list[Any] = []
    ways_above: dict[int, str] = {}
    seen |= {id(items), id(found), id(above)}
    for referrer in found:
        if id(referrer) in seen or issubclass(type(referrer), PASSING):
            continue
        seen.add(id(referrer))
        above.append(referrer)
        item = next((r for r in gc.get_referents(referrer) if id(r) in ways), None)
        ways_above[id(referrer)] = "" if item is None else _way(referrer, item, ways[id(item)])
    return above, ways_above


_KEY = re.compile(r"\['(\w+)'\]")
# A module keeps its parts in these dictionaries; a program writes only the name of the part.
_TABLES = ("_parameters", "_buffers", "_modules")
_IN_TABLE = re.compile(rf"\.(?:{'|'.join(_TABLES)})\['(\w+)'\]")


def _way(container: Any, item: Any, rest: str) -> str:
    """Return the way from a container by one of its items, as a program would write it."""
    way = link(container, item) + rest
    if type(item) is not dict:
        return way
    fields = fields_of(container)
    if fields is item:
        way = _KEY.sub(r".\1", way, count=1)
    entry = _IN_TABLE.match(way)
    if entry is None or any(table not in fields for table in _TABLES):
        return way
    name = entry.group(1)
    return (f"[{name}]" if name.isdigit() else f".{name}") + way[entry.end() :]


# Objects of these types refer to everything, or only while they run.
PASSING: tuple[type, ...] = (types.FrameType, types.ModuleType, type(iter([])), types.TracebackType)


def link(container: Any, item: Any) -> str:
    """Return how `item` hangs in `container`: ``'[3]'``, ``'.state'``, or an empty string.

    Examples
    --------
    >>> link(["a", "b"], "b"), link({"x": 1.5}, 2.5)
    ('[1]', '')
    """
    # Types are compared throughout: isinstance() would ask an object for its __class__, and wake up a proxy.
    kind = type(container)
    if issubclass(kind, dict):
        key = next((k for k, v in list(container.items()) if v is item), None)
        return "" if key is None else f"[{key!r}]" if not isinstance(key, int) or key < 10**6 else "[...]"
    if kind is tuple and len(gc.get_referents(container)) < len(container):
        return ""  # tuple() fills it just now: to read a place that has nothing in it yet would end the process
    if issubclass(kind, (list, tuple, deque)):
        # These are copies, for another thread may change what is looked through.
        return next((f"[{i}]" for i, v in enumerate(list(container)) if v is item), "")
    found = next((name for name, value in fields_of(container).copy().items() if value is item), "")
    return f".{found}" if found else ""


def cycle_of(thing: Any) -> str:
    """Return a cycle that an object is in, as the types on it; an empty string if it is in none."""
    came_from: dict[int, tuple[Any, Any]] = {id(thing): (thing, None)}
    queue = deque([thing])
    while queue and len(came_from) < _WIDTH:
        item = queue.popleft()
        for referent in gc.get_referents(item):
            if referent is thing:
                return _cycle_text(came_from, item)
            if id(referent) in came_from or not gc.is_tracked(referent):
                continue
            if not issubclass(type(referent), _SHARED):
                came_from[id(referent)] = (referent, item)
                queue.append(referent)
    return ""


# A cycle through something that everything refers to is not worth telling.
_SHARED = (type, types.ModuleType, types.BuiltinFunctionType, types.CodeType)


def _cycle_text(came_from: dict[int, tuple[Any, Any]], last: Any) -> str:
    steps = []
    item: Any = last
    while item is not None:
        steps.append(item)
        item = came_from[id(item)][1]
    steps.reverse()
    return " -> ".join([*map(_label, steps), _label(steps[0])])


def _label(item: Any) -> str:
    kind = type(item)
    if kind is types.FunctionType:
        return f"function {item.__qualname__}"
    return f"method {item.__qualname__}" if kind is types.MethodType else kind.__name__


def _is_library(module: types.ModuleType) -> bool:
    if module.__name__ == "__main__":
        return False
    if module.__name__.partition(".")[0] in _LIBRARIES:
        return True
    file = vars(module).get("__file__")
    return file is None or is_library_file(file) or "site-packages" in file


def _frames() -> Iterator[types.FrameType]:
    frame: types.FrameType | None
    for frame in sys._current_frames().values():
        while frame is not None:  # none is kept: this one's own would tie a cycle, with what its callers hold
            yield frame
            frame = frame.f_back
