"""Cases that may do harm, each batch in a child with little memory, little time, and an ear for what it does."""

from __future__ import annotations

import contextlib
import faulthandler
import os
import resource
import shutil
import signal
import sys
import traceback
from collections.abc import Callable, Iterable

MEMORY = 1 << 30  # bytes of address space that a batch may ask for, beyond what the process has
PATIENCE = 120  # seconds for a case: machines that run tests are shared
_BATCH = 50
_HARM = ("os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "subprocess.Popen", "socket.connect")


def run_guarded(
    case: Callable[[int], None], numbers: Iterable[int], *, text_runs: bool = True
) -> tuple[list[str], int]:
    """Run a case for each number; return what went wrong, and the largest resident memory of a child in bytes.

    A case goes wrong by raising, by taking too long, by dying, and by commands and connections; where not `text_runs`,
    also by executing any text, as modules do that are imported on the way.
    """
    numbers, wrong, largest = list(numbers), [], 0
    for at in range(0, len(numbers), _BATCH):
        told, nbytes = _in_child(case, numbers[at : at + _BATCH], text_runs)
        wrong += told
        largest = max(largest, nbytes)
    return wrong, largest


def _in_child(case: Callable[[int], None], numbers: list[int], text_runs: bool) -> tuple[list[str], int]:
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.close(reader)
        with os.fdopen(writer, "w") as stream:
            _run(case, numbers, stream.fileno(), text_runs)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as stream:
        lines = stream.read().splitlines()
    _, status, usage = os.wait4(child, 0)
    wrong = [line.removeprefix("wrong ") for line in lines if line.startswith("wrong ")]
    begun = [line for line in lines if line.startswith("begun ")]
    if status or len(begun) < len(numbers):
        wrong.append(f"case {begun[-1] if begun else numbers[0]}: the process died with status {status}")
    return wrong, usage.ru_maxrss * 1024


def _run(case: Callable[[int], None], numbers: list[int], report: int, text_runs: bool) -> None:
    heard: list[str] = []

    def listen(event: str, args: tuple[object, ...]) -> None:
        harm = event in _HARM and not _is_graphviz(event, args)
        if harm or (event == "exec" and not text_runs and _is_text(args[0])):
            heard.append(event)

    sys.addaudithook(listen)
    with open("/proc/self/statm") as file:
        room = int(file.read().split()[0]) * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (room, room))
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    for number in numbers:
        os.write(report, f"begun {number}\n".encode())
        faulthandler.dump_traceback_later(PATIENCE - 5)
        signal.alarm(PATIENCE)
        heard.clear()
        try:
            case(number)
            if heard:
                raise AssertionError(f"it did {', '.join(sorted(set(heard)))}")
        except BaseException as error:
            frames = " < ".join(f"{f.name}:{f.lineno}" for f in reversed(traceback.extract_tb(error.__traceback__)))
            text = f"wrong case {number}: {type(error).__name__}: {error!s:.300} ({frames:.300})".replace("\n", " ")
            os.write(report, f"{text}\n".encode(errors="replace"))
        signal.alarm(0)
        faulthandler.cancel_dump_traceback_later()


def _is_graphviz(event: str, args: tuple[object, ...]) -> bool:
    """Whether what begins is the one command that drawing a graph runs: it is given sizes alone, no name of anybody."""
    return event == "subprocess.Popen" and args[1] == [shutil.which("dot"), "-Tplain"]


def _is_text(code: object) -> bool:
    """Whether code is what ``exec`` was given as text: a module has a file, and a template a name."""
    return getattr(code, "co_filename", "") == "<string>"


@contextlib.contextmanager
def silenced(stream_names: tuple[str, ...] = ("stdout", "stderr")):
    """Yield lists of what is printed meanwhile, by stream."""
    import io

    kept = {name: getattr(sys, name) for name in stream_names}
    for name in stream_names:
        setattr(sys, name, io.StringIO())
    try:
        yield {name: getattr(sys, name) for name in stream_names}
    finally:
        for name, stream in kept.items():
            setattr(sys, name, stream)
