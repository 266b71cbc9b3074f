"""Names: of leaves and buffers by the program's variables, of a saved tensor by the node that computed it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable
from types import FrameType
from typing import Any

from ...inspect.adapters import Adapter, expected_spec
from ...inspect.records.records import dtype_name
from ...inspect.source.frame_variables import variables_of
from ...program_files import is_library_file

__all__ = ["buffer_name_of", "name_of", "producer_of"]


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
    return _named(lambda variables: _name_among(leaf, variables))


def buffer_name_of(adapter: Adapter, memory: Hashable) -> str:
    """Return the path of the module's buffer that lies in a memory, as a live frame of the user's knows it.

    Parameters
    ----------
    memory : object
        See ``Adapter.memory_key``.

    Returns
    -------
    str
        Empty when no frame knows one.

    Examples
    --------
    >>> import gradscope as gs
    >>> from gradscope.inspect.adapters import NativeAdapter
    >>> norm = gs.nn.BatchNorm1d(2)
    >>> buffer_name_of(NativeAdapter(), NativeAdapter().memory_key(norm.running_mean))
    'norm.running_mean'
    """

    def lies_there(buffer: Any) -> bool:
        return adapter.is_tensor(buffer) and adapter.memory_key(buffer) == memory

    return _named(lambda variables: _path_among(variables, "named_buffers", lies_there))


def _named(look: Callable[[dict[str, Any]], str]) -> str:
    """Return what a function finds among the variables of the user's frames, the outermost that it finds."""
    frame: FrameType | None = sys._getframe(2)
    found = ""
    while frame is not None:
        if not is_library_file(frame.f_code.co_filename):
            # A name from further out (`model.fc1.weight` in the training loop) beats one from within (`self.weight`).
            found = look(variables_of(frame)) or found
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
    path = _path_among(variables, "named_parameters", lambda parameter: parameter is leaf)
    return path or next((name for name, value in variables.items() if value is leaf), "")


def _path_among(variables: dict[str, Any], method: str, wanted: Callable[[Any], bool]) -> str:
    """Return the path of what a module's method names, of a module that is a variable or hangs on `self`."""
    for name, value in list(variables.items()):
        for prefix, module in ((name, value), *_attributes(name, value)):
            if callable(getattr(type(module), method, None)):
                for path, tensor in list(getattr(module, method)()):
                    if wanted(tensor):
                        return f"{prefix}.{path}"
    return ""


def _attributes(name: str, value: Any) -> list[tuple[str, Any]]:
    """Return what hangs on `self`: a trainer's model."""
    return [(f"self.{key}", item) for key, item in getattr(value, "__dict__", {}).items()] if name == "self" else []
