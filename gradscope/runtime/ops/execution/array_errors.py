"""Errors of an array module, in PyTorch's words, with the shapes and dtypes involved."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import TYPE_CHECKING

import numpy

from ... import state
from ...kernels.elementwise import with_checks
from ...memory import dtype
from ...memory.dtype import scalar_type
from ...memory.elements import as_element, is_number
from ..declaration.annotations import Argument, Array, Formula, Namespace, Number, Operand

if TYPE_CHECKING:
    from ..declaration.registry import Operator


modes = state.local


class LinAlgError(RuntimeError):
    """A matrix on which a decomposition or an inversion could not be completed.

    See Also
    --------
    gradscope.linalg.inv_ex : returns a code instead, as the other functions that end in ``_ex`` do.

    Examples
    --------
    >>> import gradscope as gs
    >>> try:
    ...     gs.linalg.inv(gs.zeros(2, 2))
    ... except gs.linalg.LinAlgError as error:
    ...     print(str(error).split(":")[0])
    linalg.inv
    """


def refuse_bools(name: str, values: list[Operand]) -> None:
    """Raise for a subtraction in which one operand is a bool tensor, or a bool, before promotion hides it."""
    kinds = [
        "b" if isinstance(value, bool) else value.dtype.kind
        for value in values
        if isinstance(value, bool) or hasattr(value, "dtype")
    ]
    if "b" not in kinds:
        return
    if set(kinds) == {"b"} and len(kinds) > 1:
        raise RuntimeError(undefined_for(name, {"b"}))
    raise RuntimeError(
        "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, use "
        "the `~` or `logical_not()` operator instead."
    )


def real_ufunc(ufunc: str, refusal: str) -> Formula:
    """Return the forward of a ufunc that asks which number is larger: of complex ones, NumPy compares part by part.

    Complex numbers raise NotImplementedError, with their scalar type put into `refusal`.
    """
    known = getattr(numpy, ufunc)

    def forward(xp: Namespace, self: Array, other: Array) -> Array:
        if self.dtype.kind == "c":
            name = f"'{scalar_type(self.dtype)}'"
            raise NotImplementedError(f"{refusal.format(name)}\nTake real, imag or abs of the tensor.")
        return known(self, other) if xp is numpy else getattr(xp, ufunc)(self, other)

    return with_checks(forward, known)


def checked_ufunc(ufunc: str, name: str, kinds: str) -> Formula:
    """Return the forward of a ufunc that takes more dtypes than PyTorch's kernel `name`: see :func:`refuse_kinds`."""
    known = getattr(numpy, ufunc)

    def forward(xp: Namespace, self: Array, *others: Operand) -> Array:
        if self.dtype.kind in kinds:
            refuse_kinds(name, self, kinds)
        return known(self, *others) if xp is numpy else getattr(xp, ufunc)(self, *others)

    return with_checks(forward, known)


class BadValueError(ValueError):
    """A forward's own complaint of a value, which the caller gets as it is: other ValueErrors become RuntimeErrors."""


def forward_error(op: Operator, arguments: tuple[Argument, ...], error: Exception) -> Exception:
    """Translate an array module's complaint into PyTorch's, with the shapes and dtypes involved."""
    if modes.grad_enabled:
        for value in arguments:
            # As in PyTorch, a call that fails has brought the history of a view up to date whose base was written.
            getattr(value, "grad_fn", None)
    if isinstance(error, BadValueError):
        return error
    wrong = wrong_argument(op, arguments)
    if wrong is not None:
        return wrong
    described = []
    for parameter, value in zip(op.parameters, arguments, strict=True):
        if hasattr(value, "_array"):
            described.append(f"{parameter.name}: {dtype.BY_NUMPY[value._dtype].name} {list(value._array.shape)}")
    shapes = [a._array.shape for a in arguments if hasattr(a, "_array")]
    unbroadcast = op.promote or str(error).startswith("operands could not be broadcast")
    mismatch = broadcast_mismatch(shapes) if unbroadcast else None
    name = op.name.partition(".")[0]
    where = f"\nIn {name}({', '.join(described)})."
    if isinstance(error, TypeError):
        kinds = {value._dtype.kind for value in arguments if hasattr(value, "_array")}
        refused = undefined_for(name, kinds)
        if refused is not None:
            return RuntimeError(refused + where)
        if mismatch is None and str(error).startswith(("ufunc", "numpy boolean")):
            return not_implemented_for(name, arguments, where)
    return RuntimeError(mismatch + where) if mismatch else type_of_error(error)(f"{name}(): {error}{where}")


