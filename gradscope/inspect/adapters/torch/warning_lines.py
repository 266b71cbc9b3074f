"""PyTorch's warnings at the user's line: a mode's own frame stands where PyTorch looks for that of the caller.

Which filter applies, and whether a warning has been shown for its line already, is decided by the place it names. So
what names a mode is let through, and issued again for the line that called PyTorch. What stands between two functions
of PyTorch's is not counted where one says how far away its caller is.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Collection
from types import CodeType, FrameType
from typing import Any

from torch._ops import OpOverload
from torch.overrides import handle_torch_function

from ...source.frame_variables import variables_of

__all__ = ["relocate_warnings", "uncounted"]

# What a dispatch mode calls is a frame of its own since PyTorch 2.15.
_CALL = OpOverload.__call__.__code__
_PASSED = {_CALL, handle_torch_function.__code__}

# Python passes by the frames of files with both words in their names when it counts a warning's `stacklevel`.
_UNCOUNTED = " (passed by as importlib's _bootstrap is)"


def uncounted(function: Callable[..., Any]) -> None:
    """Have the `stacklevel` of warnings pass by the frames of a function."""
    code = function.__code__
    if not code.co_filename.endswith(_UNCOUNTED):
        function.__code__ = code.replace(co_filename=code.co_filename + _UNCOUNTED)


def relocate_warnings(modes: Collection[CodeType], module: str) -> Callable[[], None]:
    """Have warnings that name a mode name the line that called PyTorch instead.

    Parameters
    ----------
    modes : collection of code
        Of the modes' ``__torch_function__`` and ``__torch_dispatch__``.
    module : str
        A regular expression for the names of the modules that they are in.

    Returns
    -------
    callable
        Undoes it.
    """
    show = warnings._showwarnmsg  # type: ignore[attr-defined]
    files = {code.co_filename for code in (*modes, _CALL)}
    module = rf"(?:{module}|torch\._ops)$"
    let_through = _let_through(module)

    def relocated(message: warnings.WarningMessage) -> None:
        nonlocal let_through
        mode = _mode_at_work(modes) if message.filename in files else None
        frame = None if mode is None else _caller(mode, modes)
        if mode is None or frame is None:
            show(message)
            return
        if warnings.filters[:1] != [let_through]:
            _forget(message, mode)
            let_through = _let_through(module)
        names = frame.f_globals
        warnings.warn_explicit(
            message.message,
            message.category,
            frame.f_code.co_filename,
            frame.f_lineno,
            names.get("__name__", "<unknown>"),
            names.setdefault("__warningregistry__", {}),
            source=message.source,
        )

    def undo() -> None:
        # A function by which other code has replaced it meanwhile stays.
        if warnings._showwarnmsg is relocated:  # type: ignore[attr-defined]
            warnings._showwarnmsg = show  # type: ignore[attr-defined]
        if let_through in warnings.filters:
            warnings.filters.remove(let_through)  # type: ignore[attr-defined]

    warnings._showwarnmsg = relocated  # type: ignore[attr-defined]
    return undo


def _let_through(module: str) -> Any:
    warnings.filterwarnings("always", module=module)
    return warnings.filters[0]


def _forget(message: warnings.WarningMessage, mode: FrameType) -> None:
    """Undo what the program's filters, put before ours meanwhile, have noted of a warning when it named a mode."""
    warnings.onceregistry.pop((str(message.message), message.category), None)  # type: ignore[attr-defined]
    mode.f_globals.pop("__warningregistry__", None)


def _mode_at_work(modes: Collection[CodeType]) -> FrameType | None:
    """Return the frame of the mode that a warning names, itself or by the operator that it calls."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_code not in modes:
        if frame.f_code is _CALL and (frame.f_back is None or frame.f_back.f_code not in modes):
            return None
        frame = frame.f_back
    return frame


def _caller(mode: FrameType, modes: Collection[CodeType]) -> FrameType | None:
    """Return the frame that called what a mode carries out."""
    frame: FrameType | None = mode
    between: set[CodeType | None] = {*modes, *_PASSED}
    while frame is not None and frame.f_code in between:
        # A function of PyTorch written in Python hands itself to the modes, and runs a second time inside them.
        between.add(getattr(variables_of(frame).get("func"), "__code__", None))
        frame = frame.f_back
    return frame
