"""save and load: what goes in comes out, PyTorch's files open, others are told apart."""

from __future__ import annotations

import collections
import fractions
import io
import operator
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gradscope as gs
from gradscope.serialization import add_safe_globals, clear_safe_globals, get_safe_globals, safe_globals

DTYPES = [
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "bool",
]


def written(lib: Any, obj: Any) -> io.BytesIO:
    file = io.BytesIO()
    lib.save(obj, file)
    file.seek(0)
    return file


def through(obj: Any, **options: Any) -> Any:
    return gs.load(written(gs, obj), **options)


def network(lib: Any) -> Any:
    return lib.nn.Sequential(lib.nn.Linear(3, 4), lib.nn.BatchNorm1d(4), lib.nn.Linear(4, 2))


def one_step(lib: Any, model: Any) -> Any:
    optimizer = lib.optim.Adam(model.parameters(), lr=0.1)
    model(lib.linspace(0, 1, 12).reshape(4, 3)).sum().backward()
    optimizer.step()
    return optimizer


# --- structures and tensors -------------------------------------------------------------------------------------------

plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(max_size=3), inner, max_size=3)
        | st.frozensets(st.integers(), max_size=3).map(set)
    ),
    max_leaves=8,
)


@given(plain)
def test_plain_structures(value: Any) -> None:
    assert through(value) == value


@pytest.mark.parametrize(
    "value",
    [1j, bytearray(b"ab"), collections.Counter("aab"), gs.float16, gs.device("cpu"), gs.Size([2, 3])],
    ids=str,
)
def test_other_things_that_are_harmless(value: Any) -> None:
    loaded = through(value)
    assert type(loaded) is type(value)
    assert loaded == value


@pytest.mark.parametrize("name", DTYPES)
def test_dtypes(name: str) -> None:
    x = gs.tensor([0, 1, 2]).to(getattr(gs, name))
    loaded = through(x)
    assert loaded.dtype is x.dtype
    assert loaded.tolist() == x.tolist()


def test_views_keep_their_strides_and_share_memory() -> None:
    x = gs.arange(12.0).reshape(3, 4)
    saved = {"x": x, "t": x.t(), "part": x[1:, ::2], "rows": x[:1].expand(3, 4), "copy": x.clone()}
    loaded = through(saved)
    for name, tensor in saved.items():
        assert loaded[name].tolist() == tensor.tolist()
        assert loaded[name].stride() == tensor.stride()
        assert loaded[name].storage_offset() == tensor.storage_offset()
    loaded["x"].zero_()
    assert loaded["part"].sum() == 0
    assert loaded["part"]._version == loaded["x"]._version == 1
    assert loaded["copy"].sum() == 66


@pytest.mark.parametrize(
    "tensor",
    [gs.tensor(3.0), gs.zeros(0, 3), gs.from_numpy(numpy.arange(8.0)[::2]), gs.arange(6).reshape(2, 3).flip(0)],
)
def test_corners(tensor: Any) -> None:
    loaded = through(tensor)
    assert loaded.shape == tensor.shape
    assert gs.equal(loaded, tensor)


def test_requires_grad_attributes_and_classes() -> None:
    x = gs.ones(2, requires_grad=True)
    x.tag = [1]
    parameter = gs.nn.Parameter(gs.ones(2), requires_grad=False)
    parameter.tag = "p"
    loaded = through({"x": x, "p": parameter, "y": x * 2, "again": x})
    assert loaded["x"].requires_grad
    assert loaded["x"].tag == [1]
    assert loaded["x"] is loaded["again"]
    assert type(loaded["p"]) is gs.nn.Parameter
    assert not loaded["p"].requires_grad
    assert loaded["p"].tag == "p"
    assert loaded["y"].is_leaf
    assert loaded["y"].requires_grad
    buffer = through(gs.nn.Buffer(gs.ones(2), persistent=False), weights_only=False)
    assert (type(buffer), buffer.persistent) == (gs.nn.Buffer, False)


def test_a_parameter_and_its_data_share_memory() -> None:
    parameter = gs.nn.Parameter(gs.ones(2))
    loaded = through([parameter, parameter.detach()])
    loaded[1].fill_(3)
    assert loaded[0].tolist() == [3.0, 3.0]


