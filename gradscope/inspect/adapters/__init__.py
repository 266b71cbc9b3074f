"""What the instruments ask of a framework, and who answers.

:mod:`.protocol` is the question; :mod:`.native` answers for gradscope's own runtime.
"""

from __future__ import annotations

from .native import NativeAdapter
from .protocol import Adapter, NodeCall, Observation, Observer, OperatorCall, SavedView, Write

__all__ = ["Adapter", "NativeAdapter", "NodeCall", "Observation", "Observer", "OperatorCall", "SavedView", "Write"]
