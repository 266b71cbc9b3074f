"""Tensors that are read conjugated or negated: values, sharing, versions, history and refusals are PyTorch's."""

from __future__ import annotations

import copy
import io
import pickle
import warnings
from collections.abc import Callable
from typing import Any

import numpy
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import gradscope as gs
from gradscope.runtime.tensor.tensor import Tensor
from tests.runtime.ops.operator_cases import host

VALUES = [[1 + 1j, 2 - 3j], [0.5j, 4 - 0.5j]]


def matrix(module: Any, **options: Any) -> Any:
    return module.tensor(VALUES, dtype=module.complex128, **options)


def history(tensor: Any) -> list[str]:
    """Return the names of the nodes that the first edges lead along."""
    names, node = [], tensor.grad_fn
    while node is not None:
        names.append(node.name().removeprefix("torch::autograd::"))
        node = node.next_functions[0][0] if node.next_functions else None
    return names


def facts(tensor: Any, base: Any) -> dict[str, Any]:
    """Return what a program can ask of a tensor, and how it lies to its base."""
    return {
        "values": host(tensor).tolist(),
        "conj": tensor.is_conj(),
        "neg": tensor.is_neg(),
        "view": tensor._is_view(),
        "of base": tensor._base is base,
        "version": tensor._version,
        "stride": [
            step for step, size in zip(tensor.stride(), tensor.shape, strict=True) if size > 1 and tensor.numel()
        ],
        "contiguous": tensor.is_contiguous(),
        "offset": tensor.storage_offset() if tensor.numel() else 0,
        "shares": tensor.untyped_storage().data_ptr() == base.untyped_storage().data_ptr(),
        "dtype": str(tensor.dtype).partition(".")[2],
        "requires_grad": tensor.requires_grad,
        "leaf": tensor.is_leaf,
        "history": history(tensor),
    }


def close(found: Any, expected: Any) -> bool:
    """Whether nested lists hold the same numbers, within rounding."""
    if isinstance(expected, list):
        return isinstance(found, list) and len(found) == len(expected) and all(map(close, found, expected))
    if isinstance(expected, (float, complex)):
        return bool(numpy.isclose(found, expected, rtol=1e-9, atol=1e-12, equal_nan=True))
    return bool(found == expected)


