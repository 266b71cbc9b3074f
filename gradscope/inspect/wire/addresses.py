"""The addresses at which programs listen: a Unix socket of the user's own by default, or TCP with a token."""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Address", "AddressError", "listening_programs", "listening_socket", "own_address", "parse_address", "reach"]

_TCP = "tcp://"
_LOOPBACK = "127.0.0.1"
_SUFFIX = ".sock"
_PATIENCE = 5.0


class AddressError(OSError):
    """An address that cannot be understood, reached or listened at."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.strerror = text


@dataclass(frozen=True, slots=True)
class Address:
    """Where a program listens.

    Attributes
    ----------
    path : str
        Of a Unix socket; empty for TCP.
    host, port
        Of TCP.

    Examples
    --------
    >>> print(parse_address("tcp://:5678"), parse_address("/run/user/1000/train.sock"))
    tcp://127.0.0.1:5678 /run/user/1000/train.sock
    """

    path: str = ""
    host: str = ""
    port: int = 0

    @property
    def local(self) -> bool:
        """Whether only processes of this user can reach it, so that no token is asked for."""
        return bool(self.path)

    def __str__(self) -> str:
        return self.path or f"{_TCP}{self.host}:{self.port}"


def parse_address(text: str) -> Address:
    """Return the address that a text names: ``tcp://HOST:PORT``, a process's number, or the path of a Unix socket.

    Raises
    ------
    AddressError
        If it names none.
    """
    if text.startswith(_TCP):
        host, _, port = text.removeprefix(_TCP).rpartition(":")
        if not port.isdecimal() or int(port) > 65535:
            raise AddressError(f"an address over TCP is tcp://HOST:PORT, got {text!r}")
        return Address(host=host.strip("[]") or _LOOPBACK, port=int(port))
    if text.isdecimal():
        return Address(path=str(_directory() / f"{text}{_SUFFIX}"))
    if not text:
        raise AddressError("an address is a process's number, the path of a Unix socket or tcp://HOST:PORT")
    return Address(path=text)


def own_address() -> Address:
    """Return where this process listens unless told otherwise.

    Raises
    ------
    AddressError
        If there is no directory for it that is this user's alone.
    """
    return parse_address(str(os.getpid()))


def listening_programs() -> list[int]:
    """Return the processes of this user that listen at their default address; sockets of dead ones are removed."""
    found = []
    with contextlib.suppress(OSError):
        for entry in sorted(_directory().glob(f"*{_SUFFIX}")):
            if entry.stem.isdecimal() and _lives(entry):
                found.append(int(entry.stem))
    return found


def listening_socket(address: Address) -> tuple[socket.socket, Address]:
    """Return a socket that listens at an address, and that address, with the port that was chosen for port 0.

    Raises
    ------
    AddressError
        If it is taken, or cannot be made.
    """
    try:
        if not address.path:
            family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
            listener = socket.create_server((address.host, address.port), family=family)
            return listener, Address(host=address.host, port=listener.getsockname()[1])
        if not hasattr(socket, "AF_UNIX"):  # Windows
            raise AddressError("this system has no Unix sockets: listen at tcp://127.0.0.1:0")
        path = Path(address.path)
        if path.exists() and _lives(path):
            raise AddressError(f"another program listens at {path}")
        return _bound(path), address
    except AddressError:
        raise
    except OSError as error:
        # Python itself refuses a path that is longer than the system's addresses, with no number.
        way_out = "" if error.errno else "\nSet XDG_RUNTIME_DIR to a directory with a short path, or give an address."
        raise AddressError(f"cannot listen at {address}: {error.strerror or error}{way_out}") from None


def _bound(path: Path) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    umask = os.umask(0o177)  # no other user can open the socket, not even before its mode could be set
    try:
        listener.bind(str(path))
        listener.listen(4)
    except BaseException:
        listener.close()
        raise
    finally:
        os.umask(umask)
    return listener


def reach(address: Address) -> socket.socket:
    """Return a socket that is connected to a program.

    Raises
    ------
    AddressError
        If nothing listens there.
    """
    try:
        if not address.path:
            return socket.create_connection((address.host, address.port), timeout=_PATIENCE)
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(_PATIENCE)
        try:
            connection.connect(address.path)
        except BaseException:
            connection.close()
            raise
        return connection
    except OSError as error:
        raise AddressError(
            f"no program listens at {address}: {error.strerror or error}\n"
            "A program listens after gi.listen(), or when it was started with GRADSCOPE_LISTEN=1."
        ) from None


def _lives(path: Path) -> bool:
    """Return whether a process listens at a Unix socket; the socket of a dead one is removed."""
    with contextlib.closing(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)) as probe:
        probe.settimeout(_PATIENCE)
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            with contextlib.suppress(OSError):
                if stat.S_ISSOCK(path.lstat().st_mode):
                    path.unlink()
            return False
        except OSError:
            return False
    return True


def _directory() -> Path:
    """Return the directory of this user's sockets; make it where it is not there.

    Raises
    ------
    AddressError
        If it is not this user's alone, or cannot be made.
    """
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    user = os.getuid() if hasattr(os, "getuid") else 0
    usable = runtime and os.path.isabs(runtime) and os.access(runtime, os.W_OK | os.X_OK)
    try:
        path = Path(runtime) / "gradscope" if usable else Path(tempfile.gettempdir()) / f"gradscope-{user}"
        path.mkdir(mode=0o700, exist_ok=True)
        status = path.lstat()
    except OSError as error:
        raise AddressError(
            f"there is no directory for sockets: {error.filename or 'temporary files'}: {error.strerror}\n"
            "Set XDG_RUNTIME_DIR to a directory of yours, or give an address."
        ) from None
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != user or status.st_mode & 0o077:
        raise AddressError(
            f"{path} is not a directory of yours alone, so no socket is put there\n"
            "Remove it, set XDG_RUNTIME_DIR, or give an address."
        )
    return path
