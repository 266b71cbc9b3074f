"""Sums of products by index notation: einsum, tensordot.

Written in terms of the operators that move, sum and multiply, so derivatives of every order are theirs. Two operands at
a time become one matrix product.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from ... import autocast, state
from ...tensor.tensor import Tensor
from ..declaration.annotations import Argument, Array, Dims, Namespace, Operand
from ..declaration.registry import METHODS, public
from ..execution.inplace_and_out import into
from .matmul import matmul

# Stands for a dimension: a letter or a number, Ellipsis for those without one, then a pair for each of them.
Label: TypeAlias = Any
Labels = list[Label]

# --- notation ---------------------------------------------------------------------------------------------------------


def _subscripts(text: str, where: str) -> Labels:
    """Return the labels of one operand: letters, and Ellipsis for '...'."""
    labels: Labels = []
    rest = text.replace(" ", "")
    while rest:
        if rest.startswith("..."):
            if Ellipsis in labels:
                raise RuntimeError(f"einsum(): found '.' for {where} for which an ellipsis was already found")
            labels.append(Ellipsis)
            rest = rest[3:]
        elif rest[0].isascii() and rest[0].isalpha():
            labels.append(rest[0])
            rest = rest[1:]
        elif rest[0] == ".":
            raise RuntimeError(f"einsum(): found '.' for {where} that is not part of any ellipsis")
        else:
            raise RuntimeError(
                f"einsum(): invalid subscript given at {where} in the equation string, subscripts must be in [a-zA-Z]"
            )
    return labels


def _parse(equation: str, count: int) -> tuple[list[Labels], Labels | None]:
    """Return the labels of the operands, and of the output if it is named."""
    left, arrow, right = equation.partition("->")
    inputs = [_subscripts(text, f"operand {i}") for i, text in enumerate(left.split(","))]
    if len(inputs) != count:
        amount = "fewer" if count < len(inputs) else "more"
        raise RuntimeError(
            f"einsum(): {amount} operands were provided than specified in the equation\n"
            f"{equation!r} names {len(inputs)}, given were {count}."
        )
    return inputs, _subscripts(right, "the output") if arrow else None


def _from_sublists(arguments: Sequence[Argument]) -> tuple[list[Array], list[Labels], Labels | None]:
    """Return operands and labels of ``einsum(operand, [0, 1], operand, [1, 2], [0, 2])``."""
    count = len(arguments) // 2
    operands, inputs = list(arguments[0 : 2 * count : 2]), [list(s) for s in arguments[1 : 2 * count : 2]]
    output = list(arguments[-1]) if len(arguments) % 2 else None
    return operands, inputs, output


def _spread_ellipses(operands: list[Array], inputs: list[Labels]) -> tuple[list[Labels], Labels]:
    """Replace each '...' by a label for every dimension it stands for, aligned at the right."""
    covered = 0
    for index, (operand, labels) in enumerate(zip(operands, inputs, strict=True)):
        ndim, named = operand._array.ndim, len(labels) - (Ellipsis in labels)
        if named > ndim or (named < ndim and Ellipsis not in labels):
            given = "and no ellipsis was given" if Ellipsis not in labels else "even with the ellipsis"
            raise RuntimeError(
                f"einsum(): the number of subscripts in the equation ({named}) does not match the number of dimensions "
                f"({ndim}) for operand {index} {given}"
            )
        if Ellipsis in labels:
            covered = max(covered, ndim - named)
    batch: Labels = [("...", i) for i in range(covered)]
    spread = []
    for operand, labels in zip(operands, inputs, strict=True):
        own = operand._array.ndim - (len(labels) - 1)
        spread.append([x for label in labels for x in (batch[covered - own :] if label is Ellipsis else [label])])
    return spread, batch


def _output_labels(output: Labels | None, inputs: list[Labels], batch: Labels) -> Labels:
    seen = [label for labels in inputs for label in labels]
    if output is None:
        once = sorted({label for label in seen if not isinstance(label, tuple) and seen.count(label) == 1})
        return [*batch, *once]
    labels = [x for label in output for x in (batch if label is Ellipsis else [label])]
    for label in labels:
        if labels.count(label) > 1:
            raise RuntimeError(f"einsum(): output subscript {label} appears more than once in the output")
        if label not in seen and not isinstance(label, tuple):
            raise RuntimeError(
                f"einsum(): output subscript {label} does not appear in the equation for any input operand"
            )
    return labels


# --- one operand ------------------------------------------------------------------------------------------------------


def _diagonals(operand: Array, labels: Labels) -> tuple[Array, Labels]:
    """Return the operand with every repeated label taken along its diagonal."""
    labels = list(labels)
    for label in dict.fromkeys(labels):
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            if operand._array.shape[first] != operand._array.shape[second]:
                raise RuntimeError(
                    f"einsum(): subscript {label} is repeated for an operand but the sizes don't match, "
                    f"{operand._array.shape[second]} != {operand._array.shape[first]}"
                )
            operand = operand.diagonal(0, first, second)
            labels = [x for i, x in enumerate(labels) if i not in (first, second)] + [label]
    return operand, labels


def _check_sizes(operands: list[Array], inputs: list[Labels]) -> dict[Label, int]:
    sizes: dict[Label, int] = {}
    for index, (operand, labels) in enumerate(zip(operands, inputs, strict=True)):
        for label, size in zip(labels, operand._array.shape, strict=True):
            known = sizes.get(label, 1)
            if size != known and 1 not in (size, known):
                name = "..." if isinstance(label, tuple) else label
                raise RuntimeError(
                    f"einsum(): subscript {name} has size {size} for operand {index} which does not broadcast with "
                    f"previously seen size {known}"
                )
            sizes[label] = size if known == 1 else known
    return sizes


def _summed(operand: Array, labels: Labels, drop: set[Label]) -> tuple[Array, Labels]:
    """Sum an operand over the labels in `drop`."""
    axes = tuple(i for i, label in enumerate(labels) if label in drop)
    if not axes:
        return operand, labels
    return operand.sum(axes), [label for label in labels if label not in drop]


def _arranged(operand: Array, labels: Labels, order: Labels) -> Array:
    """Return the operand with its dimensions in `order`, size 1 where it lacks one."""
    present = [label for label in order if label in labels]
    positions = [labels.index(label) for label in present]
    if positions != list(range(len(positions))):
        operand = operand.permute(positions)
    if len(present) == len(order):
        return operand
    shape = iter(operand._array.shape)
    return operand.reshape([next(shape) if label in labels else 1 for label in order])


# --- two operands -----------------------------------------------------------------------------------------------------


def _product(count: Sequence[int]) -> int:
    result = 1
    for size in count:
        result *= size
    return result


def _without_ones(operand: Array, labels: Labels, ones: set[Label]) -> tuple[Array, Labels]:
    """View an operand without the dimensions in `ones`, whose size is 1: there is nothing to sum."""
    left = [label for label in labels if label not in ones]
    if len(left) == len(labels):
        return operand, labels
    shape = [n for n, label in zip(operand._array.shape, labels, strict=True) if label not in ones]
    return operand.reshape(shape), left


def _contract(a: Array, la: Labels, b: Array, lb: Labels, keep: set[Label]) -> tuple[Array, Labels]:
    """Return the product of two operands, summed over what is not in `keep`, with its labels."""
    a, la = _summed(a, la, set(la) - set(lb) - keep)
    b, lb = _summed(b, lb, set(lb) - set(la) - keep)
    shared = [label for label in la if label in lb and label not in keep]
    # A size of 1 broadcasts: the other operand is summed on its own.
    for label in shared:
        have_a, have_b = a._array.shape[la.index(label)], b._array.shape[lb.index(label)]
        if have_a != have_b:
            if have_a == 1:
                b, lb = _summed(b, lb, {label})
                a, la = _summed(a, la, {label})
            else:
                a, la = _summed(a, la, {label})
                b, lb = _summed(b, lb, {label})
    shared = [label for label in la if label in lb and label not in keep]
    batch = [label for label in la if label in lb and label in keep]
    left = [label for label in la if label not in lb]
    right = [label for label in lb if label not in la]
    if not shared:
        order = [*batch, *left, *right]
        return _arranged(a, la, order) * _arranged(b, lb, order), order
    a, b = _arranged(a, la, [*batch, *left, *shared]), _arranged(b, lb, [*batch, *shared, *right])
    n = len(batch)
    rows, columns = a._array.shape[n : n + len(left)], b._array.shape[n + len(shared) :]
    depth = _product(b._array.shape[n : n + len(shared)])
    sizes = [max(x, y) if 0 not in (x, y) else 0 for x, y in zip(a._array.shape[:n], b._array.shape[:n], strict=True)]
    a = a.reshape(*a._array.shape[:n], _product(rows), depth)
    b = b.reshape(*b._array.shape[:n], depth, _product(columns))
    return matmul(a, b).reshape(*sizes, *rows, *columns), [*batch, *left, *right]


def _best_pair(labels: list[Labels], sizes: dict[Label, int], output: Labels) -> tuple[int, int]:
    """Return the two operands whose product is smallest against what goes into it."""
    if len(labels) == 2:
        return 0, 1

    def growth(pair: tuple[int, int]) -> int:
        i, j = pair
        others = set(output).union(*(set(x) for k, x in enumerate(labels) if k not in pair))
        result = (set(labels[i]) | set(labels[j])) & others
        return _product([sizes[x] for x in result]) - sum(_product([sizes[x] for x in labels[k]]) for k in pair)

    return min(((i, j) for i in range(len(labels)) for j in range(i + 1, len(labels))), key=growth)


def _einsum_arrays(xp: Namespace, equation: str, *operands: Array) -> Array:
    return xp.einsum(equation, *operands)


@public(method=False, arrays=_einsum_arrays)
def einsum(equation: str | Operand, *operands: Operand) -> Tensor:
    """Return the sum of products that an equation in Einstein's notation describes.

    Parameters
    ----------
    equation : str
        The subscripts of the operands, separated by commas, and optionally ``->`` and those of the output; ``...``
        stands for the remaining dimensions. Or operands and lists of integers in turn.

    Raises
    ------
    RuntimeError
        If the equation does not fit the operands.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.einsum("ij,j->i", gs.ones(2, 3), gs.ones(3))
    tensor([3., 3.])
    """
    if state.casting and autocast.covers("einsum", (equation, *operands)):
        return autocast.call("einsum", einsum, equation, *operands)
    if isinstance(equation, str):
        tensors = list(operands[0]) if len(operands) == 1 and isinstance(operands[0], (list, tuple)) else list(operands)
        inputs, output = _parse(equation, len(tensors))
    else:
        tensors, inputs, output = _from_sublists((equation, *operands))
    if not tensors:
        raise RuntimeError("einsum(): must provide at least one operand")
    labels, batch = _spread_ellipses(tensors, inputs)
    wanted = _output_labels(output, labels, batch)
    for i, tensor in enumerate(tensors):
        tensors[i], labels[i] = _diagonals(tensor, labels[i])
    sizes = _check_sizes(tensors, labels)
    while len(tensors) > 1:
        i, j = _best_pair(labels, sizes, wanted)
        others = set(wanted).union(*(set(x) for k, x in enumerate(labels) if k not in (i, j)))
        ones = {x for x in labels[i] if x in labels[j] and x not in others and sizes[x] == 1}
        result, named = _contract(tensors[i], labels[i], tensors[j], labels[j], others | ones)
        del tensors[j], labels[j]
        tensors[i], labels[i] = _without_ones(result, named, ones)
    result, named = _summed(tensors[0], labels[0], set(labels[0]) - set(wanted))
    return _arranged(result, named, wanted)


@public(method=False)
def tensordot(a: Tensor, b: Tensor, dims: Dims = 2, *, out: Tensor | None = None) -> Tensor:
    """Return the products of `a` and `b` summed over dimensions.

    Parameters
    ----------
    dims : int, or two lists of int
        How many of the last of `a` and first of `b`; or which of `a` and which of `b`.

    Raises
    ------
    RuntimeError
        If the sizes differ.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.tensordot(gs.ones(2, 3), gs.ones(3, 4), dims=1).shape
    gradscope.Size([2, 4])
    """
    if out is not None:
        return into(out, "tensordot", [a, b], lambda: tensordot(a, b, dims), exact=True)
    if state.casting and autocast.covers("tensordot", (a, b)):
        return autocast.call("tensordot", tensordot, a, b, dims)
    if hasattr(dims, "_array"):
        dims = dims.tolist()
    if isinstance(dims, int):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(a._array.ndim, b._array.ndim):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
        dims = (list(range(a._array.ndim - dims, a._array.ndim)), list(range(dims)))
    of_a, of_b = ([d] if isinstance(d, int) else list(d) for d in dims)
    if len(of_a) != len(of_b):
        raise RuntimeError(f"both dimension lists should have same length, got {len(of_a)} and {len(of_b)}")
    la: Labels = [("a", i) for i in range(a._array.ndim)]
    lb: Labels = [("b", i) for i in range(b._array.ndim)]
    for number, (i, j) in enumerate(zip(of_a, of_b, strict=True)):
        have_a, have_b = a._array.shape[i], b._array.shape[j]
        if have_a != have_b and 1 in (have_a, have_b):  # sums, as if it were expanded
            a = METHODS["sum"](a, i, True, dtype=a.dtype) if have_b == 1 else a
            b = METHODS["sum"](b, j, True, dtype=b.dtype) if have_a == 1 else b
        elif have_a != have_b:
            raise RuntimeError(
                f"contracted dimensions need to match, but first has size {have_a} in dim {i} and second has size "
                f"{have_b} in dim {j}"
            )
        la[i] = lb[j] = ("sum", number)
    keep = {label for label in (*la, *lb) if label[0] != "sum"}
    return _contract(a, la, b, lb, keep)[0]


@public
def inner(self: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the inner products along the last dimensions; with a 0-d tensor, the product.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.inner(gs.tensor([1.0, 2.0]), gs.tensor([3.0, 4.0]))
    tensor(11.)
    """
    if out is not None:
        return into(out, "inner", [self, other], lambda: inner(self, other), exact=True)
    if not self._array.ndim or not other._array.ndim:
        return self * other
    return tensordot(self, other, ([self._array.ndim - 1], [other._array.ndim - 1]))
