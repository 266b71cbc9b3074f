"""The flags that every operator checks, and the per-thread modes behind them.

``special`` is the one module-level flag of law 5: whether anything wants more than plain recording (event listeners,
anomaly mode, saved-tensor hooks, inference mode, autocast, subclasses that override calls) in any thread. While nothing
does an operator looks no further.
"""

from __future__ import annotations

import itertools
import threading
from typing import Any

__all__ = ["CONNECTED", "GRAD", "INERT", "INFERENCE", "MATH_BITS", "VIEW", "local", "next_sequence"]

# Bits of Tensor._flags. Anything from INERT up leaves the common path.
GRAD = 1
VIEW = 2
# Whatever is computed from it is inert too and not recorded, whatever else takes part.
INERT = 4
INFERENCE = 8
# It has a node, to which backward leads, though it does not require grad.
CONNECTED = 16
# Its elements are the conjugates or the negatives of what lies in its memory (runtime/tensor/math_bits.py).
MATH_BITS = 32

# Stands for True as ``grad_enabled`` in inference mode, where nothing is recorded whatever is enabled inside it.
UNRECORDED: Any = 0

special: bool = False
# How many modes are behind it: where there are none, an operator may still take its fast path.
modes_on: int = 0
# In how many threads autocast is on.
casting: int = 0
# How many tensors and modes there are that have their say in calls (runtime/tensor/overrides.py).
overriding: int = 0
anomaly: bool = False
anomaly_check_nan: bool = True
anomaly_check_inf: bool = False

_listening = False
# A collection may end a tensor's life while the lock is held.
_special_lock = threading.RLock()

# Compiled operators call next() themselves, which is the fastest way to a number that no other thread gets.
sequence = itertools.count()


def next_sequence() -> int:
    """Return the sequence number of a new node."""
    return next(sequence)


def add_modes(amount: int) -> None:
    """Raise (or lower) the count of modes that are on."""
    global modes_on
    with _special_lock:
        modes_on += amount
        _set_special()


def add_casting(amount: int) -> None:
    """Raise (or lower) the number of threads that autocast is on in."""
    global casting
    with _special_lock:
        casting += amount
        _set_special()


def add_overriding(amount: int) -> None:
    """Raise (or lower) the count of what has its say in calls."""
    global overriding
    with _special_lock:
        overriding += amount
        _set_special()


def set_listening(anybody: bool) -> None:
    """Say whether anybody listens to events."""
    global _listening
    with _special_lock:
        _listening = anybody
        _set_special()


def _set_special() -> None:
    global special
    special = _listening or modes_on > 0 or casting > 0 or overriding > 0


# One entry for each thread that does not record: while it is empty an operator need not read its own thread's mode,
# which takes as long as finding out the shape of its result. It is a list because append() and pop() need no lock. A
# thread that ends without recording leaves its entry, which costs that much.
unrecorded: list[None] = []


class ThreadModes(threading.local):
    """Modes of one thread."""

    _records: bool = True
    inference: bool = False
    saved_hooks: tuple[Any, ...] = ()
    saved_hooks_disabled: str | None = None
    before_write: Any = None
    # What keeps results of operators, and has them for later calls (utils/checkpoint/selective.py).
    selective_checkpoint: Any = None
    current_node: Any = None
    current_task: Any = None
    # Forward mode: whether tangents are computed, and whether one is being computed (runtime/tensor/tangents.py).
    forward_grad: bool = True
    in_tangent: bool = False
    # The dtype of autocast for each device type that it is on for; None while it is off (runtime/autocast.py).
    autocast: dict[str, Any] | None = None
    # How many blocks are open in which tensors have no say in calls, and the modes that have it
    # (runtime/tensor/overrides.py).
    overrides_off: int = 0
    function_modes: tuple[Any, ...] = ()

    @property
    def grad_enabled(self) -> bool:
        """Whether operators are recorded."""
        return self._records

    @grad_enabled.setter
    def grad_enabled(self, value: bool) -> None:
        before = self._records
        self._records = value
        if value and not before:
            unrecorded.pop()
        elif before and not value:
            unrecorded.append(None)


local = ThreadModes()
