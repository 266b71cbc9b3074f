"""Products with Jacobians and Hessians of functions, and the matrices themselves.

Each function takes a Python function of tensors and the point to look at it. A vector from the left costs one backward
(:func:`vjp`, :func:`vhp`); a vector from the right is the derivative of that backward, which is linear in its vector
(:func:`jvp`, :func:`hvp`). Whole matrices take one backward a row, or one forward pass in forward mode a column.

Examples
--------
>>> import gradscope as gs
>>> from gradscope.autograd.functional import hessian, jacobian
>>> x = gs.tensor([1.0, 2.0])
>>> jacobian(lambda x: x * x, x)
tensor([[2., 0.],
        [0., 4.]])
>>> hessian(lambda x: x.prod(), x)
tensor([[0., 1.],
        [1., 0.]])
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy

from ..runtime import state
from ..runtime.dispatch import TENSOR_OPERATORS as F
from ..runtime.modes import enable_grad, set_grad_enabled
from ..runtime.tensor.tensor import Tensor
from .forward_ad import dual_level, make_dual, unpack_dual
from .functional_checks import (
    BACK,
    BACK_GRAPH,
    BACK_TRICK,
    DOUBLE_BACK,
    DOUBLE_BACK_GRAPH,
    DOUBLE_BACK_TRICK,
    GRAD_INPUTS,
    JACOBIAN,
    OUTPUTS,
    Function,
    as_tensors,
    check_strict,
    direction,
    gradient_of,
    partial_grad,
    point_and_direction,
    prepared,
    returned,
    row_messages,
    single_output,
    zero_filled,
    zero_seeds,
    zeros_like,
)

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]

STRATEGIES = ("forward-mode", "reverse-mode")


def vjp(
    func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """Return ``func(*inputs)`` and the product of a vector with its Jacobian.

    Parameters
    ----------
    func : callable
        Takes tensors, returns a tensor or a tuple of tensors.
    v : Tensor or tuple of Tensor, optional
        Of the shapes of the outputs; 1 for a single output of one element unless given.
    create_graph : bool
        Record the results as functions of `inputs`.
    strict : bool
        Raise where an output does not depend on an input, instead of returning zeros.

    Returns
    -------
    outputs : Tensor or tuple of Tensor
        What `func` returned, without history unless `create_graph`.
    vjp : Tensor or tuple of Tensor
        Of the shapes of the inputs.

    Raises
    ------
    TypeError
        If `inputs`, `v` or what `func` returns is no tensor (or tuple of tensors).
    RuntimeError
        If `v` has the wrong shape or is missing, and as `strict` says.

    See Also
    --------
    jvp, autograd.grad, func.vjp

    Examples
    --------
    >>> import gradscope as gs
    >>> x = gs.tensor([1.0, 2.0])
    >>> gs.autograd.functional.vjp(lambda x: x * x, x, gs.ones(2))
    (tensor([1., 4.]), tensor([2., 4.]))
    """
    with enable_grad():
        many_inputs, points = as_tensors(inputs, "inputs", "vjp")
        points = prepared(points, create_graph, need_graph=True)
        many_outputs, outputs = as_tensors(func(*points), "outputs of the user-provided function", "vjp")
        check_strict(outputs, OUTPUTS, strict)
        vector = direction(v, "vjp", outputs, many_outputs, create_graph, "the user-provided function returns")
    with set_grad_enabled(create_graph or bool(state.local.grad_enabled)):
        found = partial_grad(outputs, points, vector, create_graph)
        product = zero_filled(found, points, strict, create_graph, BACK, BACK_GRAPH)
    return returned(outputs, many_outputs, create_graph), returned(product, many_inputs, create_graph)


def jvp(
    func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """Return ``func(*inputs)`` and the product of its Jacobian with a vector, by two backwards.

    :mod:`gradscope.autograd.forward_ad` computes it in one forward pass.

    Parameters
    ----------
    func, inputs, create_graph, strict
        As for :func:`vjp`.
    v : Tensor or tuple of Tensor, optional
        Of the shapes of the inputs; 1 for a single input of one element unless given.

    Returns
    -------
    outputs : Tensor or tuple of Tensor
        What `func` returned, without history unless `create_graph`.
    jvp : Tensor or tuple of Tensor
        Of the shapes of the outputs.

    See Also
    --------
    vjp, func.jvp, autograd.forward_ad.make_dual

    Examples
    --------
    >>> import gradscope as gs
    >>> x = gs.tensor([1.0, 2.0])
    >>> gs.autograd.functional.jvp(lambda x: x.prod(), x, gs.tensor([1.0, 0.0]))
    (tensor(2.), tensor(2.))
    """
    with enable_grad():
        _, points, vector = point_and_direction(inputs, v, "jvp", create_graph)
        many_outputs, outputs = as_tensors(func(*points), "outputs of the user-provided function", "jvp")
        check_strict(outputs, OUTPUTS, strict)
        seeds = zero_seeds(outputs)
        pulled = partial_grad(outputs, points, seeds, create_graph=True)
        check_strict(pulled, GRAD_INPUTS, strict)
    with set_grad_enabled(create_graph or bool(state.local.grad_enabled)):
        found = partial_grad(pulled, seeds, vector, create_graph)
        product = zero_filled(found, outputs, strict, create_graph, BACK_TRICK, BACK_GRAPH)
    return returned(outputs, many_outputs, create_graph), returned(product, many_outputs, create_graph)


def vhp(
    func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """Return ``func(*inputs)``, of one element, and the product of a vector with its Hessian.

    Parameters
    ----------
    func, inputs, create_graph, strict
        As for :func:`vjp`; `func` returns one tensor of one element.
    v : Tensor or tuple of Tensor, optional
        Of the shapes of the inputs; 1 for a single input of one element unless given.

    Returns
    -------
    output : Tensor
        What `func` returned, of one element, without history unless `create_graph`.
    vhp : Tensor or tuple of Tensor
        Of the shapes of the inputs.

    See Also
    --------
    hvp, hessian

    Examples
    --------
    >>> import gradscope as gs
    >>> x = gs.tensor([1.0, 2.0])
    >>> gs.autograd.functional.vhp(lambda x: x.prod(), x, gs.tensor([1.0, 0.0]))
    (tensor(2.), tensor([0., 1.]))
    """
    with enable_grad():
        many_inputs, points, vector = point_and_direction(inputs, v, "vhp", create_graph)
        output, gradients = gradient_of(func, points, "vhp", strict)
    with set_grad_enabled(create_graph or bool(state.local.grad_enabled)):
        found = partial_grad(gradients, points, vector, create_graph)
        product = zero_filled(found, points, strict, create_graph, DOUBLE_BACK, DOUBLE_BACK_GRAPH)
    return returned(output, False, create_graph), returned(product, many_inputs, create_graph)


def hvp(
    func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """Return ``func(*inputs)``, of one element, and the product of its Hessian with a vector.

    The Hessian of a twice continuously differentiable function is symmetric: :func:`vhp` is the same product, and takes
    a backward less.

    Parameters
    ----------
    func, inputs, v, create_graph, strict
        As for :func:`vhp`.

    Returns
    -------
    output : Tensor
        What `func` returned, of one element, without history unless `create_graph`.
    hvp : Tensor or tuple of Tensor
        Of the shapes of the inputs.

    See Also
    --------
    vhp, hessian

    Examples
    --------
    >>> import gradscope as gs
    >>> x = gs.tensor([1.0, 2.0])
    >>> gs.autograd.functional.hvp(lambda x: (x**3).sum(), x, gs.tensor([1.0, 0.0]))
    (tensor(9.), tensor([6., 0.]))
    """
    with enable_grad():
        many_inputs, points, vector = point_and_direction(inputs, v, "hvp", create_graph)
        output, gradients = gradient_of(func, points, "hvp", strict)
        seeds = zero_seeds(points)
        twice = partial_grad(gradients, points, seeds, create_graph=True)
    with set_grad_enabled(create_graph or bool(state.local.grad_enabled)):
        found = partial_grad(twice, seeds, vector, create_graph)
        product = zero_filled(found, points, strict, create_graph, DOUBLE_BACK_TRICK, DOUBLE_BACK_GRAPH)
    return returned(output, False, create_graph), returned(product, many_inputs, create_graph)


def jacobian(
    func: Function,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """Return the Jacobian of a function.

    Parameters
    ----------
    func, inputs, create_graph, strict
        As for :func:`vjp`.
    vectorize : bool
        Accepted for PyTorch's sake: there is no vectorizing transform here, and the result is the same.
    strategy : {"reverse-mode", "forward-mode"}
        One backward for each output element, or one forward pass for each input element: take the fewer.

    Returns
    -------
    Tensor or (nested) tuple of Tensor
        ``jacobian[i][j]`` has the shape of output i followed by that of input j; an index falls away where `func`
        returned, or `inputs` is, one tensor and not a tuple. Its dtype is that of the input, in forward mode of the
        output.

    Raises
    ------
    AssertionError
        For another strategy.
    RuntimeError
        For `strict` together with `vectorize` or forward mode, and as :func:`vjp`.

    See Also
    --------
    hessian, vjp, func.jacrev

    Examples
    --------
    >>> import gradscope as gs
    >>> x, y = gs.tensor([1.0, 2.0]), gs.tensor(3.0)
    >>> gs.autograd.functional.jacobian(lambda x, y: x * y, (x, y))
    (tensor([[3., 0.],
            [0., 3.]]), tensor([1., 2.]))
    """
    if strategy not in STRATEGIES:
        raise AssertionError(
            f'Expected strategy to be either "forward-mode" or "reverse-mode", got {strategy!r}.\n'
            "Take forward mode for a function of more outputs than inputs."
        )
    if strict and (vectorize or strategy == "forward-mode"):
        other = '`strategy="forward-mode"`' if strategy == "forward-mode" else "`vectorize=True`"
        raise RuntimeError(
            f"jacobian: `strict=True` and {other} are not supported together.\n"
            "Set `strict=False`, or leave the other out."
        )
    many_inputs, points = as_tensors(inputs, "inputs", "jacobian")
    if strategy == "forward-mode":
        many_outputs, rows = forward_jacobian(func, points, create_graph)
    else:
        many_outputs, rows = reverse_jacobian(func, points, create_graph, strict)
    columns = tuple(returned(row, many_inputs, create_graph) for row in rows)
    return columns if many_outputs else columns[0]


def hessian(
    func: Function,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """Return the Hessian of a function of one element: the Jacobian of its gradient.

    Parameters
    ----------
    func, inputs, create_graph, strict, vectorize
        As for :func:`jacobian`; `func` returns one tensor of one element.
    outer_jacobian_strategy : {"reverse-mode", "forward-mode"}
        How the gradient is differentiated.

    Returns
    -------
    Tensor or tuple of tuple of Tensor
        ``hessian[i][j]`` has the shape of input i followed by that of input j.

    See Also
    --------
    jacobian, hvp, func.hessian

    Examples
    --------
    >>> import gradscope as gs
    >>> x = gs.tensor([1.0, 2.0])
    >>> gs.autograd.functional.hessian(lambda x: (x**3).sum(), x, outer_jacobian_strategy="forward-mode")
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    many_inputs, _ = as_tensors(inputs, "inputs", "hessian")
    forward = outer_jacobian_strategy == "forward-mode"

    def single(*points: Tensor) -> Tensor:
        return single_output(func(*points), "hessian", strict).squeeze()

    def gradient(*points: Tensor) -> tuple[Tensor, ...]:
        if forward:
            points = tuple(point.requires_grad_() for point in points)
        rows = jacobian(single, points, create_graph=True)
        check_strict(rows, JACOBIAN, strict)
        return rows

    found = jacobian(gradient, inputs, create_graph, strict, vectorize, outer_jacobian_strategy)
    return found if many_inputs else found[0]


