"""Weights of linear layers and embeddings, which are told by the name of their class: a program may have namesakes."""

from __future__ import annotations

from typing import Any

from ...adapters import Adapter

__all__ = ["weight_of"]


def weight_of(adapter: Adapter, module: Any, kind: str) -> Any | None:
    """Return the weight of a layer.

    Parameters
    ----------
    kind : str
        The name of its class.

    Returns
    -------
    Parameter or None
        None of another layer, and of a namesake whose weight is no matrix that learns.

    Examples
    --------
    >>> import gradscope as gs
    >>> from gradscope.inspect.adapters import NativeAdapter
    >>> layer = gs.nn.Linear(2, 3)
    >>> weight_of(NativeAdapter(), layer, "Linear") is layer.weight, weight_of(NativeAdapter(), layer, "Embedding")
    (True, None)
    """
    weight: Any = getattr(module, "weight", None) if type(module).__name__ == kind else None
    learns = adapter.is_tensor(weight) and adapter.is_parameter(weight) and len(weight.shape) == 2
    return weight if learns else None
