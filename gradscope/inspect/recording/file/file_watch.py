"""Watching a file while it is written: it may be moved, deleted, replaced, or overwritten by another program."""

from __future__ import annotations

import os
import sys
import tempfile

__all__ = ["FileWatch", "discard_log", "read_header"]

_HEADER = 100  # bytes of the header, in which every writer leaves a trace
_DESCRIPTORS = "/dev/fd"  # where the system lists this process's open files
_CHUNK = 1 << 20  # bytes of the log that are copied at a time
_watched: dict[tuple[int, int], FileWatch] = {}
_POSIX = os.name == "posix"  # elsewhere an open file can neither be moved nor deleted


class FileWatch:
    """Watches a database by a descriptor of its own, which follows the file wherever it goes.

    To be opened before SQLite opens the file and closed after SQLite has closed it: a process that closes any of its
    descriptors of a file gives up all its POSIX locks on it, SQLite's too.

    Raises
    ------
    OSError
        If it cannot be opened.
    """

    def __init__(self, path: str) -> None:
        self.path = os.path.abspath(path)
        self._descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC) if _POSIX else -1
        self._log: tuple[int, int] | None = None
        self.learn()
        if _POSIX:
            _watched[self._identity()] = self

    def learn(self) -> None:
        """Take note of what the file looks like, after it has been written."""
        if _POSIX:
            self._size = os.fstat(self._descriptor).st_size
            self._header = self.header()
            self._log = _identity(f"{self.path}-wal")

    def in_place(self) -> bool:
        """Return whether the file, and the log beside it, are where they were."""
        if not _POSIX:
            return True
        return self._is_at(self.path) and (self._log is None or _identity(f"{self.path}-wal") == self._log)

    def intact(self) -> bool:
        """Return whether no other program has written into the file."""
        if not _POSIX:
            return True
        return os.fstat(self._descriptor).st_size >= self._size and self.header() == self._header

    def header(self) -> bytes:
        """Return the first bytes of the file."""
        return os.pread(self._descriptor, _HEADER, 0)

    def moved_to(self) -> str | None:
        """Return where the file is now; None if it is nowhere, or the system does not tell."""
        if not _POSIX or not os.fstat(self._descriptor).st_nlink:
            return None
        return next((path for path in (self.path, _path_of(self._descriptor)) if path and self._is_at(path)), None)

    def remove_logs(self) -> None:
        """Delete what SQLite has put beside the file, where that is still ours and not another database's."""
        if self._log is not None and _identity(f"{self.path}-wal") == self._log:
            for ending in ("-wal", "-shm"):
                try:
                    os.remove(self.path + ending)
                except OSError:
                    continue

    def copy_log(self, path: str) -> bool:
        """Put a copy of the log beside the file at `path`; return whether one had to be, and could be, made.

        Bringing the log into a file without a log beside it would leave a damaged file if the program were killed
        meanwhile. SQLite keeps the log open, wherever its name has gone.
        """
        descriptor = self._log_descriptor()
        if descriptor is None or _identity(f"{path}-wal") == self._log:
            return False
        try:
            target, name = tempfile.mkstemp(prefix=f"{os.path.basename(path)}-wal", dir=os.path.dirname(path))
        except OSError:
            return False
        try:
            with open(target, "wb") as copy:
                os.fchmod(target, os.fstat(descriptor).st_mode & 0o777)
                while part := os.pread(descriptor, _CHUNK, copy.tell()):
                    copy.write(part)
            os.replace(name, f"{path}-wal")
        except OSError:
            os.unlink(name)
            return False
        return True

    def _log_descriptor(self) -> int | None:
        """Return SQLite's own descriptor of the log: a deleted file has no other way to it."""
        if not _POSIX or self._log is None or not os.path.isdir(_DESCRIPTORS):
            return None
        descriptors = map(int, os.listdir(_DESCRIPTORS))
        return next((number for number in descriptors if _identity(number) == self._log), None)

    def close(self) -> None:
        """Stop watching."""
        if self._descriptor >= 0:
            _watched.pop(self._identity(), None)
            os.close(self._descriptor)
            self._descriptor = -1

    def _is_at(self, path: str) -> bool:
        return _identity(path) == self._identity()

    def _identity(self) -> tuple[int, int]:
        own = os.fstat(self._descriptor)
        return own.st_dev, own.st_ino


def read_header(path: str) -> bytes:
    """Return the first bytes of a database; of one that this process writes, without a descriptor of its own.

    Raises
    ------
    OSError, ValueError
        If it cannot be read.
    """
    found = os.stat(path)
    watch = _watched.get((found.st_dev, found.st_ino))
    if watch is not None:
        return watch.header()
    with open(path, "rb") as file:
        return file.read(_HEADER)


def discard_log(path: str) -> None:
    """Delete the log of a database, once all that it holds is in the file.

    It is emptied first: a reader that has it open would otherwise bring it into the file once more when it leaves, over
    what has been written since.
    """
    try:
        os.truncate(f"{path}-wal", 0)
        for ending in ("-wal", "-shm"):
            os.remove(path + ending)
    except OSError:  # somebody else has deleted one of them
        return


def _identity(path: str | int) -> tuple[int, int] | None:
    """Return what tells a file from all others, by its path or its descriptor; None if it is not there."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino


def _path_of(descriptor: int) -> str | None:
    """Return the path that the system knows of an open file."""
    try:
        if sys.platform == "darwin":
            import fcntl  # Windows has no such module

            return os.fsdecode(fcntl.fcntl(descriptor, fcntl.F_GETPATH, bytes(1024)).rstrip(b"\0"))
        return os.readlink(f"/proc/self/fd/{descriptor}")
    except OSError:
        return None
