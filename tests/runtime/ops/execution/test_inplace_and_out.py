"""In-place forms of views, of comparisons, on expanded memory; ``out=`` of several results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy
import pytest

import gradscope as gs
from gradscope.runtime.errors import InplaceError, SavedTensorModifiedError
from tests.runtime.ops.operator_cases import assert_agrees, assert_same_refusal

RELAYOUTS: dict[str, Callable[[Any], Any]] = {
    "transpose_": lambda t: t.transpose_(0, 1),
    "swapaxes_": lambda t: t.swapaxes_(0, 1),
    "swapdims_": lambda t: t.swapdims_(-1, 0),
    "t_": lambda t: t.t_(),
    "squeeze_": lambda t: t.squeeze_(),
    "squeeze_(dim)": lambda t: t.squeeze_(0),
    "squeeze_(dims)": lambda t: t.squeeze_((0, 1)),
    "unsqueeze_": lambda t: t.unsqueeze_(1),
    "as_strided_": lambda t: t.as_strided_((3, 1), (1, 3)),
}


@pytest.mark.torch
@pytest.mark.parametrize("name", RELAYOUTS)
def test_views_in_place(torch: Any, name: str) -> None:
    """Shape, version, node, gradients are PyTorch's: of a tensor, its views, and a view of a base."""
    act = RELAYOUTS[name]

    def on_a_tensor(m: Any, x: Any) -> Any:
        y = x * 2
        view = y[0]
        assert act(y) is y
        assert y._version == view._version == 1
        assert not y._is_view()
        return [y, view]

    def on_a_view(m: Any, x: Any) -> Any:
        base = x * 2
        view = base[:1]
        act(view)
        assert view._base is base
        assert base._version == 1
        later = view * 1
        view.mul_(3)
        return [later, view, base]

    assert_agrees(torch, on_a_tensor, (1, 3))
    assert_agrees(torch, on_a_view, (2, 3))


@pytest.mark.parametrize("name", RELAYOUTS)
def test_views_in_place_are_refused_where_writes_are(name: str) -> None:
    act = RELAYOUTS[name]
    leaf = gs.ones(1, 3, requires_grad=True)
    with pytest.raises(InplaceError, match="a leaf Variable that requires grad"):
        act(leaf)
    with pytest.raises(InplaceError, match="a view of a leaf Variable"):
        act(leaf[:1])
    with pytest.raises(InplaceError, match="is the output of a function that returns multiple views"):
        act((leaf * 1).unsqueeze(0).unbind(0)[0])
    assert (leaf.shape, leaf._version) == ((1, 3), 0)


def test_a_leaf_transposed_under_no_grad_accumulates_in_its_new_shape() -> None:
    x = gs.ones(2, 3, requires_grad=True)
    (x * 2).sum().backward()
    x.grad = None
    with gs.no_grad():
        x.t_()
    (x * 3).sum().backward()
    assert x.grad.shape == (3, 2)


def test_a_saved_tensor_transposed_in_place_is_found() -> None:
    x = gs.ones(2, 3, requires_grad=True)
    y = x * 1
    z = y * y
    y.t_()
    with pytest.raises(SavedTensorModifiedError, match="version 1; expected version 0"):
        z.sum().backward()


COMPARISONS = {
    "eq": (), "ne": ("not_equal",), "lt": ("less",), "le": ("less_equal",), "gt": ("greater",), "ge": ("greater_equal",)
}  # fmt: skip


@pytest.mark.parametrize("name", COMPARISONS)
def test_comparisons_in_place(name: str) -> None:
    x = gs.tensor([0, 1, 2])
    expected = getattr(x, name)(1).long().tolist()
    for alias in (name, *COMPARISONS[name]):
        assert getattr(x.clone(), alias + "_")(1).tolist() == expected
        assert getattr(x.clone(), alias + "_")(gs.ones(3)).tolist() == expected


def test_aliases_of_division_in_place() -> None:
    assert gs.tensor([3.0]).true_divide_(2).tolist() == [1.5]
    assert gs.tensor([3.0]).divide_(2, rounding_mode="floor").tolist() == [1.0]


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore:Use of .* on expanded tensors is deprecated")
@pytest.mark.parametrize(
    "act",
    [
        lambda m, x: x.fill_(2),
        lambda m, x: x.zero_(),
        lambda m, x: x.masked_fill_(m.tensor([True, False, False]), 5),
        lambda m, x: x.masked_fill_(m.tensor([False, False, True]), m.tensor(5.0)),
        lambda m, x: x.index_put_((m.tensor([1]),), m.tensor(5.0)),
        lambda m, x: x.index_fill_(0, m.tensor([1]), 5),
    ],
)
def test_fills_write_expanded_memory(torch: Any, act: Any) -> None:
    ours, theirs = gs.ones(1).expand(3), torch.ones(1).expand(3)
    act(gs, ours)
    act(torch, theirs)
    assert ours.tolist() == theirs.tolist()
    assert ours._version == theirs._version


