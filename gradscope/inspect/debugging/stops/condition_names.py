"""The names that an expression may use at a pause: the node's gradients, and the program's own variables."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import Any, ClassVar

import numpy

from ....program_files import is_library_file
from ...adapters import Adapter, SavedView
from ...records.tensor_statistics import count_bad, norm_of
from ...source.frame_variables import variables_of

__all__ = [
    "HOW_TO_KEEP",
    "Namespace",
    "NodeNames",
    "SavedNamespace",
    "all_frames",
    "frames_of",
    "host",
    "is_library_file",
    "makers",
    "user_frame",
    "user_frames",
]


HOW_TO_KEEP = (
    "Saved tensors are kept where the session records from a backward's first node on: set a breakpoint, or say "
    "`record on`, before it begins."
)


class SavedNamespace:
    """The saved tensors of a node: ``saved.mat1``, ``saved["self"]``, ``saved[0]``."""

    def __init__(self, views: list[SavedView]) -> None:
        self._views = views

    def __getitem__(self, name: str | int) -> Any:
        if isinstance(name, int):
            return _value(self._views[name])
        found = [view for view in self._views if view.name == name]
        if not found:
            raise KeyError(f"this node saved {', '.join(self) or 'nothing'}; there is no {name!r}")
        return _value(found[0]) if len(found) == 1 else [_value(view) for view in found]

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


class NodeNames:
    """The tensors of a node: ``at_node(12).grads[0]``, ``.produced[0]``, ``.saved["self"]``."""

    KNOWN: ClassVar[tuple[str, ...]] = ("grad", "grads", "produced", "saved", "norm")

    def __init__(self, index: int, makers: dict[str, Callable[[], Any]]) -> None:
        self._index = index
        self._makers = makers

    def __getattr__(self, name: str) -> Any:
        if name not in self.KNOWN:
            raise AttributeError(f"a node has grad, grads, produced, saved and norm; there is no {name!r}")
        value = self._makers[name]()
        if value is None or (isinstance(value, tuple) and not value):
            raise RuntimeError(
                f"the gradients of node {self._index} are not known: it has not run, or nobody looked\n"
                "`record on` records nodes while the program runs free."
            )
        return value

    def __repr__(self) -> str:
        return f"<tensors of node {self._index}>"


def _value(view: SavedView) -> Any:
    if view.released:
        raise RuntimeError(f"the saved tensor `{view.name}` has been released\n{HOW_TO_KEEP}")
    return view.data


class Namespace(dict[str, Any]):
    """The names of an expression, each made when it is first asked for.

    A dict, because ``eval`` wants one; the debugger's names come first, then the variables of the user's function that
    called backward(), then its globals, then names that programs use themselves.

    Parameters
    ----------
    makers : dict
        From name to a function that makes its value.
    frame : frame or None
        The user's frame.
    counts : dict
        The debugger's names that give way to the program's.
    """

    def __init__(
        self, makers: dict[str, Callable[[], Any]], frame: FrameType | None, counts: dict[str, int] | None = None
    ) -> None:
        super().__init__()
        self._makers = makers
        self._frame = frame
        self._counts = counts or {}

    def __missing__(self, name: str) -> Any:
        if name in self._makers:
            value = self[name] = self._makers[name]()
            return value
        if self._frame is not None:
            for scope in (variables_of(self._frame), self._frame.f_globals):
                if name in scope:
                    return scope[name]
        return self._counts[name]

    def names(self) -> list[str]:
        """Return the debugger's own names."""
        return sorted({*self._makers, *self._counts})


def makers(
    adapter: Adapter,
    *,
    record: Callable[[], Any],
    index: int,
    grads: Callable[[], Sequence[Any]],
    produced: Callable[[], Sequence[Any] | None],
    saved: Callable[[], SavedNamespace],
    norm: Callable[[], float] | None = None,
) -> dict[str, Callable[[], Any]]:
    """Return the debugger's names for a node, each with the function that makes its value.

    Parameters
    ----------
    record : callable
        Returns its :class:`NodeRecord`.
    grads, produced : callable
        Return its gradients, in and out; out is None before it has run.
    saved : callable
        Returns its saved tensors.
    norm : callable, optional
        Returns the norm of the first incoming gradient, where its value has gone.
    """

    def main() -> Any:
        return next(iter(grads()), None)

    def main_norm() -> float:
        grad = main()
        return 0.0 if grad is None else norm_of(adapter.to_host(grad))

    def all_produced() -> tuple[Any, ...] | None:
        found = produced()
        return None if found is None else tuple(found)

    def bad(position: int) -> Callable[[Any], bool]:
        def has(value: Any) -> bool:
            """Whether any element of a tensor (or of any of several) is."""
            if value is None:
                return False
            if isinstance(value, (list, tuple)):
                return any(has(v) for v in value)
            return count_bad(host(adapter, value))[position] > 0

        return has

    return {
        "grad": main,
        "grads": lambda: tuple(grads()),
        "produced": all_produced,
        "norm": norm or main_norm,
        "saved": saved,
        "node": record,
        "index": lambda: index,
        "isnan": lambda: bad(0),
        "isinf": lambda: bad(1),
        "np": lambda: numpy,
    }


def host(adapter: Adapter, value: Any) -> numpy.ndarray:
    """Return a tensor's values, or anything else, as an array."""
    return adapter.to_host(value) if adapter.is_tensor(value) else numpy.asarray(value)


def user_frames(start: FrameType | None = None) -> list[FrameType]:
    """Return the frames outside gradscope and the standard library, innermost first.

    Parameters
    ----------
    start : frame, optional
        Where to begin; the caller by default.
    """
    frame = start or sys._getframe(1)
    found: list[FrameType] = []
    while frame is not None:
        if not is_library_file(frame.f_code.co_filename):
            found.append(frame)
        frame = frame.f_back  # type: ignore[assignment]
    return found


def user_frame() -> FrameType | None:
    """Return the innermost frame outside gradscope and the standard library."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and is_library_file(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def all_frames() -> list[FrameType]:
    """Return the frames of the caller and its callers, innermost first."""
    frame: FrameType | None = sys._getframe(1)
    found = []
    while frame is not None:
        found.append(frame)
        frame = frame.f_back
    return found


def frames_of(error: BaseException) -> list[FrameType]:
    """Return the frames that an exception has left, innermost first, and those of who caught it."""
    found: list[FrameType] = []
    trace = error.__traceback__
    while trace is not None:
        found.append(trace.tb_frame)
        trace = trace.tb_next
    return found[::-1]