def test_training_goes_on_to_the_same_numbers() -> None:
    gs.manual_seed(0)
    model = network(gs)
    optimizer = one_step(gs, model)
    file = written(gs, {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "rng": gs.get_rng_state()})
    loaded = gs.load(file)
    other = network(gs)
    other.load_state_dict(loaded["model"])
    again = gs.optim.Adam(other.parameters())
    again.load_state_dict(loaded["optimizer"])
    for net, step in ((model, optimizer), (other, again)):
        gs.set_rng_state(loaded["rng"])
        step.zero_grad()
        net(gs.randn(4, 3)).pow(2).sum().backward()
        step.step()
    for mine, theirs in zip(model.parameters(), other.parameters(), strict=True):
        assert gs.equal(mine, theirs)


def test_whole_modules_and_optimizers() -> None:
    model = network(gs)
    optimizer = one_step(gs, model)
    loaded, step = through((model, optimizer), weights_only=False)
    assert step.param_groups[0]["params"][0] is loaded[0].weight
    assert gs.equal(step.state[loaded[0].weight]["exp_avg"], optimizer.state[model[0].weight]["exp_avg"])
    model.eval(), loaded.eval()
    assert gs.equal(model(gs.ones(2, 3)), loaded(gs.ones(2, 3)))


# --- what is allowed --------------------------------------------------------------------------------------------------


class Harmful:
    def __reduce__(self) -> Any:
        return print, ("run by a pickle",)


