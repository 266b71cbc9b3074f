"""An array as bytes: a line that tells dtype and shape, then the elements, compressed where that is worth it."""

from __future__ import annotations

import json
import math
import re
import zlib
from typing import Any

import numpy

__all__ = ["MOST_BYTES", "pack_array", "unpack_array"]

MOST_BYTES = 1 << 30
"""Of an array that is kept: SQLite keeps no blob much larger, and no damaged or hostile value unpacks to more."""

_KINDS = "biufc"
_DTYPE = re.compile(rf"[<|][{_KINDS}]\d\d?")
_LEVEL = 1  # gradients hardly compress, but zeros do, and level 1 finds them
_SMALL = 4096  # bytes below which compressing is not worth the time


def pack_array(array: Any) -> bytes:
    """Return an array as bytes that any machine reads back bit for bit.

    Parameters
    ----------
    array : array_like
        Boolean, integer, floating or complex, of any shape.

    Raises
    ------
    TypeError
        For an array of objects, text or dates.
    ValueError
        For one of more than `MOST_BYTES`.

    Examples
    --------
    >>> unpack_array(pack_array([[1.0, 2.0]]))
    array([[1., 2.]])
    """
    values = numpy.asarray(array)
    if values.dtype.kind not in _KINDS:
        raise TypeError(f"only numbers can be kept in a recording, not an array of dtype {values.dtype}")
    if values.nbytes > MOST_BYTES:
        raise ValueError(f"an array of {values.nbytes} bytes is too large to be kept: at most {MOST_BYTES} are")
    dtype = values.dtype.newbyteorder("<")
    data = values.astype(dtype, copy=False).tobytes()
    way = "zlib" if len(data) > _SMALL else "raw"
    header = json.dumps([way, dtype.str, list(values.shape)]).encode() + b"\n"
    return header + (zlib.compress(data, _LEVEL) if way == "zlib" else data)


def unpack_array(data: bytes) -> numpy.ndarray:
    """Return the array that :func:`pack_array` has packed.

    Returns
    -------
    ndarray
        Of its own memory, in the machine's byte order.

    Raises
    ------
    ValueError
        If the bytes are damaged.
    """
    if not isinstance(data, bytes):  # bytes(7) would be seven zeros
        raise ValueError(f"a recorded value is damaged: it is {data!r:.40}")
    header, found, body = data.partition(b"\n")
    try:
        way, name, shape = json.loads(header)
        # NumPy reads more into a name than dtypes, and raises what it likes.
        if not found or not _DTYPE.fullmatch(name) or any(not isinstance(n, int) or n < 0 for n in shape):
            raise ValueError("its header is not one")
        dtype = numpy.dtype(name)
        wanted = dtype.itemsize * math.prod(shape)
        if wanted > MOST_BYTES:
            raise ValueError(f"it claims to take {wanted} bytes")
        # No more is decompressed than the header promises: damaged bytes may promise to grow without end.
        elements = body if way == "raw" or not wanted else zlib.decompressobj().decompress(body, wanted)
        values = numpy.frombuffer(elements, dtype).reshape(shape)
    except (ValueError, TypeError, zlib.error, RecursionError) as error:
        raise ValueError(f"a recorded value is damaged: {error}") from None
    return values.astype(dtype.newbyteorder("="))