def quiet(run: Callable[[], Any]) -> Any:
    """Return what a function returns that warns."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return run()


# --- one step ---------------------------------------------------------------------------------------------------------

MADE = {
    "conj": lambda m, x: x.conj(),
    "function": lambda m, x: m.conj(x),
    "mH": lambda m, x: x.mH,
    "H": lambda m, x: x.H,
    "adjoint": lambda m, x: x.adjoint(),
    "adjoint of a number": lambda m, x: quiet(lambda: x[0, 0].adjoint()),
    "H of a number": lambda m, x: quiet(lambda: x[0, 0].H),
    "real": lambda m, x: x.real,
    "imag": lambda m, x: x.imag,
    "real of a conjugate": lambda m, x: x.conj().real,
    "imag of a conjugate": lambda m, x: x.conj().imag,
    "imag of a negative": lambda m, x: x._neg_view().imag,
    "imag of a negative conjugate": lambda m, x: x.conj()._neg_view().imag,
    "twice": lambda m, x: x.conj().conj(),
    "mH twice": lambda m, x: x.mH.mH,
    "negative": lambda m, x: x._neg_view(),
    "both": lambda m, x: x.conj()._neg_view(),
    "conjugate of a negative": lambda m, x: x._neg_view().conj(),
    "pairs of a negative": lambda m, x: m.view_as_real(x._neg_view()),
    "negative pairs": lambda m, x: m.view_as_complex(m.view_as_real(x)._neg_view()),
    "transpose": lambda m, x: x.conj().t(),
    "transposed first": lambda m, x: x.t().conj(),
    "element": lambda m, x: x.conj()[0],
    "negative element": lambda m, x: x.conj().imag[0],
    "mask": lambda m, x: x.conj()[x.real > 0],
    "index": lambda m, x: x.conj()[m.tensor([0])],
    "reshape": lambda m, x: x.conj().reshape(4),
    "reshape copies": lambda m, x: x.conj().t().reshape(4),
    "flatten": lambda m, x: x.conj().flatten(),
    "view": lambda m, x: x.conj().view(4),
    "expand": lambda m, x: x.conj().expand(3, 2, 2),
    "clone of an expanded one": lambda m, x: x.conj()[0].expand(3, 2).clone(),
    "unsqueeze": lambda m, x: x.conj().unsqueeze(0),
    "unfold": lambda m, x: x.conj().unfold(1, 1, 1),
    "diagonal": lambda m, x: x.conj().diagonal(),
    "as_strided": lambda m, x: x.conj().as_strided((2,), (1,), 1),
    "unbind": lambda m, x: x.conj().unbind()[1],
    "chunk": lambda m, x: x.conj().chunk(2)[1],
    "clone": lambda m, x: x.conj().clone(),
    "clone keeps the layout": lambda m, x: x.mH.clone(),
    "contiguous": lambda m, x: x.conj().contiguous(),
    "contiguous copies": lambda m, x: x.mH.contiguous(),
    "detach": lambda m, x: x.conj().detach(),
    "data": lambda m, x: x.conj().data,
    "to": lambda m, x: x.conj().to(m.complex64),
    "to the same": lambda m, x: x.conj().to(m.complex128),
    "to a copy": lambda m, x: x.conj().to(m.complex128, copy=True),
    "cpu": lambda m, x: x.conj().cpu(),
    "resolve_conj": lambda m, x: x.conj().resolve_conj(),
    "resolve_conj of none": lambda m, x: x.resolve_conj(),
    "resolve_neg": lambda m, x: x.conj().imag.resolve_neg(),
    "resolve_neg of a conjugate": lambda m, x: x.conj().resolve_neg(),
    "conj_physical": lambda m, x: x.conj_physical(),
    "conj_physical of a conjugate": lambda m, x: m.conj_physical(x.conj()),
    "product": lambda m, x: x.conj() * 1,
    "matrix product": lambda m, x: x.mH @ x,
    "einsum": lambda m, x: m.einsum("ij,jk", x.conj(), x).detach(),
    "neg": lambda m, x: -x.conj(),
    "positive": lambda m, x: x.conj().positive(),
    "abs": lambda m, x: x.conj().abs(),
    "roll": lambda m, x: x.conj().roll(1),
    "stack": lambda m, x: m.stack([x.conj(), x]),
    "cat": lambda m, x: m.cat([x.conj(), x]),
    "where": lambda m, x: m.where(x.real > 0, x.conj(), x),
    "broadcast_to": lambda m, x: m.broadcast_to(x.conj(), (2, 2, 2)),
    "meshgrid": lambda m, x: m.meshgrid(x.conj()[0], x[1], indexing="ij")[0],
    "zeros_like": lambda m, x: m.zeros_like(x.conj()),
    "new_ones": lambda m, x: x.conj().new_ones(2),
    "as_tensor": lambda m, x: m.as_tensor(x.conj()),
    "tensor": lambda m, x: m.tensor(x.detach().conj().tolist(), dtype=x.dtype),
    "float of the imaginary part": lambda m, x: x.conj().imag.float(),
    "double of the imaginary part": lambda m, x: x.conj().imag.double(),
    "complex of a real one": lambda m, x: x.conj().imag.to(m.complex128),
    "conjugate of integers": lambda m, x: m.arange(3).conj(),
    "negative of integers": lambda m, x: m.arange(3)._neg_view(),
    "leaf": lambda m, x: x.detach().conj().requires_grad_().real,
    "Parameter": lambda m, x: m.nn.Parameter(x.detach().conj()),
    "deepcopy": lambda m, x: copy.deepcopy(x.detach().conj()),
    "pickle": lambda m, x: pickle.loads(pickle.dumps(x.detach().conj())),
}


@pytest.mark.torch
@pytest.mark.parametrize("name", MADE)
def test_what_is_made_of_conjugates(name: str, torch: Any) -> None:
    found, expected = (facts(MADE[name](m, x), x) for m in (gs, torch) for x in [matrix(m, requires_grad=True)])
    if name.startswith("pickle"):  # PyTorch counts the version that its loading writes
        found["version"] = expected["version"]
    assert close(list(found.values()), list(expected.values())), f"{found}\n{expected}"


# --- gradients --------------------------------------------------------------------------------------------------------


def seed_for(module: Any, tensor: Any) -> Any:
    """Return a gradient of the shape and dtype of `tensor`: different numbers in every place."""
    values = numpy.arange(1, tensor.numel() + 1).reshape(tuple(tensor.shape))
    values = values + 0.25j * values if tensor.is_complex() else values
    return module.from_numpy(numpy.asarray(values)).to(tensor.dtype)


@pytest.mark.torch
@pytest.mark.parametrize("name", [name for name in MADE if "pickle" not in name])
def test_gradients_of_what_is_made_of_conjugates(name: str, torch: Any) -> None:
    """First and second derivatives."""
    results = []
    for module in (gs, torch):
        x = matrix(module, requires_grad=True)
        made = MADE[name](module, x * x)
        if made.grad_fn is None or made.is_leaf:
            results.append(None)
            continue
        (first,) = module.autograd.grad(made, x, seed_for(module, made), create_graph=True, allow_unused=True)
        if first is None or first.grad_fn is None:
            results.append(None if first is None else host(first).tolist())
            continue
        (second,) = module.autograd.grad(first, x, seed_for(module, first), allow_unused=True)
        results.append([host(first).tolist(), None if second is None else host(second).tolist()])
    assert close(*results)


# --- writes -----------------------------------------------------------------------------------------------------------

WRITES = {
    "mul_": lambda m, y: y.mul_(2j),
    "mul_ by itself": lambda m, y: y.mul_(y),
    "add_ of its base": lambda m, y: y.add_(y._base) if y._base is not None else y,
    "fill_": lambda m, y: y.fill_(2),
    "fill_ with a tensor": lambda m, y: y.fill_(m.tensor(3j, dtype=y.dtype)) if y.is_complex() else y,
    "zero_": lambda m, y: y.zero_(),
    "copy_": lambda m, y: y.copy_(m.ones(2)),
    "exp_": lambda m, y: y.exp_(),
    "neg_": lambda m, y: y.neg_(),
    "conj_physical_": lambda m, y: y.conj_physical_(),
    "sqrt_": lambda m, y: y.sqrt_(),
    "masked_fill_": lambda m, y: y.masked_fill_(y.real > 0, 5),
    "index_add_": lambda m, y: y.index_add_(0, m.tensor([0, 1]), y.clone()),
    "setitem": lambda m, y: y.__setitem__(0, 7),
    "setitem of a tensor": lambda m, y: y.__setitem__(0, m.ones((), dtype=y.dtype)),
    "setitem mask": lambda m, y: y.__setitem__(y.real > 0, 7),
    "index_put_": lambda m, y: y.index_put_((m.tensor([0]),), m.tensor(5, dtype=y.dtype)),
    "cumsum_": lambda m, y: y.cumsum_(0),
    "copy_ of its base": lambda m, y: y.copy_(y._base) if y._base is not None else y,
    "t_": lambda m, y: y.t_(),
    "unsqueeze_": lambda m, y: y.unsqueeze_(0),
    "real of it": lambda m, y: y.real.mul_(3),
    "imag of it": lambda m, y: y.imag.mul_(3) if y.is_complex() else y,
    "conj of it": lambda m, y: y.conj().mul_(3),
    "a view of it": lambda m, y: y.view_as(y).mul_(3),
    "real =": lambda m, y: setattr(y, "real", m.full((2,), 8.0, dtype=m.float64)),
    "imag =": lambda m, y: setattr(y, "imag", 8.0) if y.is_complex() else y,
    "imag = a tensor": lambda m, y: setattr(y, "imag", m.full((2,), 8.0)) if y.is_complex() else y,
    "addcmul_": lambda m, y: y.addcmul_(y, y),
    "masked_scatter_": lambda m, y: y.masked_scatter_(y.real > 0, y.clone()),
}
VIEWS = {
    "conj": lambda m, x: x.conj(),
    "mH": lambda m, x: x.mH,
    "imag": lambda m, x: x.imag,
    "imag of a conjugate": lambda m, x: x.conj().imag,
    "row of a conjugate": lambda m, x: x.conj()[1],
    "conjugate of a row": lambda m, x: x[1].conj(),
    "conjugate of a transposed": lambda m, x: x.t().conj(),
    "both": lambda m, x: x.conj()._neg_view(),
    "pairs of a negative": lambda m, x: m.view_as_real(x._neg_view()),
    "of a conjugate": lambda m, x: x.conj().real,
}


def outcome(module: Any, run: Callable[[Any], Any]) -> Any:
    """Return what a function returns, or the class of what it raises."""
    try:
        return quiet(lambda: run(module))
    except Exception as error:
        return next(k for k in (IndexError, NotImplementedError, RuntimeError, TypeError) if isinstance(error, k))


@pytest.mark.torch
@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("recorded", [False, True])
def test_writes_through_conjugates(view: str, write: str, recorded: bool, torch: Any) -> None:
    def run(module: Any) -> Any:
        x = matrix(module, requires_grad=recorded)
        base = x * 1 if recorded else x
        other = VIEWS[view](module, base)
        target = VIEWS[view](module, base)
        WRITES[write](module, target)
        found = [list(facts(t, base).values()) for t in (base, target, other)]
        if recorded:
            for tensor in (base, target, other):
                (first,) = module.autograd.grad(
                    tensor, x, seed_for(module, tensor), create_graph=True, retain_graph=True
                )
                found.append(host(first).tolist())
                if first.requires_grad:
                    (second,) = module.autograd.grad(
                        first, x, seed_for(module, first), retain_graph=True, allow_unused=True
                    )
                    found.append(None if second is None else host(second).tolist())
        return found

    found, expected = outcome(gs, run), outcome(torch, run)
    assert close(found, expected), f"{found}\n{expected}"


@pytest.mark.torch
def test_history_of_stale_views_is_made_again_by_the_same_steps(torch: Any) -> None:
    makers = [
        *VIEWS.values(),
        lambda m, x: x[0].conj()[0].conj(),
        lambda m, x: m.view_as_real(x),
        lambda m, x: m.view_as_real(x)[0],
        lambda m, x: x[0].imag,
        lambda m, x: x.imag._neg_view(),
    ]
    for make in makers:
        found = []
        for module in (gs, torch):
            x = matrix(module, requires_grad=True)
            base = x * 1
            view = make(module, base)
            base.mul_(2j)
            found.append(history(view))
        assert found[0] == found[1]


def test_a_conjugate_that_gets_another_shape_in_place_follows_its_base() -> None:
    """PyTorch makes the history of such a view again in the shape from before, and refuses its gradient."""
    for relay in (lambda t: t.t_(), lambda t: t.unsqueeze_(0), lambda t: t.transpose_(0, 1).unsqueeze_(1)):
        x = matrix(gs, requires_grad=True)
        base = x * 1
        view = relay(base.conj())
        base.mul_(2j)
        expected = relay((x * 2j).conj_physical())
        found, wanted = (gs.autograd.grad(t, x, seed_for(gs, t))[0] for t in (view, expected))
        assert host(view).tolist() == host(expected).tolist()
        assert host(found).tolist() == host(wanted).tolist()


@pytest.mark.torch
def test_a_saved_conjugate_that_is_written_through_its_base_is_found(torch: Any) -> None:
    for module in (gs, torch):
        x = matrix(module)
        w = matrix(module, requires_grad=True)
        product = w * x.conj()
        x.mul_(2)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            product.sum().abs().backward()


@pytest.mark.torch
def test_out_of_conjugates(torch: Any) -> None:
    """``out=`` writes through, also where it resizes."""
    found = []
    for module in (gs, torch):
        x, y = matrix(module), matrix(module)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module.mul(x, 1j, out=y.conj())
            module.mm(x.mH, x, out=(z := matrix(module).conj()))
            module.mul(module.ones(3), 1j, out=(r := matrix(module).conj()))
        found.append([list(facts(t, x).values()) for t in (y, z, r)])
    assert found[0] == found[1]


# --- replaced memory --------------------------------------------------------------------------------------------------

REPLACED = {
    "data = a conjugate": lambda m, x, y: setattr(x, "data", y),
    "data of a conjugate =": lambda m, x, y: setattr(y, "data", x),
    "set_ to a conjugate": lambda m, x, y: x.set_(y),
    "set_ of a conjugate": lambda m, x, y: y.set_(x),
    "resize_": lambda m, x, y: y.resize_(2),
    "resize_ to the same size": lambda m, x, y: y.resize_(4),
    "resize_as_": lambda m, x, y: y.resize_as_(m.ones(3)),
    "requires_grad_": lambda m, x, y: y.requires_grad_(),
}


@pytest.mark.torch
@pytest.mark.parametrize("name", REPLACED)
def test_replaced_memory(name: str, torch: Any) -> None:
    found = []
    for module in (gs, torch):
        x, y = matrix(module), matrix(module).conj()
        quiet(lambda module=module, x=x, y=y: REPLACED[name](module, x, y))
        found.append([list(facts(t, x).values()) for t in (x, y)])
    assert found[0] == found[1]


# --- what leaves the tensors ------------------------------------------------------------------------------------------

ASKED = {
    "item": lambda m, y: y[0, 0].item(),
    "complex": lambda m, y: complex(y[0, 0]),
    "float": lambda m, y: float(y.imag[0, 0]),
    "tolist": lambda m, y: y.tolist(),
    "repr": lambda m, y: repr(y.imag).replace("gradscope", "torch"),
    "repr of a conjugate": lambda m, y: repr(y).replace("gradscope", "torch"),
    "format": lambda m, y: f"{y[0, 0]} {y.imag[0, 0]}",
    "contains": lambda m, y: (1 - 1j) in y,
    "equal": lambda m, y: (m.equal(y, y.clone()), m.equal(y, y._base), m.allclose(y, y.resolve_conj())),
    "iteration": lambda m, y: [(t.is_conj(), t.tolist()) for t in y],
    "is_set_to": lambda m, y: y.is_set_to(y._base),
    "numpy": lambda m, y: y.numpy(),
    "numpy of a negative": lambda m, y: y.imag.numpy(),
    "numpy of a leaf": lambda m, y: y.requires_grad_().numpy(),
    "numpy, forced": lambda m, y: y.numpy(force=True).tolist(),
    "forced numpy can be written": lambda m, y: y.numpy(force=True).flags.writeable,
    "asarray": lambda m, y: numpy.asarray(y),
    "dlpack": lambda m, y: y.__dlpack__(),
    "dlpack of a leaf": lambda m, y: y.requires_grad_().__dlpack__(),
    "view of a dtype": lambda m, y: y.view(m.float64),
    "view of a dtype of a negative": lambda m, y: y.imag.view(m.int64),
    "view_as_real": lambda m, y: m.view_as_real(y),
    "detach_": lambda m, y: y.detach_(),
    "imag of a real one": lambda m, y: y.real.imag,
    "imag = of a real one": lambda m, y: setattr(y.real, "imag", 1),
    "imag = a complex number": lambda m, y: setattr(y, "imag", 1j),
    "H of three dimensions": lambda m, y: m.ones(2, 2, 2).H,
    "H of one": lambda m, y: m.ones(2).H,
    "mH of one": lambda m, y: m.ones(2).mH,
    "adjoint of one": lambda m, y: m.ones(2).adjoint(),
    "abs_": lambda m, y: y.abs_(),
    "same objects": lambda m, y: [
        (a := m.arange(3)).conj() is a, a.conj_physical() is a, a.conj_physical_() is a, a.resolve_conj() is a,
        y.resolve_neg() is y, y.imag.resolve_conj().is_neg(), a._version,
    ],
}  # fmt: skip


@pytest.mark.torch
@pytest.mark.parametrize("name", ASKED)
def test_what_is_asked_of_a_conjugate(name: str, torch: Any) -> None:
    found, expected = [], []
    for module, results in ((gs, found), (torch, expected)):
        try:
            results.append(ASKED[name](module, matrix(module).conj()))
        except Exception as error:
            results += [type(error).__mro__[0:1] if module is torch else type(error).__mro__, str(error)]
    if isinstance(expected[-1], str) and len(expected) == 2:
        assert expected[0][0] in found[0]
        ours, theirs = (text.partition("\n")[0].replace("gradscope.", "torch.") for text in (found[1], expected[1]))
        assert ours.startswith(theirs[:34]), (ours, theirs)
    else:
        assert found == expected


@pytest.mark.torch
def test_files_keep_the_bits(torch: Any) -> None:
    """A file of either is read by the other: what shares memory shares it again, and is read as it was."""
    for write, read in ((gs, gs), (gs, torch), (torch, gs)):
        x = matrix(write)
        file = io.BytesIO()
        write.save([x, x.conj(), write.nn.Parameter(x.mH)], file)
        file.seek(0)
        x, y, z = read.load(file)
        assert (x.is_conj(), y.is_conj(), z.is_conj()) == (False, True, True)
        assert host(y).tolist() == host(x).conj().tolist()
        assert host(z).tolist() == host(x).conj().T.tolist()
        assert x.data_ptr() == y.data_ptr() == z.data_ptr()


def test_a_file_with_unknown_metadata_is_refused() -> None:
    from gradscope.serialization.unpickler import _bits

    for metadata in ({"conj": True}, {"zero": True}, ["conj"]):
        with pytest.raises(pickle.UnpicklingError, match="metadata"):
            _bits(metadata, False)


# --- forgotten? -------------------------------------------------------------------------------------------------------


def test_what_is_read_of_a_conjugate_is_read_only() -> None:
    """Who would write the elements instead of the memory is refused by NumPy."""
    y = matrix(gs).conj()
    assert y._array.tolist() == host(y).tolist()
    with pytest.raises(ValueError, match="read-only"):
        y._array[...] = 0
    assert y._memory.flags.writeable


def test_classes() -> None:
    """A conjugate belongs to a subclass of its class that passes for it."""
    y = matrix(gs).conj()
    assert isinstance(y, Tensor)
    assert type(y).__qualname__ == "Tensor"
    assert type(y) is type(matrix(gs).mH)
    assert type(y.conj()) is Tensor
    parameter = gs.nn.Parameter(y)
    assert isinstance(parameter, gs.nn.Parameter)
    assert type(parameter.data) is type(y)
    assert type(parameter.detach().conj()) is Tensor


class Labelled(Tensor):
    """A subclass that takes part in calls."""


def test_a_subclass_stays_one_in_conjugates_and_what_is_made_of_them() -> None:
    x = matrix(gs).as_subclass(Labelled)
    y = x.conj()
    assert isinstance(y, Labelled)
    assert (y.is_conj(), host(y).tolist()) == (True, host(x).conj().tolist())
    for made in (y * 2, y.clone(), y.resolve_conj(), y.conj(), y + x):
        assert type(made) is Labelled
    part = y[0]
    assert (isinstance(part, Labelled), part.is_conj()) == (True, True)
    assert type(matrix(gs).conj() * 2) is Tensor
    y.mul_(1j)
    assert host(x).tolist() == (numpy.array(VALUES) * -1j).tolist()


def test_what_is_asked_of_a_saved_conjugate_shares_its_memory() -> None:
    x = matrix(gs)
    node = (matrix(gs, requires_grad=True) * x.conj()).grad_fn
    (saved,) = node.saved_tensors_info()
    assert saved.data.is_conj()
    assert saved.data.data_ptr() == x.data_ptr()
    assert host(saved.data).tolist() == host(x).conj().tolist()


def test_gradients_are_added_to_a_conjugate() -> None:
    """A gradient that the user has set is added to in place, whatever it is read by."""
    x = matrix(gs, requires_grad=True)
    base = gs.zeros(2, 2, dtype=gs.complex128)
    x.grad = base.conj()
    (x * 2j).sum().abs().backward()
    once = host(x.grad)
    (x * 2j).sum().abs().backward()
    assert host(x.grad).tolist() == (2 * once).tolist()
    assert host(base).tolist() == (2 * once).conj().tolist()
    assert base._version == 2


def test_a_leaf_that_only_the_graph_holds_is_read_as_it_was() -> None:
    x = matrix(gs).conj().requires_grad_()
    y = x * 1
    values = host(x).tolist()
    del x
    leaf = y.grad_fn.next_functions[0][0].variable
    assert leaf.is_conj()
    assert host(leaf).tolist() == values
    assert leaf.is_leaf


@pytest.mark.parametrize("value", [True, 3, numpy.float64(2.5)])
def test_numbers_are_written_into_a_negative(value: Any) -> None:
    x = matrix(gs)
    x.conj().imag.fill_(value)
    assert host(x).imag.tolist() == numpy.full((2, 2), -float(value)).tolist()


def test_optimizers_refuse_a_conjugate() -> None:
    with pytest.raises(ValueError, match="conjugate"):
        gs.optim.SGD([gs.nn.Parameter(matrix(gs).conj())], lr=0.1)


def test_gradients_of_conjugates_are_those_of_finite_differences() -> None:
    x = (matrix(gs) + 0.25).conj().requires_grad_()
    y = gs.rand(2, dtype=gs.float64)._neg_view().requires_grad_()
    values = host(x).tolist()
    assert gs.autograd.gradcheck(lambda x, y: (x.conj().imag * x.exp()).sum(0) * y.sin(), (x, y))
    assert gs.autograd.gradcheck(lambda x: x.mH @ x, x, fast_mode=True)
    assert host(x).tolist() == values


def test_other_devices(other_device: str) -> None:
    x = matrix(gs).to(other_device).requires_grad_()
    base = x * 1
    y = base.mH
    y[0] *= 2j
    assert y.is_conj()
    assert y.device.type == other_device
    assert host(base).tolist() == host(y).conj().T.tolist()
    (y.imag * y.real).sum().backward()
    z = matrix(gs).requires_grad_()
    w = z * 1
    v = w.mH
    v[0] *= 2j
    (v.imag * v.real).sum().backward()
    assert host(x.grad).tolist() == host(z.grad).tolist()


def test_forward_mode_sees_through_conjugates() -> None:
    """The tangent of a conjugate is the conjugate of the tangent, also after a write."""
    with gs.autograd.forward_ad.dual_level():
        tangent = gs.tensor([[1j, 2.0], [3.0, 4 - 1j]], dtype=gs.complex128)
        x = gs.autograd.forward_ad.make_dual(matrix(gs), tangent)
        y = x.conj()
        assert host(gs.autograd.forward_ad.unpack_dual(y).tangent).tolist() == host(tangent).conj().tolist()
        z = x * 1
        z.conj().mul_(2j)
        assert host(gs.autograd.forward_ad.unpack_dual(z).tangent).tolist() == (host(tangent) * -2j).tolist()
        part = gs.autograd.forward_ad.unpack_dual(x.conj().imag).tangent
        assert host(part).tolist() == (-host(tangent).imag).tolist()


# --- sequences --------------------------------------------------------------------------------------------------------

# What keeps the numbers small, as the two differ in how large ones are rounded.
STEPS: dict[str, Callable[[Any, Any], Any]] = {
    "conj": lambda m, t: t.conj(),
    "imag": lambda m, t: t.imag if t.is_complex() else t,
    "real": lambda m, t: t.real,
    "neg": lambda m, t: t._neg_view(),
    "transpose": lambda m, t: t.transpose(0, -1),
    "row": lambda m, t: t[0],
    "columns": lambda m, t: t[..., 1:],
    "flat": lambda m, t: t.reshape(-1),
    "unsqueeze": lambda m, t: t.unsqueeze(0),
    "clone": lambda m, t: t.clone(),
    "detach": lambda m, t: t.detach(),
    "resolve": lambda m, t: t.resolve_conj(),
    "pairs": lambda m, t: m.view_as_real(t),
    "numbers": lambda m, t: m.view_as_complex(t),
    "square": lambda m, t: t * t * 0.25,
    "product": lambda m, t: t * t.conj() * 0.25,
    "bounded": lambda m, t: t / (1 + t.abs()),
    "mul_": lambda m, t: t.mul_(t.conj() * 0.5 if t.is_complex() else 0.5),
    "exp_": lambda m, t: t.exp_() if bool((t.detach().abs() < 1.9).all()) else t.mul_(0.3),
    "add_": lambda m, t: t.add_(0.75),
    "fill": lambda m, t: t.__setitem__(..., 0.5),
    "first": lambda m, t: t.__setitem__(0, 0.25),
}


@st.composite
def programs(draw: st.DrawFn) -> list[tuple[str, int]]:
    """Steps, each with the number of the tensor (counted back) that it is taken from."""
    step = st.tuples(st.sampled_from(sorted(STEPS)), st.integers(0, 3))
    return draw(st.lists(step, min_size=2, max_size=9))


def run_program(module: Any, program: list[tuple[str, int]]) -> Any:
    x = module.tensor([[0.5 + 1j, 1 - 0.25j], [0.75j, 0.5]], dtype=module.complex128, requires_grad=True)
    base = x * 1
    tensors = [base]
    told: list[Any] = []
    for name, back in program:
        source = tensors[max(len(tensors) - 1 - back, 0)]

        def run(m: Any, name: str = name, source: Any = source) -> Any:
            return STEPS[name](m, source)

        result = outcome(module, run)
        if hasattr(result, "is_conj"):
            if result is not source:
                tensors.append(result)
            told.append("ok")
        else:
            told.append(result)
    for tensor in tensors:
        told.append(outcome(module, lambda m, tensor=tensor: list(facts(tensor, base).values())))

        def differentiated(m: Any, tensor: Any = tensor) -> Any:
            seed = seed_for(m, tensor)
            (first,) = m.autograd.grad(tensor, x, seed, create_graph=True, retain_graph=True, allow_unused=True)
            if first is None or not first.requires_grad:
                return None if first is None else host(first).tolist()
            (second,) = m.autograd.grad(first, x, seed_for(m, first), retain_graph=True, allow_unused=True)
            return [host(first).tolist(), None if second is None else host(second).tolist()]

        told.append(outcome(module, differentiated))
    return told


@pytest.mark.torch
@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(program=programs())
def test_random_programs_agree(torch: Any, program: list[tuple[str, int]]) -> None:
    """Views, writes and derivatives in any order: values, memory, versions, history and refusals are PyTorch's."""
    found, expected = run_program(gs, program), run_program(torch, program)
    for a, b in zip(found, expected, strict=True):
        assert close(a, b), f"{program}\n{a}\n{b}"
