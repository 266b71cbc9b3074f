"""The names in PyTorch under which tensors and what belongs to them stand in a file."""

from __future__ import annotations

from typing import Any, NoReturn

from ..runtime.memory import dtype as dtypes

__all__ = [
    "DEVICE",
    "DTYPES",
    "PARAMETER",
    "PARAMETER_WITH_STATE",
    "SIZE",
    "STORAGES",
    "SUBCLASS",
    "TENSOR",
    "TENSOR_CLASS",
    "Foreign",
]


class Foreign:
    """A name in PyTorch, which need not be installed."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __call__(self, *args: Any) -> NoReturn:
        """Is not called, but the pickle module asks whether it could be."""
        raise TypeError(f"{self.path} is only a name")


STORAGES = {d: Foreign(f"torch.{d.legacy_name.removesuffix('Tensor')}Storage") for d in dtypes.ALL_DTYPES}
DTYPES = {d: Foreign(f"torch.{d.name}") for d in dtypes.ALL_DTYPES}
TENSOR = Foreign("torch._utils._rebuild_tensor_v2")
PARAMETER = Foreign("torch._utils._rebuild_parameter")
PARAMETER_WITH_STATE = Foreign("torch._utils._rebuild_parameter_with_state")
SUBCLASS = Foreign("torch._tensor._rebuild_from_type_v2")
TENSOR_CLASS = Foreign("torch.Tensor")
SIZE = Foreign("torch.Size")
DEVICE = Foreign("torch.device")
