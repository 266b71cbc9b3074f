"""Dispatch from lower floors upwards: the class Tensor, the operators by name, and a few functions of floors above.

The floors of the runtime import downwards only: :mod:`~.ops` stands on :mod:`~.engine`, that on :mod:`~.tensor` and
:mod:`~.graph`, these on :mod:`~.memory`. Some of them need what stands above: a node wraps what it saved in a tensor, a
view is made anew by an operator, ``Tensor.backward()`` runs the engine. They find it here, as attributes of this
module at the time of the call. :func:`fill` puts it here, once, when :mod:`~.ops.families` has imported every operator;
whoever stands above the thing imports it as usual.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .ops.declaration.registry import Operator

__all__ = ["METHODS", "OPERATORS", "PUBLIC", "TENSOR_OPERATORS", "fill"]

OPERATORS: dict[str, Operator] = {}
"""Every operator under its full name, e.g. ``"add.scalar"``; each is entered by its declaration."""

PUBLIC: dict[str, Callable[..., Any]] = {}
"""The functions of ``gradscope.*`` by name: operators, what is composed of them, factories."""

METHODS: dict[str, Callable[..., Any]] = {}
"""The methods that :class:`~.tensor.tensor.Tensor` gets from the operators, by name."""


class TensorOperators:
    """The public operators, recorded, as attributes; functions are looked up once and kept."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name not in PUBLIC and name not in OPERATORS:
            raise AttributeError(f"there is no operator {name!r} for a derivative to use")
        function = PUBLIC[name] if name in PUBLIC else OPERATORS[name].function
        setattr(self, name, function)
        return function


TENSOR_OPERATORS = TensorOperators()
"""``F`` in derivatives that run on tensors; on bare arrays it is an ``ArrayOperators``."""

# The class Tensor. It is None until it is filled in: while operators are declared, no class has a say yet.
tensor_type: Any = None

# The functions that are filled in, each under the name that it has in its own file.
edge_of: Callable[..., Any]  # tensor/views.py
backward: Callable[..., None]  # engine/backward.py
backward_scalar: Callable[..., None]
run_node_alone: Callable[..., Any]  # engine/graph_task.py
wrap: Callable[..., Any]  # engine/gradient_validation.py
instrument: Callable[..., None]  # ops/execution/general.py
refuse_out: Callable[..., None]  # ops/execution/inplace_and_out.py
store_out: Callable[..., Any]
resize_storage: Callable[..., None]  # ops/shape/resize_and_set.py


def fill(tensor: Any, functions: tuple[Callable[..., Any], ...]) -> None:
    """Put the class Tensor here, with the operators' methods, and each of the functions under its own name.

    Parameters
    ----------
    tensor : type
        :class:`~.tensor.tensor.Tensor`.
    functions : tuple of callable
        Those that the module declares above.

    Raises
    ------
    ValueError
        If a function is missing, or one is given that the module does not declare.
    """
    given, declared = {function.__name__: function for function in functions}, _declared()
    if set(given) != declared:
        raise ValueError(f"dispatch wants {sorted(declared)}, and was given {sorted(given)}")
    for name, method in METHODS.items():
        if name not in tensor.__dict__:
            setattr(tensor, name, method)
    globals().update(given, tensor_type=tensor)


def _declared() -> set[str]:
    """Return the names of the functions that are to be filled in: those with an annotation whose value comes later."""
    return {name for name, kind in __annotations__.items() if kind.startswith("Callable")}
