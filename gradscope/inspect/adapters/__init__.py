"""Adapters: the questions of the instruments, answered for each framework.

- :mod:`~.protocol`: what an instrument may ask, and of what an observer is told
- :mod:`~.native_adapter`: the answers of gradscope's own runtime
- :mod:`~.torch`: PyTorch's
- :mod:`~.both_frameworks`: for programs of which one does not know beforehand
- :mod:`~.event_guards`: an error of an observer's own does not reach the program
- :mod:`~.guarded_observer`: what most instruments are, which hear no more after one
- :mod:`~.gradient_hooks`: hooks by name that only look, and those that change a gradient
- :mod:`~.framework_hooks`: listening in what the program has imported by now
- :mod:`~.import_watch`: to be told when a script imports PyTorch
- :mod:`~.recent_norms`: what one node has made is given to the next: its norm is taken once
- :mod:`~.context_attributes`: what a custom Function has kept on its ``ctx``
- :mod:`~.memory_fingerprint`: whether memory was written, at a bounded cost
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
    NodeFacts,
    Observation,
    Observer,
    OnDevice,
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
    "OnDevice",
    "DataParallel",
    "FailedCall",
    "MemoryShare",
    "NativeAdapter",
    "NodeCall",
    "NodeFacts",
    "Observation",
    "Observer",
    "OperatorCall",
    "Plan",
    "SavedView",
    "Write",
    "adapter_for",
    "expected_spec",
]
