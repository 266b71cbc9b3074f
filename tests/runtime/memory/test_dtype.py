"""Element types and PyTorch's promotion, compared with PyTorch over all pairs and ranks."""

from __future__ import annotations

import copy
import itertools
import pickle
from typing import Any

import numpy
import pytest

import gradscope as gs
from gradscope.runtime.memory import dtype as dtypes

# PyTorch warns of complex32.
pytestmark = pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")

PAIRS = list(itertools.combinations_with_replacement(dtypes.ALL_DTYPES, 2))
NUMBERS = (True, 3, 1.5, 1.5 + 2j)


def name_of(dtype: Any) -> str:
    """Return the name of PyTorch's dtype; NumPy has no complex32, complex64 takes its place."""
    return str(dtype).removeprefix("torch.").replace("complex32", "complex64")


def make(module: Any, kind: str, shape: tuple[int, ...]) -> Any:
    return module.ones(shape, dtype=getattr(module, kind))


def test_promote_types_is_pytorchs_table(torch: Any) -> None:
    for a, b in itertools.product(dtypes.ALL_DTYPES, repeat=2):
        expected = torch.promote_types(getattr(torch, a.name), getattr(torch, b.name))
        assert gs.promote_types(a, b).name == name_of(expected), (a, b)


@pytest.mark.parametrize("shapes", [((2,), (2,)), ((2,), ()), ((), (2,)), ((), ())], ids=str)
def test_tensors_promote_as_in_pytorch(torch: Any, shapes: tuple[Any, Any]) -> None:
    for a, b in itertools.product(dtypes.ALL_DTYPES, repeat=2):
        ours = make(gs, a.name, shapes[0]) * make(gs, b.name, shapes[1])
        theirs = make(torch, a.name, shapes[0]) * make(torch, b.name, shapes[1])
        assert ours.dtype.name == name_of(theirs.dtype), (a, b)
        assert ours.shape == tuple(theirs.shape)


@pytest.mark.parametrize("number", NUMBERS, ids=lambda n: type(n).__name__)
@pytest.mark.parametrize("shape", [(2,), ()], ids=["1-d", "0-d"])
def test_numbers_promote_as_in_pytorch(torch: Any, number: Any, shape: tuple[int, ...]) -> None:
    for a in dtypes.ALL_DTYPES:
        if a is gs.float16 and isinstance(number, complex):
            continue  # PyTorch does not divide its complex32.
        ours, theirs = make(gs, a.name, shape), make(torch, a.name, shape)
        for name in ("__mul__", "__rmul__", "__add__", "__radd__", "__truediv__", "__rtruediv__", "__pow__"):
            found = getattr(ours, name)(number)
            expected = getattr(theirs, name)(number)
            assert found.dtype.name == name_of(expected.dtype), (a, name)


def test_three_ranks_at_once(torch: Any) -> None:
    for a, b in PAIRS:
        ours = make(gs, a.name, (2,)) + make(gs, b.name, ()) * 2
        theirs = make(torch, a.name, (2,)) + make(torch, b.name, ()) * 2
        assert ours.dtype.name == name_of(theirs.dtype), (a, b)


@pytest.mark.parametrize("name", ["exp", "sin", "sqrt", "reciprocal", "sigmoid", "tanh", "log1p", "rsqrt"])
def test_float_functions_of_integers_give_the_default_dtype(torch: Any, name: str) -> None:
    for kind in (gs.bool, gs.uint8, gs.int32, gs.int64, gs.float16, gs.float64):
        found = getattr(make(gs, kind.name, (2,)), name)()
        expected = getattr(make(torch, kind.name, (2,)), name)()
        assert found.dtype.name == name_of(expected.dtype), kind


