"""Factories: sizes, out=, sequences, and what tensor() makes of Python data, as PyTorch has them."""

from __future__ import annotations

import math
from typing import Any

import numpy
import pytest

import gradscope as gs
from gradscope.runtime import events
from tests.runtime.ops.operator_cases import assert_same_refusal


@pytest.mark.parametrize("name", ["zeros", "ones", "empty"])
def test_sizes_as_numbers_as_a_sequence_and_by_name(name: str) -> None:
    make = getattr(gs, name)
    assert make(2, 3).shape == make((2, 3)).shape == make([2, 3]).shape == make(size=(2, 3)).shape == (2, 3)
    assert make(()).shape == ()
    assert make(gs.tensor(2)).shape == (2,)


def test_factories_write_into_out_in_its_dtype() -> None:
    out = gs.ones(2, dtype=gs.int64)
    assert gs.zeros(2, out=out) is out
    assert (out.tolist(), out._version) == ([0, 0], 1)
    for make, expected in (
        (lambda **o: gs.ones(2, **o), [1, 1]),
        (lambda **o: gs.full((2,), 7.5, **o), [7, 7]),
        (lambda **o: gs.arange(2, **o), [0, 1]),
        (lambda **o: gs.linspace(0, 3, 2, **o), [0, 3]),
        (lambda **o: gs.logspace(0, 1, 2, **o), [1, 10]),
    ):
        assert make(out=out).tolist() == expected
    assert gs.eye(2, out=gs.empty(0)).tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_random_factories_write_into_out() -> None:
    for make in (
        lambda **o: gs.rand(2, 3, **o),
        lambda **o: gs.randn(size=(2, 3), **o),
        lambda **o: gs.randint(5, (2, 3), **o),
        lambda **o: gs.normal(0.0, 1.0, (2, 3), **o),
        lambda **o: gs.bernoulli(gs.full((2, 3), 0.5), **o),
    ):
        out = gs.empty(0)
        gs.manual_seed(3)
        assert make(out=out) is out
        gs.manual_seed(3)
        assert out.tolist() == make().tolist()
    order = gs.empty(4, dtype=gs.int64)
    assert sorted(gs.randperm(4, out=order).tolist()) == [0, 1, 2, 3]
    assert gs.multinomial(gs.tensor([0.0, 1.0]), 1, out=order[:1]).tolist() == [1]


def test_arange_takes_end_alone_and_tensors() -> None:
    assert gs.arange(end=3).tolist() == [0, 1, 2]
    assert gs.arange(gs.tensor(3)).tolist() == [0, 1, 2]
    assert gs.linspace(gs.tensor(0.0), 1, steps=3).tolist() == [0.0, 0.5, 1.0]


DATA: list[Any] = [
    1, 1.5, True, 1j, [1, 2.5], [True, 1], [True, 1.5], [1j, 2], [], [[]], [[1, 2], [3, 4]], range(3), (1, (2,))[:1],
    numpy.float64(1), [numpy.float64(1)], [numpy.float32(1), 2.0], [numpy.int32(1)], numpy.ones(2, dtype="float16"),
]  # fmt: skip


@pytest.mark.torch
@pytest.mark.parametrize("data", DATA, ids=repr)
def test_data_has_pytorchs_dtype_and_shape(torch: Any, data: Any) -> None:
    found, expected = gs.tensor(data), torch.tensor(data)
    assert str(expected.dtype) == f"torch.{found.dtype.name}"
    assert (tuple(found.shape), found.tolist()) == (tuple(expected.shape), expected.tolist())


@pytest.mark.torch
@pytest.mark.parametrize("kinds", [("float32",), ("float64",), ("int64", "int64"), ("float32", "int64"), ("bool",)])
def test_lists_of_tensors_have_their_dtype(torch: Any, kinds: Any) -> None:
    found = gs.tensor([gs.ones((), dtype=getattr(gs, kind)) for kind in kinds])
    expected = torch.tensor([torch.ones((), dtype=getattr(torch, kind)) for kind in kinds])
    assert str(expected.dtype) == f"torch.{found.dtype.name}"
    assert found.tolist() == expected.tolist()


