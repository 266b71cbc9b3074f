"""The flags that every operator checks, and the per-thread modes behind them.

``special`` is the one module-level flag of law 5: it is the number of things that want more than plain recording
(event listeners, anomaly mode, saved-tensor hooks, inference mode) in any thread. While it is 0 an operator looks no
further.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from typing import Any

__all__ = ["GRAD", "INFERENCE", "STOCHASTIC", "VIEW", "VOLATILE", "local", "next_sequence"]

# Bits of Tensor._flags. Anything from VOLATILE up leaves the common path.
GRAD = 1
VIEW = 2
VOLATILE = 4
INFERENCE = 8
# Drawn by a stochastic function (gradscope.autograd.legacy): has a node, though it does not require grad.
STOCHASTIC = 16

special: int = 0
anomaly: bool = False
anomaly_check_nan: bool = True
anomaly_check_inf: bool = False

_special_lock = threading.Lock()

next_sequence: Callable[[], int] = itertools.count().__next__


def add_special(amount: int) -> None:
    """Raise (or lower) the count behind ``special``."""
    global special
    with _special_lock:
        special += amount


class ThreadModes(threading.local):
    """Modes of one thread."""

    grad_enabled: bool = True
    inference: bool = False
    saved_hooks: tuple[Any, ...] = ()
    saved_hooks_disabled: str | None = None
    before_write: Any = None
    current_node: Any = None
    current_task: Any = None


local = ThreadModes()
