"""Whole Jacobians and Hessians: a product from the left for each row, or one from the right for each column."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

from ..autograd.functional import unit
from ..runtime.dispatch import TENSOR_OPERATORS as F
from ..runtime.tensor.tensor import Tensor
from .grad_vjp_jvp import ArgNums, Function, chosen, jvp, replaced, vjp
from .pytrees import filled, leaves

__all__ = ["hessian", "jacfwd", "jacrev"]


def jacrev(func: Function, argnums: ArgNums = 0, *, has_aux: bool = False, chunk_size: int | None = None) -> Function:
    """Return the function that returns the Jacobian of `func`, computed by a backward for each output element.

    Parameters
    ----------
    argnums : int or tuple of int
        The positions of the arguments to differentiate by.
    has_aux : bool
        Whether `func` returns a pair of its output and anything else.
    chunk_size : int, optional
        Accepted for PyTorch's sake: rows come one at a time.

    Returns
    -------
    callable
        Returns the form of the output, in place of each tensor the form of the argument (a tuple if `argnums` is), in
        place of each tensor there the Jacobian of the one by the other: of the shape of both, one after the other.

    See Also
    --------
    jacfwd, vjp

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.func.jacrev(lambda x: x * x)(gs.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    _check_chunk_size("jacrev", chunk_size)

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        numbers = chosen(argnums, args)
        given = tuple(args[number] for number in numbers)
        inner = _by_arguments(func, args, kwargs, numbers)
        columns = _real("jacrev", "input", given)
        output, vjp_fn, *aux = vjp(inner, *given, has_aux=has_aux)
        tensors = _real("jacrev", "output", output)
        blocks = []
        for number, tensor in enumerate(tensors):
            rows = [list(leaves(vjp_fn(filled(output, seeds)))) for seeds in _seeds(tensors, number)]
            found = [
                _stacked([row[k] for row in rows], 0, (*tensor.shape, *column.shape), column)
                for k, column in enumerate(columns)
            ]
            blocks.append(_arranged(filled(given, found), argnums))
        jacobian = filled(output, blocks)
        return (jacobian, aux[0]) if has_aux else jacobian

    return wrapper


def jacfwd(
    func: Function,
    argnums: ArgNums = 0,
    has_aux: bool = False,
    *,
    randomness: str = "error",
    chunk_size: int | None = None,
) -> Function:
    """Return the function that returns the Jacobian of `func`, computed by a forward pass for each input element.

    The parameters and the result are those of :func:`jacrev`; it is the quicker one where there are fewer inputs than
    outputs. `randomness` is accepted for PyTorch's sake.

    See Also
    --------
    jacrev, hessian

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.func.jacfwd(lambda x: x * x)(gs.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    _check_chunk_size("jacfwd", chunk_size)

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        numbers = chosen(argnums, args)
        given = tuple(args[number] for number in numbers)
        inner = _by_arguments(func, args, kwargs, numbers)
        points = _real("jacfwd", "input", given)
        columns: list[tuple[Tensor, list[list[Tensor]]]] = [(point, []) for point in points]
        for number, seeds in _directions(points):
            output, pushed, *aux = jvp(inner, given, filled(given, seeds), has_aux=has_aux)
            if number is not None:
                columns[number][1].append(list(leaves(pushed)))
        blocks = []
        for k, tensor in enumerate(_real("jacfwd", "output", output)):
            found = [
                _stacked([t[k] for t in tangents], -1, (*tensor.shape, *point.shape), tensor)
                for point, tangents in columns
            ]
            blocks.append(_arranged(filled(given, found), argnums))
        jacobian = filled(output, blocks)
        return (jacobian, aux[0]) if has_aux else jacobian

    return wrapper


def hessian(func: Function, argnums: ArgNums = 0) -> Function:
    """Return the function that returns the Hessian of `func`: forward mode over a backward.

    See Also
    --------
    jacfwd, jacrev, autograd.functional.hessian

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.func.hessian(lambda x: (x**3).sum())(gs.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)


def _check_chunk_size(name: str, chunk_size: int | None) -> None:
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError(f"{name}: `chunk_size` should be greater than 0.")


def _real(name: str, role: str, tree: Any) -> list[Tensor]:
    """Return the leaves of inputs or outputs, refusing complex ones: one number would not do for their derivatives."""
    found = list(leaves(tree))
    for place, tensor in enumerate(found):
        if isinstance(tensor, Tensor) and tensor.is_complex():
            raise RuntimeError(
                f"{name}: Expected all {role}s to be real but received complex tensor at flattened {role} idx: {place}"
                "\nUse view_as_real() and view_as_complex() at the borders of the function."
            )
    return found


def _by_arguments(func: Function, args: tuple[Any, ...], kwargs: Any, numbers: tuple[int, ...]) -> Function:
    """Return `func` as a function of some of its arguments."""

    def inner(*values: Any) -> Any:
        return func(*replaced(args, numbers, values), **kwargs)

    return inner


def _seeds(tensors: list[Tensor], number: int) -> Iterator[list[Tensor]]:
    """Yield, for each element of one of several tensors, a one there and zeros elsewhere."""
    zeros = [F.zeros_like(tensor).detach() for tensor in tensors]
    for element in range(tensors[number].numel()):
        yield [*zeros[:number], unit(tensors[number], element), *zeros[number + 1 :]]


def _directions(tensors: list[Tensor]) -> Iterator[tuple[int | None, list[Tensor]]]:
    """Yield the seeds of each element of all tensors; where there is none, once zeros, and None for the tensor."""
    if not any(tensor.numel() for tensor in tensors):
        yield None, [F.zeros_like(tensor).detach() for tensor in tensors]
    for number in range(len(tensors)):
        for seeds in _seeds(tensors, number):
            yield number, seeds


def _stacked(parts: list[Tensor], dim: int, shape: tuple[int, ...], like: Tensor) -> Tensor:
    return F.stack(parts, dim).reshape(shape) if parts else like.new_zeros(shape)


def _arranged(given: tuple[Any, ...], argnums: ArgNums) -> Any:
    return given[0] if isinstance(argnums, int) else given