def test_scattered_writes_to_expanded_memory_warn() -> None:
    x = gs.ones(1).expand(3)
    with pytest.warns(UserWarning, match="masked_fill_ on expanded tensors is deprecated"):
        x.masked_fill_(gs.tensor([True, False, False]), 5)
    with pytest.warns(UserWarning, match="index_fill_ on expanded tensors is deprecated"):
        x.index_fill_(0, gs.tensor([0]), 5)


@pytest.mark.torch
@pytest.mark.parametrize(
    "use",
    [
        lambda m: m.ones(1).expand(3).add_(1),
        lambda m: m.ones(1).expand(3).copy_(m.ones(3)),
        lambda m: m.ones(1).expand(3).put_(m.tensor([1]), m.ones(1)),
        lambda m: m.ones(1).expand(3).fill_(m.tensor(2.0)),
        lambda m: m.ones(3).fill_(m.ones(3)),
        lambda m: m.ones(3).fill_("text"),
        lambda m: m.ones(3).fill_(1j),
        lambda m: m.ones(2, 2).addmm_(m.ones(2, 3), m.ones(3, 3)),
        lambda m: m.ones(3).index_add_(0, m.tensor([5]), m.ones(1)),
        lambda m: m.ones(3, 2).index_add_(0, m.tensor([5]), m.ones(1, 2)),
        lambda m: m.max(m.ones(2, 2), 1, out=m.ones(2)),
        lambda m: m.max(m.ones(2, 2), 1, out=(m.ones(2), m.ones(2))),
        lambda m: m.add(m.ones(3), 1, out=m.ones(1).expand(3)),
        lambda m: m.zeros(2, out=m.ones(2, requires_grad=True)),
        lambda m: m.cat([]),
        lambda m: m.cat([m.ones(2), m.ones(2, 2)]),
        lambda m: m.cat([m.ones(2, 3), m.ones(2, 2)]),
        lambda m: m.ones(2, dtype=m.bool) - m.ones(2),
        lambda m: m.ones(2) & m.ones(2, dtype=m.int64),
        lambda m: ~m.ones(2),
        lambda m: m.floor_divide(m.ones(2, requires_grad=True), 2).sum().backward(),
    ],
)
def test_wrong_calls_raise_pytorchs_exceptions(torch: Any, use: Any) -> None:
    assert_same_refusal(torch, use)


@pytest.mark.parametrize("name", ["max", "min", "sort", "topk", "kthvalue", "median", "cummax", "mode"])
def test_pairs_are_written_into_out(name: str) -> None:
    x = gs.tensor([[1.0, 3.0], [2.0, 0.0]])
    arguments = {"topk": (1,), "kthvalue": (1,)}.get(name, (1,))
    values, indices = gs.empty(0), gs.empty(0, dtype=gs.int64)
    result = getattr(gs, name)(x, *arguments, out=(values, indices))
    assert result.values is values
    assert result.indices is indices
    expected = getattr(gs, name)(x, *arguments)
    assert (values.tolist(), indices.tolist()) == (expected.values.tolist(), expected.indices.tolist())


def test_a_pair_that_does_not_fit_changes_nothing() -> None:
    values, indices = gs.ones(2), gs.ones(2)
    with pytest.raises(RuntimeError, match="Expected out tensor to have dtype int64, but got float32"):
        gs.zeros(2, 2).max(1, out=(values, indices))
    assert (values.tolist(), values._version) == ([1.0, 1.0], 0)


OVERLAPPING = {
    "exp": lambda m, x: m.exp(x[:-1], out=x[1:]),
    "add": lambda m, x: m.add(x[:-1], 1, out=x[1:]),
    "clamp": lambda m, x: m.clamp(x[:-1], 0, 1, out=x[1:]),
    "cumsum": lambda m, x: m.cumsum(x[:-1], 0, out=x[1:]),
    "cat": lambda m, x: m.cat([x[:2]], out=x[1:3]),
    "another shape": lambda m, x: m.add(x, 1, out=x.view(2, 2)),
    "transposed": lambda m, x: m.add(x.view(2, 2), x.view(2, 2).t(), out=x.view(2, 2)),
}


