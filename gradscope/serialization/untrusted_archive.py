"""The zip archive around a checkpoint, which anybody may have made: what it claims is checked before it is unpacked."""

from __future__ import annotations

import io
import pickle
import zipfile
from typing import IO

__all__ = ["damaged", "open_archive"]

_LEGACY = b"\x80\x02\x8a\x0al\xfc\x9cF\xf9"  # the magic number with which PyTorch's files began before 1.6
_RATIO = 16
_ROOM = 64 << 20  # bytes
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_LOCAL_HEADER = 30  # the bytes before the name


def open_archive(file: IO[bytes], name: str, max_bytes: int | None) -> zipfile.ZipFile:
    """Return the archive in a file, in which records do not lie over each other nor unpack to more than they may.

    Parameters
    ----------
    name : str
        For messages.
    max_bytes : int or None
        How many bytes all records may take; None for 16 times what the file takes, and 64 MiB.

    Raises
    ------
    EOFError
        If the file is empty.
    pickle.UnpicklingError
        If it is no archive.
    RuntimeError
        If it is damaged, or made to harm.
    """
    start = file.tell()
    head = file.read(16)
    file.seek(start)
    if not head:
        raise EOFError(f"Ran out of input: {name} is empty\nWas it closed after it was written?")
    if head.startswith(_LEGACY):
        raise RuntimeError(
            f"{name} was written by PyTorch in its format from before 1.6, which is not read here\n"
            "In PyTorch: torch.save(torch.load(path), path) makes it a zip file."
        )
    if not head.startswith(b"PK"):
        raise pickle.UnpicklingError(
            f"{name} is no file that gradscope.save() or torch.save() has written\nIt begins with {head!r}."
        )
    try:
        archive = zipfile.ZipFile(file)
    except Exception:  # a damaged directory raises anything, and so does a later version of the format
        raise damaged(name, "failed finding central directory") from None
    _check_records(archive, name)
    _check_size(archive, name, file.seek(0, io.SEEK_END), max_bytes)
    return archive


def damaged(name: str, what: str) -> RuntimeError:
    """Return the error for an archive that is damaged."""
    return RuntimeError(
        f"failed reading zip archive: {what} in {name}\n"
        "The file is damaged, probably cut short: copy or download it again."
    )


def _check_records(archive: zipfile.ZipFile, name: str) -> None:
    """Raise if records share a name or bytes, lead out of the archive, or are packed in other ways than PyTorch's."""
    seen: set[str] = set()
    end = 0
    for info in sorted(archive.infolist(), key=lambda info: info.header_offset):
        parts = info.filename.split("/")
        if info.filename in seen:
            raise damaged(name, f"record {info.filename!r} is there twice")
        if ".." in parts or not parts[0]:
            raise damaged(name, f"record {info.filename!r} leads out of the archive")
        if info.compress_type not in _METHODS:
            raise damaged(name, f"record {info.filename!r} is packed in a way that no checkpoint is")
        if info.compress_type == zipfile.ZIP_STORED and info.file_size != info.compress_size:
            raise damaged(name, f"record {info.filename!r} has two sizes")
        if info.header_offset < end:
            raise damaged(name, f"record {info.filename!r} lies over another")
        seen.add(info.filename)
        end = info.header_offset + _LOCAL_HEADER + len(info.orig_filename) + info.compress_size
    if end > archive.start_dir:
        raise damaged(name, "a record lies over the directory")


def _check_size(archive: zipfile.ZipFile, name: str, size: int, max_bytes: int | None) -> None:
    """Raise if all records together unpack to more than they may."""
    total = sum(info.file_size for info in archive.infolist())
    most = _RATIO * size + _ROOM if max_bytes is None else max_bytes
    if total > most:
        raise RuntimeError(
            f"{name} takes {size:,} bytes and would unpack to {total:,}, more than the {most:,} that it may\n"
            f"No checkpoint is packed so tightly by save(). If you trust its source, pass max_bytes={total}."
        )
