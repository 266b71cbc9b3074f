"""PyTorch's keywords beside a parameter's own name: ``input`` for the tensor, and NumPy's ``axis`` and ``keepdims``.

The parser of PyTorch's calls takes them wherever it takes the parameter (``numpy_compatibility_arg_names`` in
``torch/csrc/utils/python_arg_parser.cpp``).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from ... import state
from ...tensor import overrides

if TYPE_CHECKING:
    from .annotations import Argument, Dims, Results

__all__ = ["as_function", "as_method", "numpy_dims"]

_INPUT = ("input", "x", "a", "x1")
_FIRST = ("self", "input", "A", "x")
_OTHERS = {"dim": ("axis",), "keepdim": ("keepdims",), "other": ("x2",)}


def as_function(body: Callable[..., Any]) -> Callable[..., Any]:
    """Return `body` as a function of the package, whose first tensor is called ``input``.

    What is no tensor there raises PyTorch's TypeError.
    """
    names = _names_of(body)
    own = names[0] if names else ""
    if own not in _FIRST:
        return as_method(body)
    others = _other_names(names, with_input=own)
    foreign = others.keys()

    @functools.wraps(body)
    def function(*args: Any, **kwargs: Any) -> Results:
        if state.overriding:
            overridden = overrides.dispatch(function, args, kwargs)
            if overridden is not overrides.NONE:
                return overridden
        if kwargs and not foreign.isdisjoint(kwargs):
            kwargs = _own_names(kwargs, others)
        try:
            return body(*args, **kwargs) if kwargs else body(*args)
        except AttributeError:
            if not (args or own in kwargs):
                raise
            first = args[0] if args else kwargs[own]
            if hasattr(first, "_array"):
                raise
            overridden = overrides.dispatch(function, args, kwargs)
            if overridden is not overrides.NONE:
                return overridden
            raise TypeError(
                f"{body.__name__}(): argument 'input' (position 1) must be Tensor, not {first.__class__.__name__}\n"
                "Wrap it: gradscope.tensor(...)."
            ) from None

    return overrides.asking(function)


def as_method(body: Callable[..., Any]) -> Callable[..., Any]:
    """Return `body` as a method, which takes ``axis`` for ``dim``; itself if it does so already, or has no `dim`."""
    names = _names_of(body)
    if "dim" not in names or "axis" in names:
        return body
    others = _other_names(names)
    foreign = others.keys()

    @functools.wraps(body)
    def method(*args: Any, **kwargs: Any) -> Results:
        if not kwargs:
            return body(*args)
        return body(*args, **(kwargs if foreign.isdisjoint(kwargs) else _own_names(kwargs, others)))

    return method


def _names_of(body: Callable[..., Any]) -> tuple[str, ...]:
    """Return the parameters' names; inspect.signature() takes too long for all that is declared at import."""
    signature = getattr(body, "__signature__", None)
    if signature is not None:
        return tuple(signature.parameters)
    code = body.__code__
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def _other_names(names: Iterable[str], with_input: str = "") -> dict[str, str]:
    """Return, for each further name, the parameter that it stands for."""
    found = {other: own for own in names for other in _OTHERS.get(own, ())}
    if with_input:
        found |= dict.fromkeys(_INPUT, with_input)
    return {other: own for other, own in found.items() if other not in names or other == own}


def _own_names(kwargs: dict[str, Argument], others: dict[str, str]) -> dict[str, Argument]:
    """Return keyword arguments under the parameters' own names; one that is given twice stays, to be refused."""
    return {others.get(name, name) if others.get(name) not in kwargs else name: kwargs[name] for name in kwargs}


def numpy_dims(name: str, dim: Dims, keepdim: bool, axis: Dims, keepdims: bool | None) -> tuple[Dims, bool]:
    """Return `dim` and `keepdim` of a call that was given NumPy's names for them.

    For the reductions that every loss ends in: they take these names themselves, which spares them a call.
    """
    if (axis is not None and dim is not None) or (keepdims is not None and keepdim):
        twice = "axis" if axis is not None and dim is not None else "keepdims"
        raise TypeError(f"{name}() got an unexpected keyword argument '{twice}'\nIt is another name, and given twice.")
    return dim if axis is None else axis, keepdim if keepdims is None else keepdims
