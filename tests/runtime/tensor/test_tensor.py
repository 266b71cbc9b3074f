"""Tensor: its attributes, what shares memory and versions, printing, and factories."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import gradscope as gs

# --- attributes -------------------------------------------------------------------------------------------------------

LAYOUTS = {
    "plain": lambda m: m.zeros(2, 3),
    "0-d": lambda m: m.zeros(()),
    "empty": lambda m: m.zeros(0, 3),
    "transposed": lambda m: m.zeros(2, 3).t(),
    "permuted": lambda m: m.zeros(2, 3, 4).permute(2, 0, 1),
    "expanded": lambda m: m.zeros(3, 1).expand(3, 4),
    "narrowed": lambda m: m.zeros(4, 5).narrow(1, 2, 2),
    "selected": lambda m: m.zeros(4, 5).select(1, 2),
    "strided": lambda m: m.zeros(6).as_strided((2, 2), (3, 1), 1),
    "of expanded": lambda m: m.zeros(4).narrow(0, 1, 1).expand(3).narrow(0, 1, 2),
    "unsqueezed": lambda m: m.zeros(2, 3).t().unsqueeze(1),
    "complex": lambda m: m.zeros(2, dtype=m.complex64),
    "int": lambda m: m.zeros(2, dtype=m.int16),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_shape_strides_and_offset_are_pytorchs(torch: Any, layout: str) -> None:
    ours, theirs = LAYOUTS[layout](gs), LAYOUTS[layout](torch)
    assert tuple(ours.shape) == tuple(theirs.shape)
    assert ours.stride() == theirs.stride()
    assert ours.storage_offset() == theirs.storage_offset()
    assert ours.is_contiguous() == theirs.is_contiguous()
    assert (ours.dim(), ours.ndim, ours.numel(), ours.nelement()) == (
        theirs.dim(),
        theirs.ndim,
        theirs.numel(),
        theirs.nelement(),
    )
    assert (ours.element_size(), ours.itemsize, ours.nbytes) == (theirs.element_size(), theirs.itemsize, theirs.nbytes)
    assert ours.untyped_storage().nbytes() == theirs.untyped_storage().nbytes()
    assert ours._is_view() == theirs._is_view()
    assert ours.is_floating_point() == theirs.is_floating_point()
    assert ours.is_complex() == theirs.is_complex()


def test_size_and_stride_of_one_dimension() -> None:
    x = gs.zeros(2, 3)
    assert (x.size(), x.size(0), x.size(-1)) == ((2, 3), 2, 3)
    assert (x.stride(0), x.stride(-1)) == (3, 1)
    assert x.shape.numel() == 6
    assert repr(x.shape) == "gradscope.Size([2, 3])"
    assert len(x) == 2


def test_views_share_the_storage_of_their_base() -> None:
    x = gs.arange(6.0)
    part = x.narrow(0, 2, 3)
    assert part.data_ptr() == x.data_ptr() + 2 * x.element_size()
    assert part.untyped_storage() == x.untyped_storage()
    assert x.expand(2, 6).untyped_storage().data_ptr() == x.data_ptr()
    assert x.is_set_to(x.view(6))
    assert not x.is_set_to(part)


def test_a_leaf_and_a_result_say_what_they_are() -> None:
    x = gs.ones(2, requires_grad=True)
    y = x * 2
    assert (x.is_leaf, x.requires_grad, x.grad_fn, x.output_nr) == (True, True, None, 0)
    assert (y.is_leaf, y.requires_grad, y.grad_fn.name(), y.output_nr) == (False, True, "MulBackward0", 0)
    assert [p.output_nr for p in x.unbind()] == [0, 1]
    assert gs.ones(2).is_leaf


# --- memory shared, versions shared or not ----------------------------------------------------------------------------


def test_detach_shares_memory_and_version_but_no_history() -> None:
    y = gs.ones(2, requires_grad=True) * 2
    free = y.detach()
    assert (free.requires_grad, free.grad_fn, free._is_view()) == (False, None, False)
    assert free.data_ptr() == y.data_ptr()
    free.add_(1)
    assert (y._version, free._version) == (1, 1)
    assert y.tolist() == [3.0, 3.0]


def test_data_shares_memory_but_no_version() -> None:
    x = gs.ones(2, requires_grad=True)
    x.data.add_(1)
    assert (x._version, x.tolist()) == (0, [2.0, 2.0])
    assert not x.data.requires_grad
    x.data = gs.zeros(3)
    assert (x.shape, x.requires_grad, x.is_leaf) == ((3,), True, True)
    with pytest.raises(TypeError, match="Variable data has to be a tensor, but got list"):
        x.data = [1.0]


def test_versions_count_writes_through_every_alias() -> None:
    x = gs.zeros(2, 3)
    view, free = x.t(), x.detach()
    x.add_(1)
    view.mul_(2)
    free.fill_(0)
    x.select(0, 0).zero_()
    assert x._version == view._version == free._version == 4
    assert x.clone()._version == 0


def test_a_failed_write_changes_nothing() -> None:
    x = gs.ones(2)
    for write in (
        lambda: x.add_(gs.ones(3)),
        lambda: x.add_(gs.ones(2, 2)),
        lambda: x.copy_(gs.ones(3)),
        lambda: x.mul_(1j),
    ):
        with pytest.raises(RuntimeError):
            write()
    assert (x.tolist(), x._version) == ([1.0, 1.0], 0)


def test_detach_in_place_makes_a_leaf() -> None:
    y = gs.ones(2, requires_grad=True) * 2
    assert y.detach_() is y
    assert (y.requires_grad, y.grad_fn, y.is_leaf) == (False, None, True)
    with pytest.raises(RuntimeError, match="Can't detach views in-place"):
        gs.ones(2, 2).t().detach_()


def test_requires_grad_of_a_result_cannot_be_switched_off() -> None:
    y = gs.ones(2, requires_grad=True) * 2
    with pytest.raises(RuntimeError, match="you can only change requires_grad flags of leaf variables"):
        y.requires_grad_(False)
    assert y.requires_grad_() is y
    x = gs.ones(2).requires_grad_()
    assert not x.requires_grad_(False).requires_grad


# --- printing ---------------------------------------------------------------------------------------------------------

PRINTED = {
    "floats": lambda m: m.tensor([1.0, 2.5, -3.25]),
    "whole floats": lambda m: m.tensor([1.0, 2.0, 30.0]),
    "small": lambda m: m.tensor([0.00001, 1.0]),
    "tiny": lambda m: m.tensor([1e-30, 2e-30]),
    "large": lambda m: m.tensor([1e9, 1.0]),
    "large whole": lambda m: m.tensor([1e9, 2e9]),
    "wide range": lambda m: m.tensor([0.1, 1000.5]),
    "wide whole range": lambda m: m.tensor([1.0, 100000.0]),
    "nan and inf": lambda m: m.tensor([float("nan"), float("inf"), -float("inf"), 1.5]),
    "nan and whole": lambda m: m.tensor([float("nan"), 1.0]),
    "only nan": lambda m: m.tensor([float("nan")]),
    "zeros": lambda m: m.zeros(3),
    "negative zero": lambda m: m.tensor([-0.0, 1.0]),
    "0-d": lambda m: m.tensor(3.14159),
    "0-d whole": lambda m: m.tensor(3.0),
    "0-d int": lambda m: m.tensor(3),
    "0-d bool": lambda m: m.tensor(True),
    "ints": lambda m: m.tensor([1, -20, 300]),
    "int16": lambda m: m.tensor([1, 2], dtype=m.int16),
    "bools": lambda m: m.tensor([True, False]),
    "double": lambda m: m.tensor([1.5], dtype=m.float64),
    "half": lambda m: m.tensor([1.5], dtype=m.float16),
    "matrix": lambda m: m.tensor([[1.0, 2.0], [3.0, 4.5]]),
    "cube": lambda m: m.arange(8.0).view(2, 2, 2),
    "4-d": lambda m: m.arange(4).view(1, 2, 1, 2),
    "empty": lambda m: m.tensor([]),
    "empty matrix": lambda m: m.zeros(0, 3),
    "empty int": lambda m: m.zeros(0, dtype=m.int64),
    "long": lambda m: m.arange(1001),
    "long matrix": lambda m: m.arange(2000.0).view(50, 40),
    "wide": lambda m: m.arange(40.0) + 0.5,
    "wide ints": lambda m: m.arange(100),
    "complex": lambda m: m.tensor([1 + 2j, -0.5j]),
    "complex 0-d": lambda m: m.tensor(1 + 2j),
    "leaf": lambda m: m.ones(2, requires_grad=True),
    "result": lambda m: m.ones(2, requires_grad=True) * 2,
    "result of double": lambda m: (m.ones(2, dtype=m.float64, requires_grad=True) * 2).sum(),
    "view": lambda m: m.ones(2, 2, requires_grad=True).t(),
    "written view": lambda m: (m.ones(2, 2, requires_grad=True) * 1).t().mul_(2),
    "long result": lambda m: m.arange(20.0).requires_grad_() * 1.5,
}


@pytest.mark.parametrize("value", PRINTED)
def test_repr_is_pytorchs(torch: Any, value: str) -> None:
    assert repr(PRINTED[value](gs)) == repr(PRINTED[value](torch)).replace("torch.", "gradscope.")


def test_printoptions_are_pytorchs(torch: Any) -> None:
    options = [
        {"precision": 2},
        {"sci_mode": True},
        {"sci_mode": False},
        {"threshold": 5, "edgeitems": 1},
        {"linewidth": 40},
        {"profile": "short"},
    ]
    try:
        for option in options:
            for module in (gs, torch):
                module.set_printoptions(profile="default")
                module.set_printoptions(**option)
            for value in ("floats", "wide", "matrix", "small"):
                expected = repr(PRINTED[value](torch)).replace("torch.", "gradscope.")
                assert repr(PRINTED[value](gs)) == expected, option
    finally:
        gs.set_printoptions(profile="default")
        torch.set_printoptions(profile="default")


# --- factories --------------------------------------------------------------------------------------------------------

FACTORIES = {
    "zeros": lambda m: m.zeros(2, 3),
    "ones of a tuple": lambda m: m.ones((2, 3)),
    "full float": lambda m: m.full((2,), 1.5),
    "full int": lambda m: m.full((2,), 3),
    "full bool": lambda m: m.full((2,), True),
    "arange": lambda m: m.arange(5),
    "arange float": lambda m: m.arange(0, 1, 0.25),
    "arange step": lambda m: m.arange(5, 0, -2),
    "linspace": lambda m: m.linspace(0, 1, 5),
    "logspace": lambda m: m.logspace(0, 2, 3),
    "eye": lambda m: m.eye(2, 3),
    "tensor of ints": lambda m: m.tensor([[1, 2], [3, 4]]),
    "tensor of mixed": lambda m: m.tensor([1, 2.5]),
    "tensor of bools": lambda m: m.tensor([True, False]),
    "tensor of complex": lambda m: m.tensor([1j, 2]),
    "tensor of arrays": lambda m: m.tensor(numpy.arange(3.0)),
    "scalar": lambda m: m.scalar_tensor(2),
    "zeros_like": lambda m: m.zeros_like(m.ones(2, dtype=m.int32)),
    "ones_like with dtype": lambda m: m.ones_like(m.zeros(2), dtype=m.float64),
    "full_like": lambda m: m.full_like(m.zeros(2), 7),
}


@pytest.mark.parametrize("factory", FACTORIES)
def test_factories_give_what_pytorchs_give(torch: Any, factory: str) -> None:
    ours, theirs = FACTORIES[factory](gs), FACTORIES[factory](torch)
    assert ours.dtype.name == str(theirs.dtype).removeprefix("torch.")
    assert ours.shape == tuple(theirs.shape)
    numpy.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-6)


def test_as_tensor_shares_and_tensor_copies() -> None:
    x = gs.ones(2)
    assert gs.as_tensor(x) is x
    array = numpy.ones(2)
    assert numpy.shares_memory(gs.as_tensor(array).numpy(), array)
    assert not numpy.shares_memory(gs.tensor(array).numpy(), array)
    assert gs.is_tensor(x)
    assert not gs.is_tensor(array)


def test_new_tensors_are_like_the_one_they_come_from() -> None:
    x = gs.ones(2, dtype=gs.float64)
    made = [x.new_zeros(2), x.new_ones((2,)), x.new_tensor([1, 2]), x.new_full((2,), 3), x.new_empty(2)]
    assert [t.dtype for t in made] == [gs.float64] * 5
    assert [t.tolist() for t in made[:4]] == [[0.0, 0.0], [1.0, 1.0], [1.0, 2.0], [3.0, 3.0]]
    assert x.new_ones(1, dtype=gs.int64, requires_grad=False).dtype is gs.int64


# --- the legacy constructor -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("data", [(), (2, 3), ([1, 2],), ([[1.5]],), (range(3),), (gs.Size([2, 3]),)], ids=repr)
def test_the_legacy_constructor_takes_sizes_and_sequences(torch: Any, data: Any) -> None:
    given = tuple(torch.Size(d) if isinstance(d, gs.Size) else d for d in data)
    mine, theirs = gs.Tensor(*data), torch.Tensor(*given)
    assert (mine.dtype, mine.shape) == (gs.float32, tuple(theirs.shape))
    if data and isinstance(data[0], (list, range)):
        assert mine.tolist() == theirs.tolist()


@pytest.mark.parametrize(
    ("data", "error"),
    [((3.5,), TypeError), ((None,), TypeError), (("a",), TypeError), ((2, 2.5), TypeError), ((-1,), RuntimeError)],
)
def test_the_legacy_constructor_refuses_the_rest(torch: Any, data: Any, error: Any) -> None:
    for make in (gs.Tensor, torch.Tensor):
        with pytest.raises(error):
            make(*data)


def test_the_legacy_constructor_views_a_tensor() -> None:
    x = gs.ones(2, requires_grad=True)
    y = gs.Tensor(x)
    assert y.grad_fn.name() == "AliasBackward0"
    z = x.detach()
    gs.Tensor(z).add_(1)
    assert (z.tolist(), z._version) == ([2.0, 2.0], 1)


def test_an_inference_tensor_passes_the_mark_on_by_data() -> None:
    with gs.inference_mode():
        x = gs.ones(2)
    assert x.data.is_inference()
    x.data = gs.zeros(2)
    assert not x.is_inference()


# --- conversions ------------------------------------------------------------------------------------------------------


def test_to_takes_what_pytorchs_takes() -> None:
    x = gs.ones(1, 2, 2, 2)
    assert x.to(float).dtype is gs.float64
    assert x.to(complex).dtype is gs.complex128
    assert x.to(gs.float32, False, True) is not x
    assert x.to(gs.float32, True) is x
    assert x.to(memory_format=gs.channels_last).stride() == (8, 1, 4, 2)
    assert x.cpu(memory_format=gs.preserve_format) is x
    with pytest.raises(TypeError):
        x.to(dtyp=gs.float64)


@pytest.mark.parametrize("kind", [gs.float32, gs.int64, gs.bool, gs.complex64])
def test_a_type_name_converts_back(kind: Any) -> None:
    name = gs.ones(1).to(kind).type()
    assert gs.ones(2).type(name).dtype is kind
    assert gs.ones(2).type(name.replace("gradscope", "torch")).dtype is kind
    with pytest.raises(ValueError, match="invalid type: 'nope'"):
        gs.ones(2).type("nope")
