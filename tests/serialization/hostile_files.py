"""Checkpoints that somebody wrote to do harm."""

import io
import pickle
import struct
import time
import tracemalloc
import zipfile

import pytest

import gradscope as gs

STORAGE = "ctorch\nFloatStorage\n"


def global_(path):
    module, _, name = path.rpartition(".")
    return f"c{module}\n{name}\n".encode()


def number(n):
    return pickle.LONG4 + struct.pack("<i", 9) + n.to_bytes(9, "little", signed=True)


def text(value):
    return pickle.BINUNICODE + struct.pack("<I", len(value)) + value.encode()


def archive(pickled, records=(), *, compression=zipfile.ZIP_STORED, names=None):
    """Return a checkpoint with this pickle, and these records."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as made:
        made.writestr("archive/data.pkl", pickled)
        for key, content in enumerate(records):
            made.writestr((names or {}).get(key, f"archive/data/{key}"), content)
    return stream.getvalue()


def tensor_pickle(count, size=None, stride=None, offset=0):
    """Return the pickle of a float32 tensor in record 0, which is told to have `count` elements."""
    size, stride = size or (count,), stride or (1,)

    def tuple_(*parts):
        return pickle.MARK + b"".join(parts) + pickle.TUPLE

    reference = tuple_(text("storage"), STORAGE.encode(), text("0"), text("cpu"), number(count))
    args = tuple_(
        reference + pickle.BINPERSID,
        number(offset),
        tuple_(*map(number, size)),
        tuple_(*map(number, stride)),
        pickle.NEWFALSE,
        global_("collections.OrderedDict") + pickle.EMPTY_TUPLE + pickle.REDUCE,
    )
    return pickle.PROTO + b"\x02" + global_("torch._utils._rebuild_tensor_v2") + args + pickle.REDUCE + pickle.STOP


def refused(data, match, **options):
    """Check that a file is refused soon, with an error of two lines, and without much memory; return the error."""
    tracemalloc.start()
    began = time.process_time()
    try:
        with pytest.raises((RuntimeError, pickle.UnpicklingError), match=match) as raised:
            gs.load(io.BytesIO(data), **options)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(str(raised.value).splitlines()) == 2
    assert peak < 20 * len(data) + (32 << 20)
    assert time.process_time() - began < 30
    return raised.value
