"""What a tensor becomes elsewhere: NumPy arrays, numbers, copies, pickles; and what it refuses."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy
import pytest

import gradscope as gs

# --- NumPy, DLPack ----------------------------------------------------------------------------------------------------


def test_numpy_shares_memory_both_ways() -> None:
    array = numpy.arange(3.0)
    tensor = gs.from_numpy(array)
    array[0] = 5.0
    tensor.select(0, 1).fill_(7.0)
    assert tensor.tolist() == array.tolist() == [5.0, 7.0, 2.0]
    assert numpy.shares_memory(tensor.numpy(), array)
    assert numpy.shares_memory(numpy.asarray(tensor), array)
    assert not numpy.shares_memory(gs.tensor(array).numpy(), array)
    assert numpy.array(tensor, dtype=numpy.float32).dtype == numpy.float32


@pytest.mark.filterwarnings("ignore:Setting the (shape|dtype):DeprecationWarning")
@pytest.mark.parametrize("share", [gs.from_numpy, gs.as_tensor, gs.asarray, gs.from_dlpack])
def test_shape_dtype_and_flags_of_a_shared_array_are_its_holders_own(share: Any) -> None:
    array = numpy.arange(4.0)
    tensor = share(array)
    for holder in (array, tensor.numpy(), tensor.numpy(force=True)):
        holder.shape = (2, 2)
        holder.dtype = numpy.int64
        holder.flags.writeable = False
    tensor += 1
    assert tensor.shape == (4,)
    assert tensor.dtype is gs.float64
    assert tensor.tolist() == [1.0, 2.0, 3.0, 4.0]


def test_from_numpy_shares_the_memory_of_a_memmap(tmp_path: Path) -> None:
    mapped = numpy.memmap(tmp_path / "values", dtype=numpy.float32, mode="w+", shape=(3,))
    tensor = gs.from_numpy(mapped)
    tensor.fill_(2.0)
    assert type(tensor.numpy()) is numpy.ndarray
    assert mapped.tolist() == [2.0, 2.0, 2.0]
    assert (tensor * tensor).tolist() == [4.0, 4.0, 4.0]


def test_numpy_of_a_tensor_that_requires_grad_is_refused() -> None:
    x = gs.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match=r"Can't call numpy\(\) on Tensor that requires grad. Use tensor.detach\(\)"):
        x.numpy()
    assert x.detach().numpy().tolist() == x.numpy(force=True).tolist() == [1.0, 1.0]


def test_from_numpy_refuses_what_it_cannot_share() -> None:
    with pytest.raises(TypeError, match=r"expected np.ndarray \(got list\)"):
        gs.from_numpy([1.0])
    with pytest.raises(ValueError, match="At least one stride in the given numpy array is negative"):
        gs.from_numpy(numpy.arange(3.0)[::-1])
    with pytest.raises(TypeError, match=r"can't convert np.ndarray of type"):
        gs.from_numpy(numpy.array(["a"]))


def test_dlpack_shares_memory_with_numpy_and_pytorch(torch: Any) -> None:
    x = gs.arange(3.0)
    array = numpy.from_dlpack(x)
    there = torch.from_dlpack(x)
    back = gs.from_dlpack(torch.arange(4.0))
    x.add_(1)
    assert array.tolist() == there.tolist() == [1.0, 2.0, 3.0]
    assert back.tolist() == [0.0, 1.0, 2.0, 3.0]
    theirs = torch.zeros(2)
    ours = gs.from_dlpack(theirs)
    theirs.add_(2)
    assert ours.tolist() == [2.0, 2.0]


def test_dlpack_refuses_tensors_that_require_grad() -> None:
    with pytest.raises(BufferError, match=r"Can't export tensors that require gradient, use tensor.detach"):
        numpy.from_dlpack(gs.ones(2, requires_grad=True))


# --- Python's protocols -----------------------------------------------------------------------------------------------


def test_one_element_converts_to_python_numbers() -> None:
    assert gs.tensor([[2.5]]).item() == 2.5
    assert float(gs.tensor(2.5)) == 2.5
    assert int(gs.tensor([3])) == 3
    assert complex(gs.tensor(1j)) == 1j
    assert [10, 20, 30][gs.tensor(1)] == 20
    assert bool(gs.tensor([0.0])) is False
    assert f"{gs.tensor(1.23456):.2f}" == "1.23"
    assert gs.tensor([[1, 2], [3, 4]]).tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize(
    ("use", "error", "message"),
    [
        (lambda x: x.item(), RuntimeError, "a Tensor with 2 elements cannot be converted to Scalar"),
        (float, ValueError, "only one element tensors can be converted to Python scalars"),
        (lambda x: f"{x:.2f}", TypeError, "unsupported format string passed to Tensor.__format__"),
        (lambda x: "a" in x, RuntimeError, "Tensor.__contains__ only supports Tensor or scalar"),
        (lambda x: x.__delitem__(0), TypeError, "Tensor does not support deleting items"),
        (lambda x: x.requires_grad_(3), RuntimeError, "requires_grad must be a bool"),
        (lambda x: -(x > 0), RuntimeError, "Negation, the `-` operator, on a bool tensor is not supported"),
        (lambda x: (x > 0) - (x > 0), RuntimeError, "Subtraction, the `-` operator, with two bool tensors"),
        (lambda x: x & 1, RuntimeError, "\"bitwise_and_cpu\" not implemented for"),
        (lambda x: ~x, TypeError, "~ \\(operator.invert\\) is only implemented on integer and Boolean-type"),
        (lambda x: x @ 1, TypeError, "matmul\\(\\): argument 'other' must be Tensor"),
        (lambda x: gs.add(x, 1, out=3), TypeError, "argument 'out' must be Tensor, not int"),
        (bool, RuntimeError, "Boolean value of Tensor with more than one value is ambiguous"),
        (lambda x: bool(x.narrow(0, 0, 0)), RuntimeError, "Boolean value of Tensor with no values is ambiguous"),
        (lambda x: [0][x], TypeError, "only integer tensors of a single element can be converted to an index"),
        (lambda x: len(x.sum()), TypeError, "len\\(\\) of a 0-d tensor"),
        (lambda x: iter(x.sum()), TypeError, "iteration over a 0-d tensor"),
        (lambda x: x @ x.sum(), RuntimeError, "both arguments to matmul need to be at least 1D"),
        (lambda x: x + "a", TypeError, "unsupported operand type"),
        (lambda x: x + gs.ones(3), RuntimeError, "The size of tensor a \\(2\\) must match"),
        (lambda x: x.view(3), RuntimeError, "shape '\\[3\\]' is invalid for input of size 2"),
        (lambda x: x.sum(1), IndexError, "Dimension out of range \\(expected to be in range of"),
        (lambda x: x.long().requires_grad_(), RuntimeError, "only Tensors of floating point and complex dtype"),
        (lambda x: x.retain_grad(), RuntimeError, "can't retain_grad on Tensor that has requires_grad=False"),
        (lambda x: x.register_hook(print), RuntimeError, "cannot register a hook on a tensor that doesn't require"),
        (lambda x: x.backward(), RuntimeError, "element 0 of tensors does not require grad"),
        (lambda x: gs.tensor([[1.0], [1.0, 2.0]]), ValueError, "expected sequence"),
        (lambda x: gs.tensor(["a"]), ValueError, "too many dimensions 'str'"),
    ],
)  # fmt: skip
def test_wrong_calls_raise_pytorchs_exceptions(use: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        use(gs.tensor([1.0, 2.0]))


def test_iteration_yields_views_with_history() -> None:
    x = gs.ones(2, 3, requires_grad=True)
    rows = list(x)
    assert [r.grad_fn.name() for r in rows] == ["UnbindBackward0"] * 2
    (rows[1] * 2).sum().backward()
    assert x.grad.tolist() == [[0.0] * 3, [2.0] * 3]


def test_tensors_are_hashed_by_identity_and_compared_by_element() -> None:
    a, b = gs.ones(2), gs.ones(2)
    assert len({a, b}) == 2
    assert (a == b).tolist() == [True, True]
    assert 1.0 in a
    assert 3.0 not in a


def test_attributes_of_the_users_own_are_kept() -> None:
    x = gs.ones(2)
    x.label = "mine"
    assert x.label == "mine"
    with pytest.raises(AttributeError):
        x.no_such_attribute


# --- copies -----------------------------------------------------------------------------------------------------------


def copies() -> dict[str, Any]:
    return {"deepcopy": copy.deepcopy, "pickle": lambda x: pickle.loads(pickle.dumps(x))}


@pytest.mark.parametrize("how", copies())
def test_leaves_are_copied(how: str) -> None:
    x = gs.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=gs.float64, requires_grad=True)
    x.label = ["mine"]
    again = copies()[how](x)
    assert again.tolist() == x.tolist()
    assert (again.dtype, again.requires_grad, again.is_leaf) == (gs.float64, True, True)
    assert again.label == ["mine"]
    assert again.data_ptr() != x.data_ptr()
    assert again._version == 0


def test_of_what_is_no_leaf_the_values_are_pickled_and_a_deep_copy_is_refused(torch: Any) -> None:
    for m in (gs, torch):
        y = m.ones(2, requires_grad=True) * 2
        for tensor in (y, y[:1]):
            again = pickle.loads(pickle.dumps(tensor))
            assert (again.tolist(), again.requires_grad, again.is_leaf) == (tensor.tolist(), True, True)
        with pytest.raises(RuntimeError, match="Only Tensors created explicitly by the user"):
            copy.deepcopy(y)


def test_where_nothing_is_recorded_a_tensor_that_requires_grad_is_a_numpy_array_too(torch: Any) -> None:
    for m in (gs, torch):
        x = m.ones(2, requires_grad=True)
        for off in (m.no_grad, m.inference_mode):
            with off():
                assert numpy.asarray(x).tolist() == x.numpy().tolist() == (x * 1).numpy().tolist() == [1.0, 1.0]
        with pytest.raises(RuntimeError, match=r"Can't call numpy\(\) on Tensor that requires grad"):
            x.numpy()


def test_deepcopy_copies_the_gradient_and_keeps_identity() -> None:
    x = gs.ones(2, requires_grad=True)
    (x * 3).sum().backward()
    first, second = copy.deepcopy([x, x])
    assert first is second
    assert first.grad.tolist() == [3.0, 3.0]
    assert first.grad.data_ptr() != x.grad.data_ptr()


def test_deepcopy_of_a_transposed_leaf_keeps_values_and_strides() -> None:
    x = gs.arange(6.0).view(2, 3).t().detach()
    again = copy.deepcopy(x)
    assert again.tolist() == x.tolist()
    assert again.stride() == x.stride()


def test_a_deep_copy_shares_memory_as_the_tensors_did() -> None:
    x = gs.arange(6.0)
    whole, part, turned = copy.deepcopy([x, x[2:4], x.view(2, 3).t()])
    whole[2] = 9.0
    assert part.tolist() == [9.0, 3.0]
    assert turned.tolist() == [[0.0, 3.0], [1.0, 4.0], [9.0, 5.0]]
    assert x[2].item() == 2.0


PICKLED = {
    "transposed": lambda m: m.arange(6.0).reshape(2, 3).t(),
    "permuted": lambda m: m.arange(24.0).reshape(2, 3, 4).permute(2, 0, 1),
    "0-d": lambda m: m.tensor(2.0),
    "empty": lambda m: m.ones(0, 3),
    "part": lambda m: m.arange(6.0).reshape(2, 3)[:, 1:],
    "expanded": lambda m: m.ones(3, 1).expand(3, 4),
}


@pytest.mark.parametrize("layout", PICKLED)
def test_a_pickle_keeps_dense_strides(layout: str) -> None:
    x = PICKLED[layout](gs)
    y = pickle.loads(pickle.dumps(x))
    assert y.tolist() == x.tolist()
    assert y.shape == x.shape
    assert y.stride() == (x if layout not in ("part", "expanded") else x.contiguous()).stride()
    y.add_(1)
    assert y._version == 1


@pytest.mark.torch
def test_numbers_in_formatted_strings(torch: Any) -> None:
    for use in (
        lambda m: f"{m.tensor(1.5)}",
        lambda m: f"{m.tensor(3)} {m.tensor(True)} {m.tensor(1 + 2j)}",
        lambda m: f"{m.tensor(1.5, requires_grad=True)}",
        lambda m: f"{m.tensor([1.5])}",
        lambda m: f"{m.nn.Parameter(m.tensor(1.5))}",
        lambda m: f"{m.tensor(1.5):.3f}",
    ):
        assert use(gs) == use(torch)


@pytest.mark.parametrize("value", [gs.strided, gs.contiguous_format, gs.channels_last])
def test_layouts_stay_the_ones_they_are(value: Any) -> None:
    assert pickle.loads(pickle.dumps(value)) is value
    assert copy.deepcopy(value) is value


@pytest.mark.torch
@pytest.mark.parametrize("value", [0.5, 3, True, 1 + 2j])
def test_a_scalar_is_formatted_as_its_number(torch: Any, value: Any) -> None:
    assert f"{gs.tensor(value)}" == f"{torch.tensor(value)}" == str(value)
    assert f"{gs.tensor([value])}" == f"{torch.tensor([value])}"
