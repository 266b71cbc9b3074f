"""Archives that somebody made to do harm: bombs, records that overlap, share a name or lead elsewhere."""

import io
import zipfile

import pytest

import gradscope as gs
from tests.serialization.hostile_files import archive, refused, tensor_pickle


def test_the_tensor_of_these_tests_is_sound():
    assert gs.load(io.BytesIO(archive(tensor_pickle(2), [bytes(8)]))).tolist() == [0.0, 0.0]


@pytest.mark.slow
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