@pytest.mark.parametrize("value", [fractions.Fraction(1, 2), Harmful(), [gs.nn.Linear(1, 1)], print])
def test_other_globals_are_refused(value: Any, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(
        pickle.UnpicklingError, match=r"Weights only load failed\..* not allowed by default\.\n.*add_safe"
    ):
        through(value)
    assert capsys.readouterr().out == ""


def test_the_error_names_all_of_them() -> None:
    with pytest.raises(pickle.UnpicklingError, match=r"container\.Sequential \(and .*BatchNorm1d, .*linear\.Linear\)"):
        through(network(gs))


def test_globals_can_be_allowed() -> None:
    value = fractions.Fraction(1, 2)
    with safe_globals([fractions.Fraction]):
        assert get_safe_globals() == [fractions.Fraction]
        assert through(value) == value
    assert get_safe_globals() == []
    with safe_globals([gs.nn.Linear]):
        assert through(gs.nn.Linear(2, 3)).out_features == 3
    add_safe_globals([(operator.truediv, "fractions.Fraction")])
    try:
        assert through((1, value)) == (1, 0.5)
    finally:
        clear_safe_globals()
    with pytest.raises(TypeError, match="a class or function is wanted, got 3"):
        add_safe_globals([3])


def archive(pickled: bytes, **records: bytes) -> io.BytesIO:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as made:
        made.writestr("archive/data.pkl", pickled)
        for name, content in records.items():
            made.writestr(f"archive/{name.replace('_', '/')}", content)
    file.seek(0)
    return file


MEMORY = b"(Vstorage\nctorch\nFloatStorage\nV0\nVcpu\nI4\ntQ"


def rebuilt(offset: int, size: int, stride: int) -> bytes:
    return (
        b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n("
        + MEMORY
        + f"I{offset}\n(I{size}\nt(I{stride}\ntI00\nccollections\nOrderedDict\n)RtR.".encode()
    )


@pytest.mark.parametrize("geometry", [(0, 5, 1), (1, 4, 1), (-1, 2, 1), (0, 2, 4), (3, 2, -1), (2**62, 2, 2**62)])
def test_a_tensor_outside_its_memory_is_refused(geometry: tuple[int, int, int]) -> None:
    data = numpy.arange(4, dtype=numpy.float32).tobytes()
    assert gs.load(archive(rebuilt(0, 2, 3), data_0=data)).tolist() == [0.0, 3.0]
    with pytest.raises(pickle.UnpicklingError, match="does not lie within its memory of 4 elements"):
        gs.load(archive(rebuilt(*geometry), data_0=data))


@pytest.mark.parametrize(
    ("pickled", "said"),
    [
        (b"ctorch\nfloat32\n)R.", "the pickle calls gradscope.float32"),
        (b"\x80\x02ctorch\nfloat32\n}(V_x\nI1\nub.", "the pickle sets attributes of <class"),
        (b"\x80\x02ctorch\nTensor\n)\x81.", "the pickle makes <class"),
        (b"(ccollections\nOrderedDict\no.", "an instruction that no state dict needs"),
        (b"Vxy", "is damaged"),
        (b"\x80\x02}q", "is damaged"),
        (b"Vstorage\nQ.", "refers to memory by 'storage'"),
    ],
)
def test_a_pickle_that_is_up_to_something(pickled: bytes, said: str) -> None:
    with pytest.raises(pickle.UnpicklingError, match=said):
        gs.load(archive(pickled))


# --- files ------------------------------------------------------------------------------------------------------------


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


def test_what_cannot_be_pickled_leaves_the_file_that_is_there(tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    gs.save(1, path)
    with pytest.raises((AttributeError, pickle.PicklingError)):
        gs.save(lambda: 1, path)
    assert gs.load(path) == 1


def test_one_memory_has_one_dtype() -> None:
    x = gs.ones(4)
    with pytest.raises(
        RuntimeError, match="Cannot save multiple tensors or storages that view the same data as differ"
    ):
        gs.save([x, x.view(gs.int32)], io.BytesIO())


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


# --- devices ----------------------------------------------------------------------------------------------------------


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


# --- PyTorch's files --------------------------------------------------------------------------------------------------


@pytest.mark.torch
@pytest.mark.parametrize("name", DTYPES)
def test_tensors_go_both_ways(torch: Any, name: str) -> None:
    for here, there in ((gs, torch), (torch, gs)):
        x = here.arange(6).reshape(2, 3).to(getattr(here, name)).t()
        y = there.load(written(here, [x, x[1:]]))
        assert y[0].stride() == (1, 3)
        assert y[0].dtype is getattr(there, name)
        assert y[0].tolist() == x.tolist()
        assert y[0].data_ptr() + 1 * x.element_size() == y[1].data_ptr()


@pytest.mark.torch
def test_state_dicts_go_both_ways(torch: Any) -> None:
    models = {lib: network(lib) for lib in (gs, torch)}
    optimizers = {lib: one_step(lib, model) for lib, model in models.items()}
    for here, there in ((gs, torch), (torch, gs)):
        state = there.load(written(here, {"m": models[here].state_dict(), "o": optimizers[here].state_dict()}))
        assert state["m"]._metadata["1"] == {"version": 2}
        models[there].load_state_dict(state["m"])
        optimizers[there].load_state_dict(state["o"])
        for mine, theirs in zip(models[here].parameters(), models[there].parameters(), strict=True):
            assert mine.tolist() == theirs.tolist()
            a, b = optimizers[here].state[mine], optimizers[there].state[theirs]
            assert a["exp_avg"].tolist() == b["exp_avg"].tolist()


@pytest.mark.torch
@pytest.mark.parametrize(
    "make",
    [
        lambda lib: {1, 2},
        lambda lib: b"ab",
        lambda lib: 1j,
        lambda lib: lib.Size([2]),
        lambda lib: lib.float64,
        lambda lib: lib.device("cpu"),
        lambda lib: 10**30,
        lambda lib: [("é", None), {"a": (1.5,)}],
        lambda lib: lib.nn.Parameter(lib.ones(2)),
        lambda lib: lib.zeros(0, 2),
    ],
)
def test_other_things_go_both_ways(torch: Any, make: Any) -> None:
    for here, there in ((gs, torch), (torch, gs)):
        assert repr(there.load(written(here, make(here)))) == repr(make(there))


@pytest.mark.torch
def test_attributes_go_both_ways(torch: Any) -> None:
    for here, there in ((gs, torch), (torch, gs)):
        for tensor in (here.ones(2, requires_grad=True), here.nn.Parameter(here.ones(2))):
            tensor.tag = [3]
            assert there.load(written(here, tensor)).tag == [3]


@pytest.mark.torch
def test_what_is_pytorchs_own_is_told(torch: Any) -> None:
    for weights_only, said in ((True, "not allowed"), (False, "an object of PyTorch itself")):
        with pytest.raises(
            pickle.UnpicklingError, match=rf"torch\.nn\.modules.*{said}(.*\n)*.*save the state_dict\(\)"
        ):
            gs.load(written(torch, torch.nn.Linear(1, 1)), weights_only=weights_only)
    file = io.BytesIO()
    torch.save(torch.ones(1), file, _use_new_zipfile_serialization=False)
    file.seek(0)
    with pytest.raises(RuntimeError, match=r"torch\.save\(torch\.load\(path\), path\)"):
        gs.load(file)
