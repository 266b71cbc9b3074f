"""load(): paths, damaged and foreign files, devices, memory maps."""

from __future__ import annotations

import io
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import gradscope as gs
from tests.serialization.checkpoints import archive, rebuilt, through, written


def test_paths(tmp_path: Path) -> None:
    for path in (tmp_path / "model.pt", str(tmp_path / "other.pt")):
        gs.save(gs.arange(3), path)
        assert gs.load(path).tolist() == [0, 1, 2]
    with pytest.raises(RuntimeError, match=r"^Parent directory .*nowhere does not exist\."):
        gs.save(1, tmp_path / "nowhere" / "x.pt")
    with pytest.raises(FileNotFoundError):
        gs.load(tmp_path / "nothing.pt")
    with pytest.raises(AttributeError, match="expected 'f' to be string, path, or a file-like object"):
        gs.save(1, 3)
    with pytest.raises(AttributeError, match="'int' object has no attribute 'seek'"):
        gs.load(3)


def test_mapped_into_memory(tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    gs.save({"a": gs.arange(1000.0), "none": gs.zeros(0)}, path)
    loaded = gs.load(path, mmap=True)
    loaded["a"] += 1
    assert loaded["a"][-1] == 1000
    assert loaded["a"].data_ptr() % 64 == 0
    assert loaded["none"].shape == (0,)
    assert gs.load(path)["a"][-1] == 999
    with pytest.raises(ValueError, match="f must be a file path in order to use the mmap argument"):
        gs.load(io.BytesIO(path.read_bytes()), mmap=True)


CONTENT = written(gs, {"a": gs.arange(50.0)}).getvalue()


@given(st.integers(0, len(CONTENT) - 1))
def test_a_file_that_was_cut_short(length: int) -> None:
    with pytest.raises((EOFError, RuntimeError, pickle.UnpicklingError)) as caught:
        gs.load(io.BytesIO(CONTENT[:length]))
    assert "\n" in str(caught.value)


@given(st.integers(0, len(CONTENT) - 1), st.integers(1, 255))
@example(CONTENT.index(b"PK\1\2") + 6, 64)  # the version of zip that is needed: 8.4
def test_a_file_with_a_wrong_byte(place: int, change: int) -> None:
    damaged = bytearray(CONTENT)
    damaged[place] ^= change
    try:
        loaded = gs.load(io.BytesIO(bytes(damaged)))
    except (RuntimeError, pickle.UnpicklingError) as error:
        told = str(error)
    else:
        told = "\n" if loaded["a"].tolist() == list(range(50)) else "other numbers"
    assert "\n" in told


@pytest.mark.parametrize(
    ("content", "kind", "said"),
    [
        (b"", EOFError, "is empty"),
        (b"hello", pickle.UnpicklingError, "is no file that"),
        (pickle.dumps({"a": 1}), pickle.UnpicklingError, "is no file that"),
        (b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.", RuntimeError, "in its format from before 1.6"),
    ],
)
def test_foreign_files(content: bytes, kind: type[Exception], said: str) -> None:
    with pytest.raises(kind, match=said):
        gs.load(io.BytesIO(content))


def test_other_zip_files() -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as made:
        made.writestr("letter.txt", "hello")
    file.seek(0)
    with pytest.raises(RuntimeError, match="is a zip file, but no checkpoint"):
        gs.load(file)
    with pytest.raises(RuntimeError, match="is a TorchScript archive"):
        gs.load(archive(b"N.", **{"constants.pkl": b""}))


def test_bytes_in_the_other_order() -> None:
    data = numpy.arange(4, dtype=">f4").tobytes()
    assert gs.load(archive(rebuilt(1, 3, 1), data_0=data, byteorder=b"big")).tolist() == [1.0, 2.0, 3.0]


def on_cuda() -> io.BytesIO:
    pickled = rebuilt(0, 2, 1).replace(b"Vcpu", b"Vcuda:0")
    return archive(pickled, data_0=numpy.arange(4, dtype=numpy.float32).tobytes())


def test_map_location() -> None:
    seen: list[Any] = []

    def where(storage: Any, location: str) -> Any:
        seen.append((storage.nbytes(), location))
        return storage

    for location in ("cpu", gs.device("cpu"), {"cuda:0": "cpu"}, where):
        assert gs.load(on_cuda(), map_location=location).device == gs.device("cpu")
    assert seen == [(16, "cuda:0")]


@pytest.mark.skipif(gs.cuda.is_available(), reason="CUDA is there")
def test_a_device_that_is_not_there() -> None:
    for location in (None, lambda storage, location: None):
        with pytest.raises(
            RuntimeError, match=r"^Attempting to deserialize object on a CUDA device but .*map_location"
        ):
            gs.load(on_cuda(), map_location=location)
    with pytest.raises(RuntimeError, match=r"^don't know how to restore .*tagged with tpu\)\nPass map_location='cpu'"):
        gs.load(on_cuda(), map_location="tpu")


def test_tensors_come_back_to_their_device(other_device: str) -> None:
    model = gs.nn.Linear(3, 2).to(other_device)
    loaded = through(model.state_dict())
    assert {tensor.device.type for tensor in loaded.values()} == {other_device}
    here = through(model.state_dict(), map_location="cpu")
    assert gs.equal(here["weight"], model.weight.detach().cpu())
    moved = through(here, map_location={"cpu": other_device})
    assert moved["bias"].device.type == other_device
    assert gs.equal(through(model.weight.t()).cpu(), model.weight.detach().cpu().t())
