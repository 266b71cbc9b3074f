"""Running a script on a thread as python runs it: ``__main__``, ``sys.argv``, ``sys.path[0]``, output, exit status."""

from __future__ import annotations

import builtins
import codecs
import io
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import SourceFileLoader
from types import ModuleType
from typing import Any

from .gate import ProgramAborted
from .program import Write, own_traceback

__all__ = ["ScriptProgram", "check_script"]


def check_script(path: str) -> None:
    """Raise unless there is a script to run.

    Parameters
    ----------
    path : str

    Raises
    ------
    FileNotFoundError, IsADirectoryError, PermissionError
        In words for a person.
    """
    if os.path.isdir(path):
        raise IsADirectoryError(f"{path!r} is a directory, not a script")
    if not os.path.exists(path):
        raise FileNotFoundError(f"there is no script {path!r}")
    if not os.access(path, os.R_OK):
        raise PermissionError(f"the script {path!r} cannot be read")


class ScriptProgram:
    """A script as a program.

    Parameters
    ----------
    path : str
    argv : sequence of str
        Its arguments.

    Attributes
    ----------
    title : str
        The path.
    exit_status : int or None
        What python would return: 0, the argument of ``sys.exit``, or 1 when it raised.
    error : BaseException or None
        What it raised, other than SystemExit.
    """

    def __init__(self, path: str, argv: Sequence[str] = ()) -> None:
        check_script(path)
        self.title = path
        # As python does: absolute everywhere but in sys.argv.
        self._file = os.path.abspath(path)
        self.argv = list(argv)
        self.exit_status: int | None = None
        self.error: BaseException | None = None
        self.traceback = ""

    def run(self, write: Write) -> None:
        """Run the script to its end."""
        try:
            with open(self._file, "rb") as file:
                source = file.read()
            with self._as_main() as module, _captured(write):
                self.exit_status = self._execute(source, module, write)
        except BaseException as error:  # reading the file, or restoring the process
            self.exit_status = 1
            self._raised(error, write)

    def _raised(self, error: BaseException, write: Write) -> None:
        self.error = error
        self.traceback = own_traceback(error)
        write(self.traceback, "stderr")

    def _execute(self, source: bytes, module: ModuleType, write: Write) -> int:
        try:
            exec(compile(source, self._file, "exec", dont_inherit=True), module.__dict__)
        except SystemExit as error:
            return self._status(error.code, write)
        except ProgramAborted:
            return 0
        except BaseException as error:
            _flush()
            self._raised(error, write)
            return 1
        return 0

    @staticmethod
    def _status(code: Any, write: Write) -> int:
        if code is None:
            return 0
        if isinstance(code, int):
            return code & 0xFF
        _flush()
        write(f"{code}\n", "stderr")
        return 1

    @contextmanager
    def _as_main(self) -> Iterator[ModuleType]:
        """Put the script in the place of ``__main__`` for the length of the block."""
        module = ModuleType("__main__")
        module.__dict__.update(
            __file__=self._file,
            __builtins__=builtins,
            __loader__=SourceFileLoader("__main__", self._file),
            __cached__=None,
            __package__=None,
        )
        kept = sys.modules.get("__main__"), sys.argv, list(sys.path)
        sys.modules["__main__"] = module
        sys.argv = [self.title, *self.argv]
        if not sys.flags.safe_path:
            # As python does: the script's directory takes the place of the one that the interpreter put first.
            sys.path[0:1] = [os.path.dirname(os.path.realpath(self._file))]
        try:
            yield module
        finally:
            main, sys.argv, sys.path[:] = kept
            if main is not None:
                sys.modules["__main__"] = main


class _Raw(io.RawIOBase):
    """The bottom of a captured stream: bytes become text and go to `write`."""

    def __init__(self, write: Callable[[str], None], stands_for: Any) -> None:
        super().__init__()
        self._write = write
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._stands_for = stands_for
        self.name = getattr(stands_for, "name", "<program>")

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        data = bytes(data)
        text = self._decode(data)
        if text:
            self._write(text)
        return len(data)

    def fileno(self) -> int:
        return self._stands_for.fileno()


def captured_stream(write: Callable[[str], None], stands_for: Any) -> io.TextIOWrapper:
    r"""Return a text stream, with a ``buffer``, that hands what is written to `write` at once.

    Parameters
    ----------
    write : callable
        Takes text.
    stands_for : file
        Whose ``fileno()`` it has.

    Returns
    -------
    TextIOWrapper

    Examples
    --------
    >>> import sys
    >>> seen = []
    >>> stream = captured_stream(seen.append, sys.__stdout__)
    >>> print("one", file=stream)
    >>> "".join(seen)
    'one\n'
    """
    raw = _Raw(write, stands_for)
    return io.TextIOWrapper(raw, encoding="utf-8", newline="\n", write_through=True)


@contextmanager
def _captured(write: Write) -> Iterator[None]:
    """Send stdout and stderr to `write`; the terminal's input belongs to the debugger."""
    kept = sys.stdin, sys.stdout, sys.stderr
    with open(os.devnull, encoding="utf-8") as nothing:
        errors = captured_stream(lambda text: write(text, "stderr"), sys.__stderr__)
        ours = nothing, captured_stream(write, sys.__stdout__), errors
        sys.stdin, sys.stdout, sys.stderr = ours
        try:
            yield
        finally:
            _flush()
            # Whoever replaced a stream meanwhile keeps it.
            if sys.stdin is ours[0]:
                sys.stdin = kept[0]
            if sys.stdout is ours[1]:
                sys.stdout = kept[1]
            if sys.stderr is ours[2]:
                sys.stderr = kept[2]


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            continue