def not_implemented_for(name: str, arguments: tuple[Argument, ...], where: str) -> NotImplementedError:
    """Return PyTorch's complaint of a dtype that an operator does not take: the highest among the arguments'."""
    kinds = [a._dtype for a in arguments if hasattr(a, "_array")]
    highest = max(kinds, key=lambda kind: dtype.CATEGORY[kind.kind])
    return NotImplementedError(f"\"{name}_cpu\" not implemented for '{scalar_type(highest)}'{where}")


def refuse_kinds(name: str, array: Array, kinds: str) -> None:
    """Raise, in PyTorch's words, where an array is of one of the dtype kinds that a function does not take."""
    if array.dtype.kind in kinds:
        raise NotImplementedError(
            f"\"{name}\" not implemented for '{scalar_type(array.dtype)}'\n"
            "Convert the tensor first, e.g. with .float()."
        )


def cannot_hold(result: str, kind: numpy.dtype) -> RuntimeError:
    """Return PyTorch's complaint of a result that is written into an array of a dtype that cannot hold it."""
    return RuntimeError(
        f"result type {result} can't be cast to the desired output type {scalar_type(kind)}\nConvert it with .float()."
    )


def as_multiple(name: str, alpha: Number, target: Array) -> Number:
    """Return the factor `name` of an addition, where an operand has the dtype of `target`.

    Raises
    ------
    RuntimeError
        For one that would change the dtype.
    """
    kind = target.dtype.kind
    if isinstance(alpha, bool) and kind != "b":
        raise RuntimeError(f"Boolean {name} only supported for Boolean results.\nGive a number.")
    if kind in "biu" and isinstance(alpha, float):
        raise RuntimeError(
            f"For integral input tensors, argument {name} must not be a floating point number.\n"
            "Convert the tensors with .float()."
        )
    if kind != "c" and isinstance(alpha, complex):
        raise RuntimeError(
            f"For non-complex input tensors, argument {name} must not be a complex number.\n"
            f"It is {alpha}; give a real number."
        )
    return as_element(alpha, target)


def wrong_argument(op: Operator, arguments: tuple[Argument, ...]) -> TypeError | None:
    """Return PyTorch's complaint of an argument that is not of its parameter's type, or None if all are."""
    for position, (parameter, value) in enumerate(zip(op.parameters, arguments, strict=True), 1):
        accepted = _ACCEPTED.get(parameter.type.rstrip("?"))
        if accepted is None or accepted[0](value) or (value is None and parameter.default == "None"):
            continue
        if value is None and parameter.type.endswith("?"):
            continue
        return TypeError(
            f"{op.name.partition('.')[0]}(): argument '{parameter.name}' (position {position}) must be {accepted[1]}, "
            f"not {value.__class__.__name__}\nThe schema is {op.schema}."
        )
    return None


def _is_integer(value: Number) -> bool:
    return hasattr(value, "__index__") and not isinstance(value, bool) and not getattr(value, "ndim", 0)


_ACCEPTED: dict[str, tuple[Callable[[Argument], bool], str]] = {
    "int": (_is_integer, "int"),
    "float": (is_number, "float"),
    "Scalar": (is_number, "Number"),
    "int[]": (
        lambda value: _is_integer(value) or (isinstance(value, (list, tuple)) and all(map(_is_integer, value))),
        "tuple of ints",
    ),
    "str": (lambda value: isinstance(value, str), "str"),
}


def undefined_for(name: str, kinds: set[str]) -> str | None:
    """Return PyTorch's sentence on an operator that is not defined for operands of these dtype kinds."""
    if name == "neg" and kinds == {"b"}:
        return (
            "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use "
            "the `~` or `logical_not()` operator instead."
        )
    if name in ("sub", "rsub") and kinds == {"b"}:
        return (
            "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` "
            "operator instead."
        )
    return None


def type_of_error(error: Exception) -> type[Exception]:
    """PyTorch raises RuntimeError where NumPy raises ValueError; numpy.exceptions.AxisError is an IndexError."""
    if isinstance(error, IndexError):
        return IndexError
    return TypeError if isinstance(error, TypeError) else RuntimeError


def broadcast_mismatch(shapes: list[tuple[int, ...]]) -> str | None:
    """Return PyTorch's sentence on the first two shapes that do not broadcast, or None if all do."""
    found = (_pair_mismatch(a, b) for a, b in combinations(shapes, 2))
    return next((sentence for sentence in found if sentence is not None), None)


def _pair_mismatch(a: tuple[int, ...], b: tuple[int, ...]) -> str | None:
    for i in range(1, min(len(a), len(b)) + 1):
        if a[-i] != b[-i] and 1 not in (a[-i], b[-i]):
            dim = max(len(a), len(b)) - i
            return (
                f"The size of tensor a ({a[-i]}) must match the size of tensor b ({b[-i]}) "
                f"at non-singleton dimension {dim}"
            )
    return None
