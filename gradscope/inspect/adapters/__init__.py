"""Adapters: the questions of the instruments, answered for each framework.

:mod:`.protocol` is the question; :mod:`.native_adapter` answers for gradscope's own runtime, :mod:`.torch` for PyTorch,
and :mod:`.both_frameworks` for programs of which one does not know beforehand.
"""

from __future__ import annotations

from .both_frameworks import AnyAdapter, adapter_for
from .native_adapter import NativeAdapter
from .protocol import (
    NOT_TOLD,
    Adapter,
    Converted,
    DataParallel,
    FailedCall,
    MemoryShare,
    NodeCall,
    Observation,
    Observer,
    OperatorCall,
    Plan,
    SavedView,
    Write,
    expected_spec,
)

__all__ = [
    "NOT_TOLD",
    "Adapter",
    "AnyAdapter",
    "Converted",
    "DataParallel",
    "FailedCall",
    "MemoryShare",
    "NativeAdapter",
    "NodeCall",
    "Observation",
    "Observer",
    "OperatorCall",
    "Plan",
    "SavedView",
    "Write",
    "adapter_for",
    "expected_spec",
]
