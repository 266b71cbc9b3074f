"""Pickles that ask for much memory, or for hashes that take for ever."""

import io
import pickle
import struct
from collections import OrderedDict

import pytest

import gradscope as gs
from tests.serialization.hostile_files import archive, global_, number, refused


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