@pytest.mark.torch
@pytest.mark.parametrize("use", OVERLAPPING)
def test_out_that_is_a_part_of_an_operand_is_refused(torch: Any, use: str) -> None:
    for lib in (gs, torch):
        x = lib.arange(4.0)
        with pytest.raises(RuntimeError, match="some elements of the input tensor and the written-to tensor refer"):
            OVERLAPPING[use](lib, x)
        assert x.tolist() == [0.0, 1.0, 2.0, 3.0]


def test_out_may_be_an_operand() -> None:
    x = gs.arange(4.0)
    gs.add(x, x, out=x)
    assert x.tolist() == [0.0, 2.0, 4.0, 6.0]


@pytest.mark.parametrize("alpha", [1, 2])
def test_memory_that_cannot_be_written_keeps_its_version(alpha: int) -> None:
    array = numpy.ones(3, numpy.float32)
    tensor = gs.from_numpy(array)
    array.flags.writeable = False
    tensor._array.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        tensor.add_(gs.ones(3), alpha=alpha)
    assert (tensor._version, array.tolist()) == (0, [1.0, 1.0, 1.0])


# --- the dtype of what is written to ----------------------------------------------------------------------------------

UNARY = (
    "abs",
    "neg",
    "exp",
    "sqrt",
    "floor",
    "round",
    "sign",
    "sgn",
    "signbit",
    "frac",
    "square",
    "logical_not",
    "angle",
    "isneginf",
    "nan_to_num",
)
PAIRS = (
    "add",
    "mul",
    "div",
    "pow",
    "maximum",
    "eq",
    "logical_and",
    "hypot",
    "float_power",
    "outer",
    "matmul",
    "mm",
    "inner",
    "kron",
    "heaviside",
)
ALONG = (
    "sum",
    "mean",
    "prod",
    "amax",
    "amin",
    "argmax",
    "cumsum",
    "cumprod",
    "logcumsumexp",
    "logsumexp",
    "norm",
    "std",
    "quantile",
    "softmax",
    "msort",
    "diff",
)


def _calls() -> dict[str, Callable[..., Any]]:
    """Return ``call(lib, x, out)`` by name."""
    found: dict[str, Callable[..., Any]] = {
        "max": lambda lib, x, out: lib.max(x, out=out),
        "cat": lambda lib, x, out: lib.cat([x, x], out=out),
        "stack": lambda lib, x, out: lib.stack([x, x], out=out),
        "where": lambda lib, x, out: lib.where(x > 2, x, x, out=out),
        "gather": lambda lib, x, out: lib.gather(x, 0, lib.zeros(1, 3, dtype=lib.int64), out=out),
        "index_select": lambda lib, x, out: lib.index_select(x, 0, lib.tensor([0]), out=out),
        "masked_select": lambda lib, x, out: lib.masked_select(x, x > 2, out=out),
        "nonzero": lambda lib, x, out: lib.nonzero(x, out=out),
        "tril": lambda lib, x, out: lib.tril(x, out=out),
        "diag": lambda lib, x, out: lib.diag(x, out=out),
        "clamp": lambda lib, x, out: lib.clamp(x, 1, 3, out=out),
        "lerp": lambda lib, x, out: lib.lerp(x, x, 0.5, out=out),
        "addcmul": lambda lib, x, out: lib.addcmul(x, x, x, out=out),
        "addmm": lambda lib, x, out: lib.addmm(x, x, x, out=out),
        "addr": lambda lib, x, out: lib.addr(x, x[0], x[1], out=out),
        "inverse": lambda lib, x, out: lib.inverse(x, out=out),
        "det": lambda lib, x, out: lib.linalg.det(x, out=out),
        "scatter": lambda lib, x, out: lib.scatter(x, 0, lib.zeros(1, 3, dtype=lib.int64), x, out=out),
        "tensordot": lambda lib, x, out: lib.tensordot(x, x, 1, out=out),
        "linspace": lambda lib, x, out: lib.linspace(0, 1, 3, out=out),
        "arange": lambda lib, x, out: lib.arange(3, out=out),
    }
    for name in UNARY:
        found[name] = lambda lib, x, out, name=name: getattr(lib, name)(x, out=out)
    for name in PAIRS:
        flat = name == "outer"
        found[name] = lambda lib, x, out, name=name, flat=flat: getattr(lib, name)(
            x[0] if flat else x, x[1] if flat else x.t(), out=out
        )
    for name in ALONG:
        given = {"norm": (2, 0), "quantile": (0.3, 0), "msort": (), "diff": ()}.get(name, (0,))
        found[name] = lambda lib, x, out, name=name, given=given: getattr(lib, name)(x, *given, out=out)
    return found