@pytest.mark.torch
@pytest.mark.parametrize(
    "use",
    [
        lambda m: m.zeros("a"),
        lambda m: m.zeros(-1),
        lambda m: m.zeros(2.0),
        lambda m: m.zeros(None),
        lambda m: m.zeros([2.0]),
        lambda m: m.zeros(2, "a"),
        lambda m: m.zeros(True),
        lambda m: m.zeros(2, out=m.ones(2), dtype=m.int64),
        lambda m: m.full((2,), "a"),
        lambda m: m.full(2, 1.0),
        lambda m: m.full((-2,), 1),
        lambda m: m.eye(-1),
        lambda m: m.eye(2.5),
        lambda m: m.linspace(0, 1, -1),
        lambda m: m.linspace(0, 1, 2.5),
        lambda m: m.logspace(0, 1, -1),
        lambda m: m.arange("a"),
        lambda m: m.arange(0, 5, 0),
        lambda m: m.arange(0, 5, -1),
        lambda m: m.arange(0, math.nan),
        lambda m: m.arange(0, 2, dtype=m.bool),
        lambda m: m.tensor([None]),
        lambda m: m.tensor("a"),
        lambda m: m.tensor(["a"]),
        lambda m: m.tensor([[1, 2], [3]]),
        lambda m: m.tensor([1, [3]]),
        lambda m: m.tensor([[1], 2]),
        lambda m: m.tensor([m.ones(2)]),
        lambda m: m.tensor({}),
        lambda m: m.tensor(i for i in range(3)),
        lambda m: m.tensor(2**70),
        lambda m: m.tensor([300], dtype=m.uint8),
        lambda m: m.tensor([1j], dtype=m.float32),
        lambda m: m.tensor([1], requires_grad=True),
        lambda m: m.zeros_like([1]),
        lambda m: m.full_like(m.ones(2), "a"),
        lambda m: m.from_numpy([1]),
    ],
)
def test_wrong_calls_raise_pytorchs_exceptions(torch: Any, use: Any) -> None:
    assert_same_refusal(torch, use)


def test_asarray_shares_where_it_can() -> None:
    array = numpy.ones(2)
    shared = gs.asarray(array)
    array[0] = 5.0
    assert shared.tolist() == [5.0, 1.0]
    copied = gs.asarray(array, copy=True)
    array[0] = 7.0
    assert copied.tolist() == [5.0, 1.0]
    with pytest.raises(ValueError, match="can't alias"):
        gs.asarray([1.0], copy=False)
    x = gs.ones(2, requires_grad=True)
    assert gs.asarray(x) is x
    assert gs.asarray(x, copy=True).grad_fn.name() == "CloneBackward0"
    assert not gs.asarray(x, requires_grad=False).requires_grad
    assert gs.asarray([1.0], requires_grad=True).requires_grad


@pytest.mark.parametrize("data", [2**63, [2**63, 1], [[1], [-(2**64)]]], ids=repr)
def test_integers_beyond_64_bits_are_refused(data: Any) -> None:
    with pytest.raises(ValueError, match="Overflow when unpacking long long"):
        gs.tensor(data)
    if data != [[1], [-(2**64)]]:
        assert gs.tensor(data, dtype=gs.float64).max() == 2.0**63


def test_full_refuses_what_its_dtype_cannot_hold() -> None:
    with pytest.raises(RuntimeError, match="without overflow"):
        gs.full((2,), 2**63)
    with pytest.raises(RuntimeError, match="without overflow"):
        gs.full((2,), 300, dtype=gs.uint8)
    assert gs.full((2,), 2**63, dtype=gs.float32).tolist() == [2.0**63] * 2


@pytest.mark.torch
@pytest.mark.parametrize("name", ["zeros_like", "ones_like", "empty_like", "rand_like", "randn_like"])
@pytest.mark.parametrize("memory_format", ["preserve_format", "contiguous_format", "channels_last"])
def test_what_is_like_another_lies_in_memory_as_that_or_as_said(torch: Any, name: str, memory_format: str) -> None:
    strides = []
    for lib in (gs, torch):
        x = lib.zeros(2, 3, 4, 5).permute(0, 2, 1, 3)
        made = getattr(lib, name)(x, memory_format=getattr(lib, memory_format))
        assert getattr(lib, name)(x).stride() == x.stride()
        strides.append(made.stride())
    assert strides[0] == strides[1]