# --- whole Jacobians --------------------------------------------------------------------------------------------------


def reverse_jacobian(
    func: Function, points: tuple[Tensor, ...], create_graph: bool, strict: bool
) -> tuple[bool, list[tuple[Tensor, ...]]]:
    """Return whether there are many outputs, and for each of them its Jacobian by each input: a backward a row."""
    with enable_grad():
        points = prepared(points, create_graph, need_graph=True)
        many, outputs = as_tensors(func(*points), "outputs of the user-provided function", "jacobian")
        check_strict(outputs, OUTPUTS, strict)
        blocks = []
        for index, output in enumerate(outputs):
            rows: list[tuple[Tensor, ...]] = []
            for element in output.reshape(-1) if output.numel() else ():
                found = partial_grad((element,), points, (None,), create_graph, retain_graph=True)
                messages = row_messages(index)
                rows.append(zero_filled(found, points, strict, create_graph, *messages))
            blocks.append(tuple(stacked(column, output, point) for column, point in transposed(rows, points)))
    return many, blocks


def transposed(rows: Sequence[Sequence[Tensor]], points: Sequence[Tensor]) -> Iterator[tuple[list[Tensor], Tensor]]:
    """Yield for each input the gradients by it, one for each row."""
    for k, point in enumerate(points):
        yield [row[k] for row in rows], point