WRITTEN = _calls()


@pytest.mark.torch
@pytest.mark.parametrize("name", WRITTEN)
def test_out_has_a_dtype_that_pytorch_takes(torch: Any, name: str) -> None:
    def outcome(lib: Any, kind: str, wanted: str) -> Any:
        x = lib.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 7.0], [2.0, 9.0, 4.0]]).to(getattr(lib, kind))
        out = lib.zeros(0, dtype=getattr(lib, wanted))
        try:
            WRITTEN[name](lib, x, out)
        except (RuntimeError, TypeError):  # PyTorch's cat() raises the second
            return RuntimeError
        return out.numpy()

    for kind in ("float32", "int64"):
        for wanted in ("uint8", "int64", "float16", "float32", "float64", "complex64"):
            if name in ("std", "cumsum", "cumprod") and wanted in ("complex64", "uint8"):
                continue  # PyTorch has no kernel, or overflows otherwise
            found, expected = outcome(gs, kind, wanted), outcome(torch, kind, wanted)
            if isinstance(expected, type) or isinstance(found, type):
                assert found is expected, (kind, wanted)
            else:
                assert found.dtype == expected.dtype
                numpy.testing.assert_allclose(found, expected, rtol=1e-2 if wanted == "float16" else 1e-5)


def test_the_size_of_complex_numbers_may_be_written_into_complex_ones() -> None:
    out = gs.zeros(1, dtype=gs.complex64)
    assert gs.abs(gs.tensor([3 + 4j]), out=out) is out
    assert out.tolist() == [5 + 0j]
    with pytest.raises(RuntimeError, match="Expected out tensor to have dtype float32, but got complex128"):
        gs.abs(gs.tensor([3 + 4j]), out=gs.zeros(1, dtype=gs.complex128))


INTEGER_WRITES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "fill_": lambda t, mask, value: t.fill_(value),
    "masked_fill_": lambda t, mask, value: t.masked_fill_(mask, value),
    "masked_fill_ of a view": lambda t, mask, value: t[:2].masked_fill_(mask[:2], value),
    "index_put_": lambda t, mask, value: t.index_put_((mask,), value),
    "index_fill_": lambda t, mask, value: t.index_fill_(0, gs.tensor([0, 1]), value),
    "copy_": lambda t, mask, value: t.copy_(value),
    "setitem": lambda t, mask, value: t.__setitem__(0, value),
    "setitem of a mask": lambda t, mask, value: t.__setitem__(mask, value),
}


@pytest.mark.parametrize("name", INTEGER_WRITES)
def test_integers_take_a_number_that_requires_grad_and_have_no_gradient(name: str) -> None:
    target, mask = gs.tensor([1, 1, 1], dtype=gs.int32), gs.tensor([True, True, False])
    view = target[:]
    INTEGER_WRITES[name](target, mask, gs.tensor(2.0, requires_grad=True))
    assert target[0].item() == 2
    for tensor in (target, view, target * target, target * 0.5):
        assert not tensor.requires_grad
        assert tensor.grad_fn is None


def test_a_comparison_in_place_leaves_integers_without_a_gradient() -> None:
    target = gs.tensor([1, 3])
    target.gt_(gs.tensor([2.0, 2.0], requires_grad=True))
    assert target.tolist() == [0, 1]
    assert not target.requires_grad


def test_what_an_out_resizes_keeps_its_offset() -> None:
    out = gs.zeros(6).as_strided_((2,), (1,), 2)
    with pytest.warns(UserWarning, match="was resized"):
        gs.neg(gs.tensor([1.0, 2.0, 3.0]), out=out)
    assert out.tolist() == [-1.0, -2.0, -3.0]
    assert out.storage_offset() == 2


def test_an_out_that_has_room_for_the_result_keeps_its_memory() -> None:
    out = gs.arange(6.0).reshape(2, 3)
    seen = out.T
    with pytest.warns(UserWarning, match="was resized"):
        gs.neg(gs.tensor([1.0, 2.0]), out=out)
    assert out.tolist() == [-1.0, -2.0]
    assert seen.tolist() == [[-1.0, 3.0], [-2.0, 4.0], [2.0, 5.0]]
