"""Memory shared with other libraries, by DLPack."""

from __future__ import annotations

from typing import Any

from ..runtime.tensor.creation import from_dlpack
from ..runtime.tensor.tensor import Tensor

__all__ = ["from_dlpack", "to_dlpack"]


def to_dlpack(tensor: Tensor) -> Any:
    """Return a DLPack capsule of a tensor's memory; new code passes the tensor itself to ``from_dlpack``.

    Raises
    ------
    BufferError
        If the tensor requires grad, or its dtype has no place in DLPack.

    Examples
    --------
    >>> import gradscope as gs
    >>> x = gs.ones(2)
    >>> gs.utils.dlpack.from_dlpack(gs.utils.dlpack.to_dlpack(x)).add_(1)
    tensor([2., 2.])
    >>> x
    tensor([2., 2.])
    """
    return tensor.__dlpack__()