def stacked(rows: list[Tensor], output: Tensor, point: Tensor) -> Tensor:
    """Return gradients, one for each element of `output`, in the Jacobian's shape."""
    shape = (*output.shape, *point.shape)
    return F.stack(rows).reshape(shape) if rows else point.new_zeros(shape)


def forward_jacobian(
    func: Function, points: tuple[Tensor, ...], create_graph: bool
) -> tuple[bool, list[tuple[Tensor, ...]]]:
    """Return the same by a forward pass a column."""
    columns: list[list[Tensor]] = []
    many: bool = False
    outputs: tuple[Tensor, ...] = ()
    with set_grad_enabled(create_graph or bool(state.local.grad_enabled)):
        for tangents in standard_basis(points):
            with dual_level():
                duals = [make_dual(p, t) for p, t in zip(points, tangents, strict=True)]
                many, outputs = as_tensors(func(*duals), "outputs of the user-provided function", "jacobian")
                pairs = [unpack_dual(output) for output in outputs]
            columns.append([zeros_like(p.primal) if p.tangent is None else p.tangent for p in pairs])
        if not columns:
            many, outputs = as_tensors(func(*points), "outputs of the user-provided function", "jacobian")
        blocks = []
        for k, output in enumerate(outputs):
            parts, start = [], 0
            for point in points:
                part = [column[k] for column in columns[start : start + point.numel()]]
                start += point.numel()
                parts.append(stacked_last(part, output, point))
            blocks.append(tuple(parts))
    return many, blocks


def standard_basis(points: Sequence[Tensor]) -> Iterator[list[Tensor]]:
    """Yield the tangents that move one input element: a one there, zeros elsewhere."""
    for k, point in enumerate(points):
        for element in range(point.numel()):
            yield [unit(p, element) if number == k else zeros_like(p) for number, p in enumerate(points)]


def unit(like: Tensor, element: int) -> Tensor:
    """Return zeros of the shape and dtype of a tensor, but for a one; elements count in rows, however they lie."""
    found = zeros_like(like).detach()
    found._array[numpy.unravel_index(element, like._array.shape)] = 1
    return found


def stacked_last(columns: list[Tensor], output: Tensor, point: Tensor) -> Tensor:
    """Return tangents of `output`, one for each element of `point`, in the Jacobian's shape."""
    shape = (*output.shape, *point.shape)
    return F.stack(columns, -1).reshape(shape) if columns else output.new_zeros(shape)
