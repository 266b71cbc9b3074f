"""What the instruments ask of a framework, and who answers.

:mod:`.protocol` is the question; :mod:`.native` answers for gradscope's own runtime.
"""

from __future__ import annotations

from .native import NativeAdapter
from .protocol import Adapter, NodeCall, Observation, Observer, SavedView

__all__ = ["Adapter", "NativeAdapter", "NodeCall", "Observation", "Observer", "SavedView"]
