"""The thread that a program takes for its main thread, and how it is interrupted from another one."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakSet, ref

from .pause_gate import ProgramAborted

__all__ = ["Interrupter", "ProgramThread", "ThreadFamily", "aborts_unreported", "replaced"]

_AGAIN = 0.5
_FREEING = 1.0


@contextmanager
def replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    """Put `value` in the place of an attribute for the length of the block, unless somebody else replaces it."""
    kept = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        if getattr(owner, name) is value:
            setattr(owner, name, kept)


@contextmanager
def aborts_unreported() -> Iterator[None]:
    """Do not report a :class:`ProgramAborted` that was raised in a callback or a destructor.

    Python drops such an exception; :meth:`Interrupter.end` raises it again.
    """
    report = sys.unraisablehook

    def unraisablehook(args: Any) -> None:
        if not issubclass(args.exc_type, ProgramAborted):
            report(args)

    with replaced(sys, "unraisablehook", unraisablehook):
        yield


_STACK_BYTES = 256 * 2**20  # address space: the system gives memory when the stack grows


class ProgramThread(threading.Thread):
    """A thread that nobody waits for at the interpreter's end, though the threads that it starts are no daemons."""

    def __init__(self, target: Callable[[], None]) -> None:
        self._inside = self._gone = False
        super().__init__(target=target, name="gradscope program", daemon=True)

    def start(self) -> None:
        """Start the thread, with a stack on which a graph of some 100,000 nodes in a row can be freed.

        PyTorch frees a graph without recursion only as long as nobody has looked at its nodes from Python.
        """
        before = threading.stack_size(_STACK_BYTES)
        try:
            super().start()
        finally:
            threading.stack_size(before)

    def run(self) -> None:
        """Run the target; from here on ``daemon`` is False, as a main thread's is."""
        self._inside = True
        super().run()

    def join(self, timeout: float | None = None) -> None:
        """Wait for the end of the thread, and until PyTorch has freed what it keeps for the thread.

        PyTorch does so after the thread's Python code has ended, and takes the interpreter's lock for it: the process
        would crash if the interpreter were shutting down by then.
        """
        super().join(timeout)
        if self.is_alive() or self._gone:
            return
        # Where the system does not list its threads, this waits for a short time and hopes.
        entry = f"/proc/self/task/{self.native_id}"
        listed = os.path.exists("/proc/self/task")
        deadline = time.monotonic() + (_FREEING if listed else _FREEING / 20)
        while time.monotonic() < deadline and (not listed or os.path.exists(entry)):
            time.sleep(0.001)
        self._gone = True

    @property
    def daemon(self) -> bool:  # type: ignore[override]
        """Whether threads that this one starts are daemons: False, once it runs."""
        return not self._inside