def test_channels_last_wants_channels() -> None:
    with pytest.raises(RuntimeError, match="required rank 4 tensor to use channels_last format"):
        gs.zeros_like(gs.ones(2), memory_format=gs.channels_last)
    with pytest.raises(RuntimeError, match="unsupported memory format 'rows'"):
        gs.zeros_like(gs.ones(2), memory_format="rows")
    assert gs.full_like(gs.ones(2, 3).t(), 2, memory_format="contiguous_format").stride() == (2, 1)
    assert gs.randint_like(gs.ones(2, 3).t(), 5).stride() == (1, 3)


def test_listeners_hear_which_tensors_were_copied() -> None:
    a, b, heard = gs.ones(1, requires_grad=True), gs.ones(1), []
    with events.subscribe(heard.append, events.OperatorRecorded):
        c = gs.tensor([[a, 1.0], (2.0, b)])
        gs.tensor([1.0])
    (event,) = heard
    assert (event.node, event.name, event.outputs) == (None, "tensor", (c,))
    assert [tensor is expected for tensor, expected in zip(event.inputs, (a, b), strict=True)] == [True, True]


@pytest.mark.torch
@pytest.mark.parametrize(
    "use",
    [
        lambda m, **options: m.zeros(2, **options),
        lambda m, **options: m.ones(2, **options),
        lambda m, **options: m.full((2,), 3.0, **options),
        lambda m, **options: m.arange(3, **options),
        lambda m, **options: m.linspace(0, 1, 3, **options),
        lambda m, **options: m.logspace(0, 1, 3, **options),
        lambda m, **options: m.eye(2, **options),
        lambda m, **options: m.zeros_like(m.ones(2), **options),
        lambda m, **options: m.full_like(m.ones(2), 3.0, **options),
    ],
)
def test_a_layout_and_pinned_memory_may_be_named(torch: Any, use: Any) -> None:
    found, expected = (use(m, layout=m.strided, pin_memory=False) for m in (gs, torch))
    assert found.tolist() == expected.tolist()


@pytest.mark.torch
def test_numbers_with_names(torch: Any) -> None:
    assert (gs.pi, gs.e, gs.inf, gs.newaxis) == (torch.pi, torch.e, torch.inf, torch.newaxis)
    assert gs.nan != gs.nan


# --- sequences of integers --------------------------------------------------------------------------------------------

SEQUENCES = {
    "arange": [(3.1,), (3,), (2.9,), (0, 5, 1.5), (5, 0, -1.5), (-3.7, 3.2, 1.2), (-1, 3), (2, 2), (0, 2**40, 2**38)],
    "linspace": [(a, b, n) for a, b in ((-3, 3), (-3.7, 3.2), (0, 100)) for n in (0, 1, 2, 4, 5)],
    "logspace": [(0.5, 2.5, n, b) for b in (3, 10.0, 2) for n in (0, 2, 4, 5)] + [(-1, 2, 7)],
}


@pytest.mark.torch
@pytest.mark.parametrize("kind", ["uint8", "int32", "int64", "float16", "float32", "float64", "bool", "complex64"])
@pytest.mark.parametrize("name", SEQUENCES)
def test_a_sequence_has_the_values_of_pytorch_in_every_dtype(torch: Any, name: str, kind: str) -> None:
    def outcome(lib: Any, arguments: Any) -> Any:
        try:
            return getattr(lib, name)(*arguments, dtype=getattr(lib, kind)).numpy()
        except (RuntimeError, ValueError, TypeError) as error:
            return type(error)

    for arguments in SEQUENCES[name]:
        found, expected = outcome(gs, arguments), outcome(torch, arguments)
        if isinstance(expected, type):
            assert found is expected, arguments
        else:
            assert found.dtype == expected.dtype
            numpy.testing.assert_allclose(found, expected, rtol=1e-3 if kind == "float16" else 1e-6, atol=1e-6)


