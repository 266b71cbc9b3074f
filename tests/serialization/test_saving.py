"""save(): what goes in comes out, and PyTorch reads it."""

from __future__ import annotations

import collections
import io
import pickle
from pathlib import Path
from typing import Any

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gradscope as gs
from tests.serialization.checkpoints import DTYPES, network, one_step, through, written

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