class Interrupter:
    """Raises an exception in the thread that is inside its block, and in no other.

    Python raises such an exception between two bytecodes, so that a call into C code has to return first; :meth:`sleep`
    is interrupted at once.

    Examples
    --------
    >>> import threading, time
    >>> interrupter, seen = Interrupter(), []
    >>> def work():
    ...     try:
    ...         with interrupter:
    ...             ready.set()
    ...             interrupter.sleep(60)
    ...     except TimeoutError as error:
    ...         seen.append(error)
    >>> ready = threading.Event()
    >>> thread = threading.Thread(target=work)
    >>> thread.start()
    >>> ready.wait() and interrupter.throw(TimeoutError)
    True
    >>> thread.join()
    >>> seen
    [TimeoutError()]
    """

    def __init__(self) -> None:
        # A signal may come while a thread holds this lock, and the signal's handler takes it again: hence reentrant.
        self._lock = threading.RLock()
        # It is held, and released to wake the thread that waits for it. An Event would do the same in Python, where an
        # exception that arrives could leave it half done.
        self._bell = threading.Lock()
        self._bell.acquire()
        self._outside = threading.Event()
        self._thrown = False
        self.ident: int | None = None

    def __enter__(self) -> Interrupter:
        self._outside.clear()
        self._thrown = False
        self.ident = threading.get_ident()
        return self

    def __exit__(self, *unused: object) -> None:
        ident = self.ident
        with self._lock:
            self.ident = None
        self._outside.set()
        if self._thrown:
            _take_back(ident)

    @property
    def here(self) -> bool:
        """Whether the calling thread is the one inside."""
        return self.ident == threading.get_ident()

    def throw(self, kind: type[BaseException]) -> bool:
        """Raise an exception in the thread inside.

        Parameters
        ----------
        kind : type
            Its class, of which the interpreter makes the instance.

        Returns
        -------
        bool
            False if there is no thread inside.
        """
        with self._lock:
            if self.ident is None:
                return False
            self._thrown = True
            _set_async(self.ident, kind)
            # No function in Python may be called before the bell: while an exception is pending for another thread,
            # Python 3.11 does not enter one under a profiler or a tracer.
            try:
                self._bell.release()
            except RuntimeError:  # it is released already
                pass
        return True

    def end(self, grace: float = 0.1) -> None:
        """Raise :class:`ProgramAborted` until the thread has left, because a program may catch it; return at once.

        Parameters
        ----------
        grace : float
            Seconds before it is raised for the first time.
        """
        threading.Thread(target=self._insist, args=(grace,), name="gradscope abort", daemon=True).start()

    def _insist(self, grace: float) -> None:
        while not self._outside.wait(grace) and self.throw(ProgramAborted):
            grace = _AGAIN

    def sleep(self, seconds: float) -> None:
        """Do what ``time.sleep`` does, but let exceptions in."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            self._bell.acquire(timeout=min(left, threading.TIMEOUT_MAX))


class _TakenBackError(BaseException):
    """Replaces an exception that has not been raised yet."""


def _take_back(ident: int | None) -> None:
    """Cancel an exception that was sent to the calling thread and has not been raised yet.

    Another exception replaces it and is caught here. If nothing replaced it, Python 3.11 and 3.12 would believe until
    the process ends that an exception is pending: the next function called under ``sys.settrace`` would wait for it.
    """
    try:
        _set_async(ident, _TakenBackError)
        for _ in range(100):  # Python raises it between two bytecodes
            pass
    except _TakenBackError:
        pass


def _set_async(ident: int | None, kind: type[BaseException]) -> None:
    if ident is not None:
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(ident), ctypes.py_object(kind))


class ThreadFamily:
    """The threads that a program starts, for which python would wait at its end.

    The first of them is what ``threading.main_thread()`` returns, except on the process's main thread.
    """

    def __init__(self) -> None:
        self._members: WeakSet[threading.Thread] = WeakSet()
        self._executors: WeakSet[Any] = WeakSet()

    @contextmanager
    def gathering(self) -> Iterator[None]:
        """Make the calling thread the main thread, and remember what it and its descendants start."""
        head, start, main, hook = (
            threading.current_thread(),
            threading.Thread.start,
            threading.main_thread,
            threading.excepthook,
        )
        name, active = head.name, True
        self._members.add(head)

        def start_member(thread: threading.Thread) -> None:
            if threading.current_thread() in self._members:
                self._members.add(thread)
                executor = _executor_of(thread)
                if executor is not None:
                    self._executors.add(executor)
            start(thread)

        def main_thread() -> threading.Thread:
            real = main()
            return head if active and threading.current_thread() is not real else real

        def excepthook(args: Any) -> None:
            if args.exc_type is not ProgramAborted:
                hook(args)

        if head is not main():
            head.name = "MainThread"
        try:
            with (
                replaced(threading.Thread, "start", start_member),
                replaced(threading, "main_thread", main_thread),
                replaced(threading, "excepthook", excepthook),
                aborts_unreported(),
            ):
                yield
        finally:
            active = False
            head.name = name

    def alive(self) -> list[threading.Thread]:
        """Return the living threads that are no daemons, without the calling one."""
        here = threading.current_thread()
        return [t for t in threading.enumerate() if t in self._members and t is not here and not t.daemon]

    def join(self) -> None:
        """Wait for the threads, as python does before it calls the handlers of ``atexit``."""
        self._close_executors()
        while threads := self.alive():
            # It waits in slices, so that an abort is noticed.
            threads[0].join(0.1)

    def _close_executors(self) -> None:
        """End the executors whose workers would otherwise wait for work for ever."""
        if self.alive():
            for executor in list(self._executors):
                executor.shutdown(wait=True)


def _executor_of(thread: threading.Thread) -> Any:
    """Return the executor of ``concurrent.futures`` that a thread not yet started will work for, or None.

    The worker's arguments have a weak reference to it. The garbage collector's list of objects would lead to executors
    too, but to hold a tuple of that list that another thread is building makes that thread fail.
    """
    futures = sys.modules.get("concurrent.futures._base")
    if futures is None:
        return None
    handed = (*getattr(thread, "_args", ()), getattr(thread, "executor_reference", None))
    referred = (reference() for reference in handed if isinstance(reference, ref))
    return next((executor for executor in referred if isinstance(executor, futures.Executor)), None)
