"""Checkpoints of strangers: nothing is run, nothing grows beyond what the file explains, and the error says why."""

import io
import pickle
import struct
import time
import tracemalloc
import zipfile
from collections import OrderedDict

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
    began = time.monotonic()
    try:
        with pytest.raises((RuntimeError, pickle.UnpicklingError), match=match) as raised:
            gs.load(io.BytesIO(data), **options)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(str(raised.value).splitlines()) == 2
    assert peak < 20 * len(data) + (32 << 20)
    assert time.monotonic() - began < 30
    return raised.value


def test_the_tensor_of_these_tests_is_sound():
    assert gs.load(io.BytesIO(archive(tensor_pickle(2), [bytes(8)]))).tolist() == [0.0, 0.0]


def test_a_small_file_that_unpacks_to_a_large_one_is_refused_until_it_is_allowed():
    count = 40 << 20
    data = archive(tensor_pickle(count), [bytes(4 * count)], compression=zipfile.ZIP_DEFLATED)
    assert len(data) < 1 << 20
    error = refused(data, "more than the")
    assert "max_bytes=" in str(error)
    with pytest.raises(RuntimeError, match="more than the 1,000 that it may"):
        gs.load(io.BytesIO(archive(tensor_pickle(500), [bytes(2000)])), max_bytes=1000)
    assert gs.load(io.BytesIO(data), max_bytes=5 * count).shape == (count,)


def test_a_compressed_file_is_read_all_the_same():
    value = gs.arange(1000.0)
    saved = io.BytesIO()
    gs.save({"w": value}, saved)
    packed = io.BytesIO()
    with zipfile.ZipFile(saved) as old, zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as new:
        for info in old.infolist():
            new.writestr(info.filename, old.read(info))
    packed.seek(0)
    assert gs.load(packed)["w"].tolist() == value.tolist()


@pytest.mark.parametrize("size", [4, 12, 0])
def test_a_record_of_another_size_than_its_memory_is_refused(size):
    refused(archive(tensor_pickle(2), [bytes(size)]), f"has {size} bytes, not the 8")


@pytest.mark.parametrize(
    ("size", "stride", "offset"),
    [((3,), (1,), 0), ((2,), (2,), 0), ((2,), (1,), 1), ((1,), (1,), -1), ((2,), (-1,), 1), ((1 << 60,), (1,), 0)],
)
def test_a_tensor_that_leaves_its_memory_is_refused(size, stride, offset):
    refused(archive(tensor_pickle(2, size, stride, offset), [bytes(8)]), "does not lie within its memory")


@pytest.mark.filterwarnings("ignore:Duplicate name:UserWarning")
@pytest.mark.parametrize(
    ("names", "match"),
    [
        ({1: "archive/data/0"}, "is there twice"),
        ({1: "../evil"}, "leads out of the archive"),
        ({1: "archive/../../evil"}, "leads out of the archive"),
        ({1: "/etc/evil"}, "leads out of the archive"),
    ],
)
def test_records_that_share_a_name_or_lead_elsewhere_are_refused(names, match):
    refused(archive(tensor_pickle(2), [bytes(8), bytes(8)], names=names), match)


def test_records_that_lie_over_each_other_are_refused():
    """Many entries of the directory name the same packed bytes: a few kilobytes unpack to gigabytes."""
    data = bytearray(archive(tensor_pickle(2), [bytes(8), bytes(8)]))
    first = data.index(b"PK\1\2")
    entries = [at for at in range(first, len(data)) if data[at : at + 4] == b"PK\1\2"]
    data[entries[2] + 42 : entries[2] + 46] = data[entries[1] + 42 : entries[1] + 46]
    refused(bytes(data), "lies over")


@pytest.mark.parametrize("compression", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_ways_of_packing_are_refused(compression):
    refused(archive(tensor_pickle(2), [bytes(8)], compression=compression), "packed in a way that no checkpoint is")


def test_very_many_records():
    names = {key: f"archive/{key}" for key in range(1, 20_001)}
    data = archive(tensor_pickle(2), [bytes(8)] + [b""] * 20_000, names=names)
    assert gs.load(io.BytesIO(data)).tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("pickled", "match"),
    [
        (global_("builtins.bytes") + number(1 << 40) + pickle.TUPLE1 + pickle.REDUCE, "bytes in the pickle are made"),
        (global_("builtins.bytearray") + number(1 << 40) + pickle.TUPLE1 + pickle.REDUCE, "bytes in the pickle are"),
        (pickle.BYTEARRAY8 + struct.pack("<Q", 1 << 40), "claims to hold 1099511627776 bytes"),
        (pickle.BINBYTES8 + struct.pack("<Q", 1 << 62), "damaged"),
        (global_("collections.OrderedDict") + pickle.NONE + pickle.NONE + pickle.SETITEM, "no state dict needs"),
    ],
)  # fmt: skip
def test_a_pickle_that_asks_for_much_is_refused(pickled, match):
    refused(archive(pickle.PROTO + b"\x05" + pickled + pickle.STOP), match)


NESTED = pickle.EMPTY_TUPLE + (pickle.DUP + pickle.TUPLE2) * 100


@pytest.mark.parametrize(
    "pickled",
    [
        pickle.EMPTY_DICT + NESTED + pickle.NONE + pickle.SETITEM,
        pickle.EMPTY_DICT + pickle.MARK + NESTED + pickle.NONE + pickle.SETITEMS,
        pickle.MARK + NESTED + pickle.NONE + pickle.DICT,
        pickle.EMPTY_SET + pickle.MARK + NESTED + pickle.ADDITEMS,
        pickle.MARK + NESTED + pickle.FROZENSET,
        global_("builtins.set") + pickle.MARK + pickle.MARK + NESTED + pickle.LIST + pickle.TUPLE + pickle.REDUCE,
    ],
)
def test_keys_that_take_for_ever_to_hash_are_refused(pickled):
    refused(archive(pickle.PROTO + b"\x04" + pickled + pickle.STOP), "keys in the pickle are without end")


def test_ordinary_keys_are_not():
    state = {("a", (1, 2)): 1, 3: OrderedDict(b={4, 5}), "set": {("x", 1), ("x", 2)}, "many": set(range(10_000))}
    saved = io.BytesIO()
    gs.save(state, saved)
    saved.seek(0)
    assert gs.load(saved) == state
