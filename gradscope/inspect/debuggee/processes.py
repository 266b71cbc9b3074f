"""The processes that a program starts by ``multiprocessing``: an instrument in this process sees nothing of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.process import BaseProcess
from typing import Any

from ..output.number_format import count
from .program_thread import replaced

__all__ = ["StartedProcesses"]

# Workers of data loaders and helpers of multiprocessing itself run no backward of the program.
_HELPERS = ("multiprocessing.", "torch.utils.data.", "gradscope.utils.data.", "torch._inductor.")
# Modules whose functions run another one in the new process, which they take as their first argument.
_WRAPPERS = ("torch.multiprocessing.", "torch.distributed.")
# Modules whose processes get what they run only after they have started.
_POOLS = {
    "concurrent.futures.process": "what a ProcessPoolExecutor is given",
    "multiprocessing.pool": "what a Pool is given",
}


class StartedProcesses:
    """Counts the processes that are started in a block, by what they run.

    Examples
    --------
    >>> started = StartedProcesses()
    >>> with started.gathering():
    ...     pass
    >>> started.unseen
    ''
    """

    def __init__(self) -> None:
        self._started: Counter[str] = Counter()

    @contextmanager
    def gathering(self) -> Iterator[None]:
        """Count what is started in the block."""
        start = BaseProcess.start

        def start_counted(process: BaseProcess) -> None:
            name = _name_of(process)  # a process that has started forgets what it runs
            start(process)
            if name:
                self._started[name] += 1

        with replaced(BaseProcess, "start", start_counted):
            yield

    @property
    def unseen(self) -> str:
        """What was not looked into and how it can be; empty if no process was started."""
        if not self._started:
            return ""
        number, names = self._started.total(), ", ".join(self._started)
        verb = "runs" if number == 1 else "run"
        return (
            f"{count(number, 'process', 'processes')} that the script started, which {verb} {names}: to watch one, "
            "open gradscope.check.Sanitizer(), gi.Doctor() or gi.record(path) in that function"
        )


def _name_of(process: Any) -> str:
    """Return what a process runs, a function or its own class; an empty string for a helper."""
    target = getattr(process, "_target", None)
    if target is not None and str(getattr(target, "__module__", "")).startswith(_WRAPPERS):
        target = next(filter(callable, getattr(process, "_args", ())), target)
    module = getattr(type(process) if target is None else target, "__module__", None) or ""
    if target is None and not module.startswith("multiprocessing."):
        return f"`{type(process).__qualname__}`"
    if module in _POOLS:
        return _POOLS[module]
    if target is None or f"{module}.".startswith(_HELPERS):
        return ""
    return f"`{getattr(target, '__qualname__', type(target).__qualname__)}`"
