"""What expressions know where a program is paused: the node's gradients, and the program's own variables."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import numpy

from ..runtime.events import is_library_file
from .adapters import Adapter, SavedView
from .statistics import count_bad, norm_of

__all__ = ["Namespace", "SavedNamespace", "user_frames"]


class SavedNamespace:
    """The saved tensors of a node: ``saved.mat1``, ``saved["self"]``, ``saved[0]``."""

    def __init__(self, views: list[SavedView]) -> None:
        self._views = views

    def __getitem__(self, name: str | int) -> Any:
        if isinstance(name, int):
            return self._views[name].data
        found = [view for view in self._views if view.name == name]
        if not found:
            raise KeyError(f"this node saved {', '.join(self) or 'nothing'}; there is no {name!r}")
        return found[0].data if len(found) == 1 else [view.data for view in found]

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError as error:
            raise AttributeError(error.args[0]) from None

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(view.name for view in self._views))

    def __len__(self) -> int:
        return len(self._views)

    def __repr__(self) -> str:
        return f"<saved tensors: {', '.join(self) or 'none'}>"


class Namespace(dict[str, Any]):
    """The names of an expression, each made when it is first asked for.

    A dict, because ``eval`` wants one; the debugger's names come first, then the variables of the user's function that
    called backward(), then its globals.

    Parameters
    ----------
    makers : dict
        From name to a function that makes its value.
    frame : frame or None
        The user's frame.
    """

    def __init__(self, makers: dict[str, Callable[[], Any]], frame: FrameType | None) -> None:
        super().__init__()
        self._makers = makers
        self._frame = frame

    def __missing__(self, name: str) -> Any:
        if name in self._makers:
            value = self[name] = self._makers[name]()
            return value
        if self._frame is not None:
            if name in self._frame.f_locals:
                return self._frame.f_locals[name]
            if name in self._frame.f_globals:
                return self._frame.f_globals[name]
        raise KeyError(name)

    def names(self) -> list[str]:
        """Return the debugger's own names."""
        return sorted(self._makers)


def makers(
    adapter: Adapter, node: Any, record: Callable[[], Any], index: int, grads: list[Any], produced: list[Any] | None
) -> dict[str, Callable[[], Any]]:
    """Return the debugger's names for a node, each with the function that makes its value.

    Parameters
    ----------
    adapter : Adapter
    node : object
        The live node.
    record : callable
        Returns its :class:`NodeRecord`.
    index : int
    grads, produced : list of tensor or None
        Its gradients, in and out; out is None before it has run.

    Returns
    -------
    dict
    """
    main = grads[0] if grads else None

    def host(value: Any) -> Any:
        return adapter.to_host(value) if adapter.is_tensor(value) else numpy.asarray(value)

    def bad(position: int) -> Callable[[Any], bool]:
        def has(value: Any) -> bool:
            """Whether any element of a tensor (or of any of several) is."""
            if value is None:
                return False
            if isinstance(value, (list, tuple)):
                return any(has(v) for v in value)
            return count_bad(host(value))[position] > 0

        return has

    return {
        "grad": lambda: main,
        "grads": lambda: tuple(grads),
        "produced": lambda: None if produced is None else tuple(produced),
        "norm": lambda: 0.0 if main is None else norm_of(adapter.to_host(main)),
        "saved": lambda: SavedNamespace(list(adapter.saved(node))),
        "node": record,
        "index": lambda: index,
        "isnan": lambda: bad(0),
        "isinf": lambda: bad(1),
        "np": lambda: numpy,
    }


def user_frames(start: FrameType | None = None) -> list[FrameType]:
    """Return the frames outside gradscope and the standard library, innermost first.

    Parameters
    ----------
    start : frame, optional
        Where to begin; the caller by default.

    Returns
    -------
    list of frame
    """
    frame = start or sys._getframe(1)
    found: list[FrameType] = []
    while frame is not None:
        if not is_library_file(frame.f_code.co_filename):
            found.append(frame)
        frame = frame.f_back  # type: ignore[assignment]
    return found
