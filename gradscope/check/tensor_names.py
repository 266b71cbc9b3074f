"""Names of tensors: of a leaf by the program's variables, of a saved tensor by the node that computed it."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

from ..inspect.adapters import Adapter, expected_spec
from ..inspect.records.records import dtype_name
from ..inspect.source.frame_variables import variables_of
from ..runtime.events import is_library_file

__all__ = ["name_of", "producer_of"]


def name_of(leaf: Any) -> str:
    """Return the path of a parameter, or the variable of a leaf, as a live frame of the user's knows it.

    Parameters
    ----------
    leaf : Tensor
        Of either framework.

    Returns
    -------
    str
        Empty when no frame knows it.

    Examples
    --------
    >>> import gradscope as gs
    >>> weights = gs.ones(2, requires_grad=True)
    >>> name_of(weights)
    'weights'
    """
    frame: FrameType | None = sys._getframe(1)
    found = ""
    while frame is not None:
        if not is_library_file(frame.f_code.co_filename):
            # A name from further out (`model.fc1.weight` in the training loop) beats one from within (`self.weight`).
            found = _name_among(leaf, variables_of(frame)) or found
        frame = frame.f_back
    return found


def producer_of(adapter: Adapter, node: Any, saved: Any) -> str:
    """Return the node that computed a saved tensor that is an input of the node and has history.

    Parameters
    ----------
    node : object
        Which saved it.

    Returns
    -------
    str
        Empty where it is not known.
    """
    looks = (saved.shape, dtype_name(saved.dtype))
    inputs = set()
    for child, number in adapter.edges(node):
        spec = None if child is None else expected_spec(adapter, child, number)
        if child is not None and spec is None:
            return ""
        if spec is not None and (spec.shape, spec.dtype) == looks:
            inputs.add(adapter.node_name(child))
    # Where several attributes look alike, the name under which it was saved does not tell which it was.
    producer = inputs.pop() if len(inputs) == 1 else ""
    return "" if producer == "AccumulateGrad" else producer


def _name_among(leaf: Any, variables: dict[str, Any]) -> str:
    entries = list(variables.items())
    for name, value in entries:
        for prefix, module in ((name, value), *_attributes(name, value)):
            for path, parameter in _parameters(module):
                if parameter is leaf:
                    return f"{prefix}.{path}"
    return next((name for name, value in entries if value is leaf), "")


def _attributes(name: str, value: Any) -> list[tuple[str, Any]]:
    """Return what hangs on `self`: a trainer's model."""
    return [(f"self.{key}", item) for key, item in getattr(value, "__dict__", {}).items()] if name == "self" else []


def _parameters(module: Any) -> list[tuple[str, Any]]:
    """Return the named parameters of a module; of anything else, none."""
    if not callable(getattr(type(module), "named_parameters", None)):
        return []
    return list(module.named_parameters())
