"""Waiting for another thread without stopping the screen."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from gradscope.inspect.records.object_search import no_collection

__all__ = ["on_thread"]

T = TypeVar("T")


async def on_thread(work: Callable[[], T], *, collect: bool = True) -> T:
    """Call a function that may block on a thread of its own.

    The thread is a daemon, unlike those of `asyncio.to_thread`, for which Python waits at its exit: a program that
    never answers must not keep the debugger from leaving.

    Parameters
    ----------
    work : callable
        Takes nothing.
    collect : bool
        False keeps the garbage collector from looking through what very many nodes are read into: it would stop the
        screen for as long as that takes, again and again.

    Returns
    -------
    object
        What it returns.

    Raises
    ------
    Exception
        What it raises.
    """
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[T] = loop.create_future()

    def settle(result: Any, error: BaseException | None) -> None:
        if answer.cancelled():
            return
        if error is None:
            answer.set_result(result)
        else:
            answer.set_exception(error)

    def run() -> None:
        result, failure = None, None
        try:
            with contextlib.nullcontext() if collect else no_collection():
                result = work()
        except BaseException as error:
            failure = error
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(settle, result, failure)

    threading.Thread(target=run, name="gradscope tui", daemon=True).start()
    return await answer