@pytest.mark.torch
@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float32", "float64"])
def test_a_linear_sequence_is_counted_in_its_own_precision(torch: Any, kind: str) -> None:
    # Of single and double precision PyTorch's vector instructions round otherwise, from a few elements on.
    counts = (1, 2, 3, 10, 300) if kind in ("float16", "bfloat16") else (1, 2, 3)
    for count in counts:
        for start, end in ((4.1, 5.1), (-3.7, 3.2), (8.3, -0.1)):
            found = gs.linspace(start, end, count, dtype=getattr(gs, kind))
            assert found.tolist() == torch.linspace(start, end, count, dtype=getattr(torch, kind)).tolist()


def test_a_sequence_may_be_longer_than_the_largest_number() -> None:
    assert gs.linspace(-3e38, 3e38, 3).tolist() == gs.tensor([-3e38, 0.0, 3e38]).tolist()
    assert gs.linspace(-6e4, 6e4, 5, dtype=gs.float16).tolist() == [-6e4, -3e4, 0.0, 3e4, 6e4]
    assert gs.linspace(0, math.inf, 3).isnan().all()  # and no warning


def test_a_step_is_counted_as_the_integer_it_is_cut_to() -> None:
    assert gs.arange(3.1, dtype=gs.int64).tolist() == [0, 1, 2]
    assert gs.arange(0, 2.5, out=gs.zeros(0, dtype=gs.int64)).tolist() == [0, 1]
    assert gs.linspace(-3, 3, 5, dtype=gs.int32).tolist() == [-3, -1, 0, 1, 3]
    with pytest.raises(ValueError, match="step must be nonzero"):
        gs.arange(0, 5, 0.5, dtype=gs.int64)


def test_a_complex_end_makes_a_complex_sequence() -> None:
    assert gs.linspace(0, 1j, 3).tolist() == [0j, 0.5j, 1j]
    with pytest.raises(RuntimeError, match="can't be safely cast to passed dtype float32"):
        gs.logspace(0, 1j, 3, dtype=gs.float32)


BUFFERS = [
    (bytearray(8), {}),
    (bytearray(range(8)), {"count": 1}),
    (bytearray(range(8)), {"count": 1, "offset": 3}),
    (bytearray(range(8)), {"count": -2, "offset": 4}),
    (memoryview(bytearray(range(8)))[4:], {}),
    (bytearray(0), {}),
    (bytearray(8), {"count": 0}),
    (bytearray(7), {}),
    (bytearray(8), {"count": 3}),
    (bytearray(8), {"offset": 8}),
    (bytearray(8), {"offset": -1}),
    (3, {}),
]


@pytest.mark.torch
@pytest.mark.parametrize(("buffer", "options"), BUFFERS)
def test_frombuffer_has_the_numbers_or_the_error_of_pytorch(torch: Any, buffer: Any, options: dict[str, Any]) -> None:
    def outcome(lib: Any) -> Any:
        try:
            return lib.frombuffer(buffer, dtype=lib.int32, **options).tolist()
        except Exception as error:
            return type(error), str(error).partition("\n")[0].rstrip(".").lower()

    assert outcome(gs) == outcome(torch)


def test_frombuffer_shares_what_can_be_written_and_copies_what_cannot() -> None:
    numbers = bytearray(4)
    shared, copied = gs.frombuffer(numbers, dtype=gs.uint8), gs.frombuffer(bytes(numbers), dtype=gs.uint8)
    numbers[0] = 7
    assert (shared.tolist(), copied.tolist()) == ([7, 0, 0, 0], [0, 0, 0, 0])
    copied[0] = 5
    assert copied.tolist() == [5, 0, 0, 0]
    x = gs.frombuffer(bytearray(8), dtype=gs.float32, requires_grad=True)
    assert x.is_leaf
    assert x.requires_grad
    with pytest.raises(RuntimeError, match="Only Tensors of floating point"):
        gs.frombuffer(bytearray(8), dtype=gs.int32, requires_grad=True)
