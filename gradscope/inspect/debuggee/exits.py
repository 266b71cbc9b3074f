"""How a program ends: its ``atexit`` handlers, kept apart from the debugger's own, and ``os._exit``."""

from __future__ import annotations

import atexit
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, NoReturn

from ..output.terminal_text import say
from .pause_gate import ProgramAborted
from .program import own_traceback
from .program_thread import replaced

__all__ = ["ExitCalls", "before_os_exit"]

_IGNORED = "Exception ignored in atexit callback" + (" {!r}:" if sys.version_info >= (3, 13) else ": {!r}")


@contextmanager
def before_os_exit(call: Callable[[int], int]) -> Iterator[None]:
    """Call a function before the process ends, where the program calls ``os._exit`` in the block.

    Parameters
    ----------
    call : callable
        Takes the exit status and returns that of the process; not called in a process that the program has forked.
    """
    real, pid, lock = os._exit, os.getpid(), threading.RLock()

    def _exit(status: int) -> NoReturn:
        if os.getpid() == pid:
            with lock:  # another thread that calls os._exit meanwhile waits
                try:
                    status = call(status)
                except Exception as error:
                    say(f"gradscope: {type(error).__name__}: {error}", file=sys.__stderr__)
                real(status)
        real(status)

    with replaced(os, "_exit", _exit):
        yield


class ExitCalls:
    """The exit handlers of one program.

    Examples
    --------
    >>> import atexit
    >>> calls = ExitCalls()
    >>> with calls.gathering():
    ...     _ = atexit.register(print, "registered first")
    ...     _ = atexit.register(print, "registered last")
    >>> calls.run()
    registered last
    registered first
    """

    def __init__(self) -> None:
        self._calls: list[tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]] = []

    @contextmanager
    def gathering(self) -> Iterator[None]:
        """Keep the handlers that the program registers in the block, not those of the debugger on the main thread."""
        here, main = threading.get_ident(), threading.main_thread().ident
        register, unregister = atexit.register, atexit.unregister

        def is_debuggers() -> bool:
            return threading.get_ident() == main != here

        def register_ours(func: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Callable[..., Any]:
            if is_debuggers():
                return register(func, *args, **kwargs)
            if not callable(func):
                raise TypeError("the first argument must be callable")
            self._calls.append((func, args, kwargs))
            return func

        def unregister_ours(func: Callable[..., Any], /) -> None:
            unregister(func)
            self._calls[:] = [call for call in self._calls if call[0] != func]

        with ExitStack() as stack:
            stack.enter_context(replaced(atexit, "register", register_ours))
            stack.enter_context(replaced(atexit, "unregister", unregister_ours))
            yield

    def run(self) -> None:
        """Call the handlers, the last registered first; what one raises is printed, as python does."""
        while self._calls:
            function, args, kwargs = self._calls.pop()
            try:
                function(*args, **kwargs)
            except ProgramAborted:
                raise
            except BaseException as error:
                print(_IGNORED.format(function), file=sys.stderr)
                print(own_traceback(error), end="", file=sys.stderr, flush=True)
