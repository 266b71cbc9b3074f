"""``tensor[...]``, ``tensor[...] = value``, gather, scatter and the index_* operators."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gradscope as gs
from gradscope.runtime import events
from gradscope.runtime.errors import SavedTensorModifiedError
from tests.runtime.kernels.both_forms import numpy_alone


def matrix(*, requires_grad: bool = False) -> gs.Tensor:
    return gs.arange(12.0).reshape(3, 4).detach().requires_grad_(requires_grad)


def names(tensor: gs.Tensor) -> list[str]:
    """Return the names along the first edges of the graph."""
    found, node = [], tensor.grad_fn
    while node is not None:
        found.append(node.name())
        node = node.next_functions[0][0] if node.next_functions else None
    return found


# --- reading ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("index", "expected"),
    [
        (0, ["SelectBackward0"]),
        (slice(None), ["SliceBackward0"]),
        (Ellipsis, ["AliasBackward0"]),
        ((), ["AliasBackward0"]),
        ((slice(None), slice(0, 9)), ["AliasBackward0"]),
        (None, ["UnsqueezeBackward0"]),
        ((0, slice(1, 3)), ["SliceBackward0", "SelectBackward0"]),
        ((slice(None), 1), ["SelectBackward0"]),
        ((Ellipsis, 1), ["SelectBackward0"]),
        ((1, None), ["UnsqueezeBackward0", "SelectBackward0"]),
        (numpy.int64(1), ["SelectBackward0"]),
        ([0, 2], ["IndexBackward0"]),
        ((slice(None), [0, 2]), ["IndexBackward0"]),
        ((0, [1, 1]), ["IndexBackward0", "SelectBackward0"]),
        (True, ["IndexBackward0", "UnsqueezeBackward0"]),
        (range(2), ["IndexBackward0"]),
    ],
)
def test_names_and_values_of_reads(index: Any, expected: list[str]) -> None:
    x = matrix(requires_grad=True)
    result = x[index]
    assert names(result) == [*expected, "AccumulateGrad"]
    array = list(index) if isinstance(index, range) else index
    numpy.testing.assert_array_equal(result.detach().numpy(), x.detach().numpy()[array])
    shares = numpy.shares_memory(result.detach().numpy(), x.detach().numpy())
    assert shares == (expected[0] != "IndexBackward0")
    assert result._is_view() == shares


def test_an_integer_beside_an_index_tensor_is_no_index_tensor() -> None:
    x = gs.zeros(4, 5, 6)
    assert tuple(x[0, :, [0, 1]].shape) == (5, 2)  # NumPy would give (2, 5)
    assert tuple(x[gs.zeros(4, 5) > -1, 1:3].shape) == (20, 2)
    assert tuple(x[:, gs.tensor([0, 1]), None, gs.tensor([0, 1])].shape) == (2, 4, 1)


def test_zero_dimensional_index_tensors() -> None:
    x = matrix(requires_grad=True)
    assert names(x[gs.tensor(1)])[0] == "SelectBackward0"
    assert tuple(x[gs.tensor(True)].shape) == (1, 3, 4)
    assert tuple(x[gs.tensor(False)].shape) == (0, 3, 4)


def test_the_gradient_of_repeated_indices_adds_up() -> None:
    x = matrix(requires_grad=True)
    x[[0, 0, 2]].sum().backward()
    assert x.grad.tolist() == [[2.0] * 4, [0.0] * 4, [1.0] * 4]


def test_short_nested_lists_are_tuples_with_a_warning() -> None:
    with pytest.warns(UserWarning, match="non-tuple sequence for multidimensional indexing is deprecated"):
        assert matrix()[[[0, 1], [1, 2]]].tolist() == [1.0, 6.0]


def test_uint8_masks_warn() -> None:
    with pytest.warns(UserWarning, match="indexing with dtype uint8 is now deprecated"):
        assert tuple(matrix()[gs.tensor([1, 0, 1], dtype=gs.uint8)].shape) == (2, 4)


@pytest.mark.parametrize(
    ("index", "error", "message"),
    [
        (3, IndexError, "index 3 is out of bounds for dimension 0 with size 3"),
        ((0, -5), IndexError, "index -5 is out of bounds for dimension 1 with size 4"),
        ((0, 0, 0), IndexError, "too many indices for tensor of dimension 2"),
        (slice(None, None, -1), ValueError, "step must be greater than zero"),
        (slice(0.5, None), TypeError, "slice indices must be integers or None"),
        (1.0, IndexError, r"only integers, slices \(`:`\), ellipsis .* \(got float\)"),
        ("a", TypeError, "invalid data type 'str'"),
        ([3], IndexError, "index 3 is out of bounds for dimension 0 with size 3"),
        ([True], IndexError, r"The shape of the mask \[1\] at index 0 does not match the shape of the indexed tensor"),
        (([0, 1], [0, 1, 2]), IndexError, r"could not be broadcast together with shapes \[2\], \[3\]"),
    ],
)
def test_wrong_indices(index: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        matrix()[index]


def test_wrong_indices_of_a_scalar() -> None:
    with pytest.raises(IndexError, match="invalid index of a 0-dim tensor"):
        gs.tensor(1.0)[0]
    with pytest.raises(IndexError, match=r"slice\(\) cannot be applied to a 0-dim tensor"):
        gs.tensor(1.0)[0:1]
    with pytest.raises(IndexError, match="tensors used as indices must be long, int, byte or bool tensors"):
        matrix()[gs.tensor([1.0])]


def test_an_index_tensor_written_after_the_read_is_noticed() -> None:
    x, index = matrix(requires_grad=True), gs.tensor([0, 1])
    result = x[index]
    index.add_(1)
    with pytest.raises(SavedTensorModifiedError, match="IndexBackward0 saved it as `indices`"):
        result.sum().backward()


# --- writing ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("index", "name"),
    [
        (0, "CopySlices"),
        (slice(1, 3), "CopySlices"),
        ((slice(None), 1), "CopySlices"),
        (None, "CopySlices"),
        (True, "CopySlices"),
        (slice(None), "FillBackward3"),
        (Ellipsis, "FillBackward3"),
        ([0, 2], "IndexPutBackward0"),
        ((0, [1, 2]), "CopySlices"),
    ],
)
def test_names_values_and_versions_of_writes(index: Any, name: str) -> None:
    x = matrix(requires_grad=True)
    y = x.clone()
    expected = x.detach().numpy().copy()
    expected[index] = 50.0
    y[index] = 50.0
    assert names(y)[0] == name
    assert y._version == 1
    numpy.testing.assert_array_equal(y.detach().numpy(), expected)
    y.sum().backward()
    numpy.testing.assert_array_equal(x.grad.numpy(), expected != 50.0)


def test_gradients_flow_into_an_assigned_tensor() -> None:
    x, v = matrix(requires_grad=True), gs.ones(4, requires_grad=True)
    y = x.clone()
    y[1:] = v
    y[0, [0, 1]] = v[:2]
    (y * 2).sum().backward()
    assert v.grad.tolist() == [6.0, 6.0, 4.0, 4.0]
    assert x.grad.tolist() == [[0.0, 0.0, 2.0, 2.0], [0.0] * 4, [0.0] * 4]


def test_masks_and_false() -> None:
    y = matrix()
    y[y > 9] = -1
    y[False] = 100.0
    assert y[2].tolist() == [8.0, 9.0, -1.0, -1.0]
    assert y._version == 1


def test_leading_dimensions_of_size_one_are_dropped() -> None:
    y = matrix()
    y[0] = gs.ones(1, 1, 4)
    y[[1, 2]] = gs.full((1, 1, 2, 4), 2.0)
    assert y.tolist() == [[1.0] * 4, [2.0] * 4, [2.0] * 4]


@pytest.mark.parametrize("index", [0, slice(1, 2), [0], (slice(None), 1)])
def test_a_leaf_that_requires_grad_refuses(index: Any) -> None:
    x = matrix(requires_grad=True)
    before = x.detach().numpy().copy()
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad is being used in an in-place operation"):
        x[index] = 7.0
    numpy.testing.assert_array_equal(x.detach().numpy(), before)
    assert x._version == 0
    with gs.no_grad():
        x[index] = 7.0
    assert x._version == 1
    assert x.grad_fn is None


@pytest.mark.parametrize(
    ("index", "value", "error", "message"),
    [
        (0, [1, 2], TypeError, "can't assign a list to a gradscope.FloatTensor"),
        (0, 1j, RuntimeError, "value cannot be converted to type float32 without overflow"),
        (0, gs.ones(3), RuntimeError, r"expanded size of the tensor \(4\) must match the existing size \(3\)"),
        (0, gs.ones(2, 4), RuntimeError, "the number of sizes provided"),
        ([0, 1], gs.ones(3, 4), RuntimeError, r"value tensor of shape \[3, 4\] cannot be broadcast to .* \[2, 4\]"),
        ([0, 1], gs.tensor([1]), RuntimeError, "Index put requires the source and destination dtypes match"),
        ([0, 3], 1.0, IndexError, "index 3 is out of bounds for dimension 0 with size 3"),
    ],
)
def test_wrong_writes_change_nothing(index: Any, value: Any, error: type[Exception], message: str) -> None:
    y = matrix()
    with pytest.raises(error, match=message):
        y[index] = value
    assert y.tolist() == matrix().tolist()
    assert y._version == 0


# --- writes by NumPy's own assignment, beside the same step by step ---------------------------------------------------

BOUNDS = st.none() | st.integers(-5, 5)
ITEMS = st.integers(-4, 4) | st.builds(slice, BOUNDS, BOUNDS, st.none() | st.integers(-1, 2))
KEYS = ITEMS | st.lists(ITEMS | st.just(None) | st.just(Ellipsis), max_size=4).map(tuple)
TARGETS: dict[str, Callable[[], gs.Tensor]] = {
    "float32": matrix,
    "float64": lambda: matrix().double(),
    "float16": lambda: matrix().half(),
    "int64": lambda: matrix().long(),
    "int8": lambda: matrix().to(gs.int8),
    "uint8": lambda: matrix().to(gs.uint8),
    "bool": lambda: matrix() > 5,
    "complex": lambda: matrix().to(gs.complex64),
    "transposed": lambda: matrix().T,
    "gaps": lambda: gs.arange(48.0).reshape(6, 8)[::2, ::2],
    "expanded": lambda: gs.arange(4.0).expand(3, 4),
    "one": lambda: gs.tensor([5.0]),
    "no dimension": lambda: gs.tensor(5.0),
    "conjugated": lambda: matrix().to(gs.complex64).conj(),
}
SHAPES = st.sampled_from([(), (1,), (4,), (3,), (3, 4), (1, 4), (3, 1), (1, 1, 4), (2,), (0,)])
NUMBERS = st.sampled_from([0.5, 7, True, -3, 300, 1e39, 10**40, -(10**10), math.nan, -math.inf, 1j, numpy.float64(2.5)])


def written(target: gs.Tensor, key: Any, value: Any) -> tuple[Any, ...]:
    """Return what a write has left, with its version or its complaint."""
    told = ""
    try:
        target[key] = value
    except Exception as error:
        told = f"{type(error).__name__}: {error}"
    base = target if target._base is None else target._base
    return str(target.tolist()), str(base.tolist()), target._version, told


@given(kind=st.sampled_from(sorted(TARGETS)), key=KEYS, value=NUMBERS | SHAPES, own=st.booleans())
@settings(max_examples=300)
def test_a_write_is_what_it_is_step_by_step(kind: str, key: Any, value: Any, own: bool) -> None:
    def outcome() -> tuple[Any, ...]:
        target = TARGETS[kind]()
        new = value
        if isinstance(value, tuple):
            new = gs.full(value, 9.0).to(target.dtype) if own else gs.full((2, *value), 9.0).to(target.dtype)[1]
        return written(target, key, new)

    straight = outcome()
    with events.subscribe(lambda event: None, events.VersionBumped):
        assert straight == outcome()


RECORDED: dict[str, Callable[[gs.Tensor], gs.Tensor]] = {
    "copy": lambda x: x.clone(),
    "transposed": lambda x: (x * 1).T.clone(memory_format="preserve_format"),
    "view": lambda x: x.clone()[:, 1:],
    "leaf": lambda x: x,
    "constant": lambda x: x.detach().clone(),
    "conjugated": lambda x: x.to(gs.complex64).conj(),
}


@given(kind=st.sampled_from(sorted(RECORDED)), key=KEYS, shape=SHAPES, inside=st.booleans())
@settings(max_examples=200)
def test_a_recorded_write_is_what_it_is_step_by_step(kind: str, key: Any, shape: tuple[int, ...], inside: bool) -> None:
    def outcome() -> tuple[Any, ...]:
        x = matrix(requires_grad=True)
        target = RECORDED[kind](x)
        value = gs.full((2, *shape), 9.0, dtype=target.dtype, requires_grad=True)
        result = written(target, key, value[1] if inside else value.detach()[1].requires_grad_())
        if target.requires_grad and target.grad_fn is not None:
            (target * (target * 2 + 1)).abs().sum().backward()
        grads = [None if leaf.grad is None else leaf.grad.tolist() for leaf in (x, value)]
        return *result, graph_names(target.grad_fn), grads

    straight = outcome()
    with events.subscribe(lambda event: None, events.VersionBumped):
        assert straight == outcome()


@pytest.mark.parametrize("part", [slice(0, 2), slice(1, 3), (slice(None), 0)])
def test_a_write_of_its_own_memory_is_refused_where_it_overlaps(part: Any) -> None:
    def outcome() -> tuple[Any, ...]:
        x = matrix()
        return written(x, slice(1, 3) if isinstance(part, slice) else (slice(None), 1), x[part])

    straight = outcome()
    with events.subscribe(lambda event: None, events.VersionBumped):
        assert straight == outcome()


def test_a_write_through_a_view_is_counted_and_noticed() -> None:
    weight = gs.ones(3, requires_grad=True)
    data = gs.ones(2, 3)
    product = (weight * data[0]).sum()
    data[1:][0][2] = 5.0
    assert data._version == 1
    with pytest.raises(SavedTensorModifiedError):
        product.backward()
    with pytest.raises(RuntimeError, match="view of a leaf Variable"):
        weight[:2][0] = 1.0
    with gs.no_grad():
        weight[:2][0] = weight.sum()
    assert (weight.tolist(), weight._version) == ([3.0, 1.0, 1.0], 1)


def test_indexed_writes_to_expanded_memory_warn_and_the_others_are_refused() -> None:
    x = gs.zeros(1, 3).expand(2, 3)
    with pytest.warns(UserWarning, match="index_put_ on expanded tensors is deprecated"):
        x[[0]] = 1.0
    assert x.tolist() == [[1.0] * 3] * 2
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        x[:] = 2.0
    assert x.tolist() == [[1.0] * 3] * 2


def test_index_put_accumulates() -> None:
    x, v = gs.zeros(3, requires_grad=True), gs.tensor([1.0, 2.0, 4.0], requires_grad=True)
    y = x.index_put((gs.tensor([0, 0, 2]),), v, accumulate=True)
    assert y.tolist() == [3.0, 0.0, 4.0]
    (y * gs.tensor([1.0, 10.0, 100.0])).sum().backward()
    assert x.grad.tolist() == [1.0, 10.0, 100.0]
    assert v.grad.tolist() == [1.0, 1.0, 100.0]


def test_accumulating_into_a_view_and_at_scattered_dimensions() -> None:
    base = gs.zeros(3, 2, 4)
    base.transpose(0, 2).index_put_((gs.tensor([1, 1]),), gs.tensor(1.0), accumulate=True)
    assert base[:, :, 1].tolist() == [[2.0, 2.0]] * 3
    x = gs.zeros(2, 3, 2, requires_grad=True)
    x[gs.tensor([1, 1]), :, gs.tensor([0, 0])].sum().backward()
    assert x.grad[1, :, 0].tolist() == [2.0] * 3
    assert x.grad.sum().item() == 6.0


# --- gather, scatter, index_* -----------------------------------------------------------------------------------------


def test_gather_and_scatter() -> None:
    x = matrix()
    index = gs.tensor([[0, 2, 1, 0], [2, 2, 0, 1]])
    assert x.gather(0, index).tolist() == [[0.0, 9.0, 6.0, 3.0], [8.0, 9.0, 2.0, 7.0]]
    assert gs.zeros(3, 4).scatter(0, index[:1], 1.0).sum().item() == 4.0
    assert gs.zeros(3, 4).scatter_add(0, index, gs.ones(2, 4))[2].tolist() == [1.0, 2.0, 0.0, 0.0]
    assert gs.zeros(3, 4).scatter_(0, index[:1], gs.ones(2, 4))[0].tolist() == [1.0, 0.0, 0.0, 1.0]
    assert gs.take_along_dim(x, x.argsort(1, descending=True)[:1], 1)[2].tolist() == [11.0, 10.0, 9.0, 8.0]
    assert x.narrow_copy(1, 1, 2)._base is None


def test_index_operators() -> None:
    x, index = matrix(), gs.tensor([2, 0])
    assert x.index_select(0, index).tolist() == [[8.0, 9.0, 10.0, 11.0], [0.0, 1.0, 2.0, 3.0]]
    assert gs.zeros(3).index_add(0, gs.tensor([1, 1]), gs.ones(2), alpha=3).tolist() == [0.0, 6.0, 0.0]
    assert gs.zeros(3).index_copy(0, index, gs.tensor([1.0, 2.0])).tolist() == [2.0, 0.0, 1.0]
    assert gs.zeros(3).index_fill(0, index, 4).tolist() == [4.0, 0.0, 4.0]
    assert gs.zeros(3).index_fill_(0, index, gs.tensor(5.0)).tolist() == [5.0, 0.0, 5.0]
    assert x.take(gs.tensor([[0, -1]])).tolist() == [[0.0, 11.0]]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: x.gather(0, gs.tensor([0])), RuntimeError, "must have the same number of dimensions as input"),
        (lambda x: x.gather(0, gs.tensor([[3]])), RuntimeError, "index 3 is out of bounds for dimension 0 with size 3"),
        (lambda x: x.gather(0, gs.tensor([[-1]])), RuntimeError, "index -1 is out of bounds for dimension 0"),
        (lambda x: x.gather(0, gs.zeros(1, 1)), RuntimeError, "Expected dtype int32/int64 for index"),
        (lambda x: x.gather(2, gs.tensor([[0]])), IndexError, "Dimension out of range"),
        (lambda x: x.gather(0, gs.zeros(1, 5, dtype=gs.int64)), RuntimeError, "to be no larger than self"),
        (lambda x: x.scatter_(0, gs.tensor([[0, 0]]), gs.ones(1, 1)), RuntimeError, "no larger size than src"),
        (lambda x: x.scatter_(0, gs.tensor([[0]]), gs.tensor([[1]])), RuntimeError, "self.dtype to be equal to src"),
        (lambda x: x.index_select(0, gs.tensor([[0]])), IndexError, "Index is supposed to be a vector"),
        (lambda x: x.index_select(0, gs.tensor([3])), IndexError, "index out of range in self"),
        (lambda x: x.index_add_(0, gs.tensor([0]), gs.ones(2, 4)), RuntimeError, r"Number of indices \(1\) should be"),
        (lambda x: x.index_add_(0, gs.tensor([0]), gs.ones(1, 3)), RuntimeError, "source tensor shape must match self"),
        (lambda x: x.index_add_(0, gs.tensor([3]), gs.ones(1, 4)), RuntimeError, "index 3 is out of bounds"),
        (lambda x: x.sum().index_add_(0, gs.tensor([0]), gs.ones(1)), RuntimeError, r"Got self.shape = \[\] source"),
        (lambda x: x.index_add_(0, gs.tensor([0, 0]), gs.ones(())), IndexError, "tensor has no dimensions"),
        (lambda x: x.index_copy_(0, gs.tensor([0]), gs.ones(1, 3)), RuntimeError, "must have same slice shapes"),
        (lambda x: x.index_fill_(0, gs.tensor([0]), gs.ones(1)), RuntimeError, "only supports a 0-dimensional value"),
        (lambda x: x.take(gs.tensor([12])), IndexError, "tried to access index 12 on a tensor of 12 elements"),
        (lambda x: x.index_put_(gs.tensor([0]), gs.ones(4)), TypeError, "must be tuple of Tensors, not Tensor"),
    ],
)
def test_wrong_calls_change_nothing(call: Any, error: type[Exception], message: str) -> None:
    x = matrix()
    with pytest.raises(error, match=message):
        call(x)
    assert x.tolist() == matrix().tolist()
    assert x._version == 0


# --- side by side with PyTorch ----------------------------------------------------------------------------------------

INDICES: list[Any] = [
    0, -1, slice(None), slice(1, 3), slice(-9, 2), slice(3, 1), slice(None, None, 2), Ellipsis, None, (), True, False,
    (slice(None), 0), (0, slice(1, 3)), (Ellipsis, 0), (0, None), (None, 0), (slice(1, 3), 2),
    (slice(0, 4), slice(None)),
    [0, 1], [], ([0, 1], [2, 0]), (0, slice(None), [0, 1]), ([0, 1], slice(None), [0, 1]), (slice(None), [0, 1]),
    (slice(None), [[0, 1], [2, 0]], [1]), [True, False, True, False], (True, [0, 1]), (True, 0), (0, True),
    (Ellipsis, [0, 0, 5]), ([0, 1], None, [0, 1]), 9, (0, 0, 0, 0), [7], ([0, 1], [0, 1, 2]), 1.5,
    (slice(None), [True]),
]  # fmt: skip


def outcome(call: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return call()
        except (IndexError, RuntimeError, TypeError, ValueError) as error:
            return error


def graph_names(node: Any) -> Any:
    if node is None:
        return None
    name = node.name().removeprefix("torch::autograd::").removeprefix("struct torch::autograd::")
    return name, [graph_names(child) for child, _ in node.next_functions]


def compare(ours: Any, theirs: Any, inputs: list[Any], their_inputs: list[Any], torch: Any) -> None:
    """Values, shapes, versions, graph and gradients agree; or both raise the same."""
    if isinstance(theirs, Exception):
        assert type(ours) is type(theirs), (ours, theirs)
        assert str(ours)[:40] == str(theirs)[:40]
        return
    assert not isinstance(ours, Exception), ours
    numpy.testing.assert_array_equal(ours.detach().numpy(), theirs.detach().numpy())
    assert (ours._version, ours._is_view()) == (theirs._version, theirs._is_view())
    assert graph_names(ours.grad_fn) == graph_names(theirs.grad_fn)
    weights = numpy.random.default_rng(0).normal(size=tuple(theirs.shape))
    (ours * gs.from_numpy(weights)).sum().backward()
    (theirs * torch.from_numpy(weights)).sum().backward()
    for a, b in zip(inputs, their_inputs, strict=True):
        assert (a.grad is None) == (b.grad is None)
        if b.grad is not None:
            numpy.testing.assert_allclose(a.grad.numpy(), b.grad.numpy())


def leaf_pair(torch: Any, shape: tuple[int, ...], seed: int = 0) -> tuple[Any, Any]:
    values = numpy.random.default_rng(seed).normal(size=shape)
    return gs.tensor(values, requires_grad=True), torch.tensor(values, requires_grad=True)


@pytest.mark.torch
@pytest.mark.parametrize("index", INDICES, ids=str)
def test_reads_are_those_of_pytorch(index: Any, torch: Any) -> None:
    x, tx = leaf_pair(torch, (4, 5, 6))
    compare(outcome(lambda: x[index]), outcome(lambda: tx[index]), [x], [tx], torch)


@pytest.mark.torch
@pytest.mark.parametrize("index", INDICES, ids=str)
@pytest.mark.parametrize("form", ["number", "0-d", "full", "leading ones", "last"])
def test_writes_are_those_of_pytorch(index: Any, form: str, torch: Any) -> None:
    x, tx = leaf_pair(torch, (4, 5, 6))
    found = outcome(lambda: tx[index])
    shape = () if isinstance(found, Exception) else tuple(found.shape)
    shapes = {"0-d": (), "full": shape, "leading ones": (1, 1, *shape), "last": shape[-1:]}
    v, tv = leaf_pair(torch, shapes[form], 1) if form in shapes else (5.0, 5.0)

    def write(target: Any, value: Any) -> Any:
        target = target.clone()
        target[index] = value
        return target

    inputs, their_inputs = ([x], [tx]) if form == "number" else ([x, v], [tx, tv])
    compare(outcome(lambda: write(x, v)), outcome(lambda: write(tx, tv)), inputs, their_inputs, torch)


@pytest.mark.torch
@pytest.mark.parametrize("kind", ["float64", "int64", "bool"])
def test_a_mask_takes_a_value_without_dimensions_of_any_dtype(torch: Any, kind: str) -> None:
    for lib in (gs, torch):
        x = lib.zeros(3)
        x[lib.tensor([True, False, True])] = lib.tensor(1, dtype=getattr(lib, kind))
        assert (x.tolist(), x.dtype) == ([1.0, 0.0, 1.0], lib.float32)
        with pytest.raises(RuntimeError, match="the source and destination dtypes match"):
            x[lib.tensor([True, False, True])] = lib.ones(2, dtype=getattr(lib, kind))


@pytest.mark.torch
def test_what_is_written_into_integers_has_no_history(torch: Any) -> None:
    for lib in (gs, torch):
        weights = lib.ones(2, requires_grad=True)
        for kind in (lib.bool, lib.int64):
            x, y = lib.zeros(2, dtype=kind), lib.zeros(2, 2, dtype=kind)
            x[0] = weights[0]
            y[0] = weights
            y[:, 1].copy_(weights)
            for written in (x, y):
                assert (written.requires_grad, written.grad_fn, written.is_leaf) == (False, None, True)
            assert [int(n) for n in x] == [1, 0]


# --- many rows --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize("count", [7, 900, 40_000], ids=lambda count: f"among {count}")
def test_many_rows_are_added_one_after_the_other_without_compiled_kernels(kind: str, count: int) -> None:
    generator = numpy.random.default_rng(0)
    rows = (generator.standard_normal((2500, 8)) * 10.0 ** generator.integers(-3, 4, (2500, 1))).astype(kind)
    rows[:4, 0] = numpy.inf, -numpy.inf, numpy.nan, -0.0
    places = generator.integers(-count, count, 2500)
    weight = gs.zeros(count, 8, dtype=getattr(gs, kind), requires_grad=True)
    expected = numpy.zeros((count, 8), kind)
    with numpy.errstate(invalid="ignore"):
        numpy.add.at(expected, places, rows)
    with numpy_alone():
        weight[gs.tensor(places)].backward(gs.tensor(rows))
        added = gs.ones_like(weight).index_put_((gs.tensor(places),), gs.tensor(rows), accumulate=True)
    numpy.testing.assert_array_equal(weight.grad.numpy(), expected)
    numpy.testing.assert_allclose(added.numpy(), expected + 1, rtol=1e-5)
