"""Former overloads in which numbers stand between the tensors: ``p.data.add_(-lr, grad)``.

PyTorch takes them to this day, and warns (``tools/autograd/deprecated.yaml``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...memory.dtype import NUMBERS
from ...tensor.tensor import Tensor
from ...user_warnings import warn

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ..declaration.annotations import Argument, Results
    from ..declaration.registry import Operator, Parameter

__all__ = ["run_older"]


def run_older(op: Operator, name: str, given: tuple[Argument, ...], out: Argument = None) -> Results:
    """Call an operator whose positional arguments may be those of an older overload.

    Parameters
    ----------
    name : str
        Of the function that was called: the operator's, or that of its form in place.
    given : tuple
        All positional arguments, of which there are more than the operator has now.

    Raises
    ------
    TypeError
        If they are those of no overload.
    """
    overload = next((one for one in _overloads(op) if _takes(one, given)), None)
    if overload is None:
        expected = sum(not parameter.keyword_only for parameter in op.parameters)
        raise TypeError(f"{name}() takes {expected} positional arguments but {len(given)} were given")
    warn(
        f"This overload of {name} is deprecated:\n\t{name}({_told(overload)})\n"
        f"Consider using one of the following signatures instead:\n\t{name}({_told(op.parameters)})"
    )
    function = op.function if name == op.name else op.inplace_function
    options = {p.name: value for p, value in zip(overload, given, strict=True)}
    if out is not None:
        options["out"] = out
    return function(options.pop("self"), **options)  # type: ignore[misc] # a form in place is there where one was called


def _overloads(op: Operator) -> Iterator[tuple[Parameter, ...]]:
    """Yield the older overloads as functions have them, and as methods do: with the tensor itself first."""
    for overload in op.older:
        yield overload
        yield tuple(sorted(overload, key=lambda parameter: parameter.name != "self"))


def _takes(overload: tuple[Parameter, ...], given: tuple[Argument, ...]) -> bool:
    kinds = [Tensor if parameter.is_tensor else NUMBERS for parameter in overload]
    return len(kinds) == len(given) and all(map(isinstance, given, kinds))


def _told(parameters: Iterable[Parameter]) -> str:
    """Return parameters as PyTorch's message has them."""
    parts, starred = [], False
    for p in parameters:
        if p.keyword_only and not starred:
            parts.append("*")
            starred = True
        kind, shown = p.type.replace("Scalar", "Number"), "input" if p.name == "self" else p.name
        parts.append(f"{kind} {shown}" + ("" if p.default is None else f" = {p.default}"))
    return ", ".join(parts)
