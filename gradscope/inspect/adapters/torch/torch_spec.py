"""The shape, dtype and device of a PyTorch tensor, known without PyTorch."""

from __future__ import annotations

from ...records.records import TensorSpec

__all__ = ["TorchSpec"]


class TorchSpec(TensorSpec):
    """The spec of a PyTorch tensor, told apart from those of other frameworks by its class.

    It is kept in records, which are read where there is no PyTorch too.
    """

    __slots__ = ()