def test_integer_division_is_true_division() -> None:
    assert (gs.tensor([1, 2]) / 2).dtype is gs.float32
    assert (gs.tensor([7, -7]) // 2).tolist() == [3, -4]
    assert (gs.tensor([7, -7]) // 2).dtype is gs.int64


def test_gradients_come_back_in_the_dtype_of_their_leaf() -> None:
    single = gs.ones(2, dtype=gs.float32, requires_grad=True)
    double = gs.ones(2, dtype=gs.float64, requires_grad=True)
    (single * double).sum().backward()
    assert single.grad.dtype is gs.float32
    assert double.grad.dtype is gs.float64


@pytest.mark.parametrize("kind", dtypes.ALL_DTYPES, ids=lambda d: d.name)
def test_attributes_are_pytorchs(torch: Any, kind: dtypes.dtype) -> None:
    theirs = getattr(torch, kind.name)
    assert repr(kind) == str(theirs).replace("torch", "gradscope")
    assert kind.is_floating_point == theirs.is_floating_point
    assert kind.is_complex == theirs.is_complex
    assert kind.is_signed == theirs.is_signed
    assert kind.itemsize == theirs.itemsize


@pytest.mark.parametrize("kind", dtypes.ALL_DTYPES, ids=lambda d: d.name)
def test_a_dtype_survives_copies_and_pickles_as_itself(kind: dtypes.dtype) -> None:
    assert copy.copy(kind) is kind
    assert copy.deepcopy(kind) is kind
    assert pickle.loads(pickle.dumps(kind)) is kind
    assert dtypes.to_dtype(kind.numpy) is kind
    assert dtypes.to_dtype(kind.name) is kind


def test_names_of_python_types_and_short_names() -> None:
    assert dtypes.to_dtype(float) is gs.float64
    assert dtypes.to_dtype(int) is gs.int64
    assert dtypes.to_dtype(bool) is gs.bool
    assert dtypes.to_dtype(complex) is gs.complex128
    assert (gs.half, gs.float, gs.double) == (gs.float16, gs.float32, gs.float64)
    assert (gs.short, gs.int, gs.long) == (gs.int16, gs.int32, gs.int64)
    assert (gs.cfloat, gs.cdouble) == (gs.complex64, gs.complex128)


def test_unsupported_dtypes_are_refused_with_the_list_of_those_there_are() -> None:
    with pytest.raises(TypeError, match="unsupported dtype 'U3'\nUse one of: float16, bfloat16, float32"):
        dtypes.to_dtype("U3")
    with pytest.raises(TypeError, match="unsupported dtype"):
        gs.zeros(2, dtype=numpy.dtype("uint16"))


def test_default_dtype_decides_what_python_floats_become() -> None:
    gs.set_default_dtype(gs.float64)
    try:
        assert gs.get_default_dtype() is gs.float64
        assert gs.tensor([1.5]).dtype is gs.float64
        assert gs.tensor([1.5j]).dtype is gs.complex128
        assert gs.tensor([1]).dtype is gs.int64
        assert gs.zeros(1).dtype is gs.float64
        assert (gs.tensor([1]) / 2).dtype is gs.float64
        assert (gs.tensor([1]) + 0.5).dtype is gs.float64
    finally:
        gs.set_default_dtype(gs.float32)
    assert gs.tensor([1.5]).dtype is gs.float32
    with pytest.raises(TypeError, match="only floating-point types are supported as the default type"):
        gs.set_default_dtype(gs.int64)


@pytest.mark.parametrize("kind", ["float16", "float32", "float64"])
def test_finfo_is_pytorchs(torch: Any, kind: str) -> None:
    ours, theirs = gs.finfo(getattr(gs, kind)), torch.finfo(getattr(torch, kind))
    for name in ("bits", "eps", "max", "min", "tiny", "smallest_normal", "resolution", "dtype"):
        assert getattr(ours, name) == getattr(theirs, name), name


@pytest.mark.parametrize("kind", ["uint8", "int8", "int16", "int32", "int64"])
def test_iinfo_is_pytorchs(torch: Any, kind: str) -> None:
    ours, theirs = gs.iinfo(getattr(gs, kind)), torch.iinfo(getattr(torch, kind))
    assert (ours.bits, ours.max, ours.min, ours.dtype) == (theirs.bits, theirs.max, theirs.min, theirs.dtype)
