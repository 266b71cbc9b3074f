"""The saved tensors of a node, on a PyTorch (before 2.10) whose ``SavedTensor`` does not show what it holds.

Then there is but one way to it, which is to unpack it as the node does. Of a tensor that has been written since PyTorch
refuses that, for good; so its slot may be given hooks, which are handed what it holds, and which refuse in the same
words when the node asks. What a saved-tensor hook of the program has packed is left alone: unpacking runs the program.
"""

from __future__ import annotations

import functools
import itertools
import re
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.autograd.graph import saved_tensors_hooks

from .transforms.dispatch_modes import all_modes_aside

__all__ = ["SHOWN", "UnpackedSlot", "count_hooks", "note_thread", "versions_in"]

SHOWN = hasattr(torch._C._autograd.SavedTensor, "data")
"""Whether this PyTorch shows it."""

_REFUSED = "gradscope.inspect.refused"
_THREAD = "gradscope.inspect.thread"
_HIDDEN = object()  # it stands for the object that a hook has made of a tensor
_VERSIONS = re.compile(r"is at version (\d+); expected version (\d+) instead")
_NOW = re.compile(r"is at version \d+")


def versions_in(error: BaseException) -> tuple[int, int] | None:
    """Return (version now, version then) if an error is PyTorch's refusal to unpack a saved tensor, else None."""
    found = _VERSIONS.search(str(error)) if isinstance(error, RuntimeError) else None
    return None if found is None else (int(found[1]), int(found[2]))


_numbers = itertools.count()


class _Entered(threading.local):
    """How many saved-tensor hooks are in force on a thread, and since when."""

    count = 0
    span: _Span

    def __init__(self) -> None:
        # Python gives the identity of a thread that has ended to another.
        self.thread = next(_numbers)


class _Span:
    """The sequence numbers, of which each thread has its own, between which hooks were in force on one."""

    __slots__ = ("end", "start", "thread")

    def __init__(self, thread: int, start: int) -> None:
        self.thread, self.start, self.end = thread, start, _NOT_YET

    def contains(self, thread: int | None, number: int) -> bool:
        """Whether a node was made under them; where its thread is not known, whether it may have been."""
        return self.start <= number < self.end and (thread is None or thread == self.thread)


_entered = _Entered()
# No graph is older than the last of them.
_spans: list[_Span] = []
_KEPT_SPANS = 1000
_NOT_YET = 2**64 - 1
_sequence_nr = torch._C._autograd._get_sequence_nr


def count_hooks() -> Callable[[], None]:
    """Note from now on when saved-tensor hooks are in force, which is not `SHOWN`; return what ends it."""
    enter, leave = saved_tensors_hooks.__enter__, saved_tensors_hooks.__exit__

    @functools.wraps(enter)
    def noted_enter(self: Any) -> Any:
        result = enter(self)
        if not _entered.count:
            _entered.span = _Span(_entered.thread, _sequence_nr())
            _spans.append(_entered.span)
            del _spans[:-_KEPT_SPANS]
        _entered.count += 1
        return result

    @functools.wraps(leave)
    def noted_leave(self: Any, *args: Any) -> Any:
        if _entered.count:  # else it was entered before the count began
            _entered.count -= 1
            if not _entered.count:
                _entered.span.end = _sequence_nr()
        return leave(self, *args)

    def undo() -> None:
        saved_tensors_hooks.__enter__, saved_tensors_hooks.__exit__ = enter, leave

    saved_tensors_hooks.__enter__, saved_tensors_hooks.__exit__ = noted_enter, noted_leave
    return undo


if not SHOWN:
    count_hooks()


def note_thread(nodes: Sequence[Any]) -> None:
    """Note on nodes that this thread has made them, which is asked where what they have saved is not `SHOWN`."""
    if not SHOWN:
        for node in nodes:
            node.metadata[_THREAD] = _entered.thread


def _made_under_hooks(node: Any) -> bool:
    thread, number = node.metadata.get(_THREAD), node._sequence_nr()
    return any(span.contains(thread, number) for span in _spans)


class UnpackedSlot:
    """A ``SavedTensor`` with the attributes that it has in later versions.

    Parameters
    ----------
    attribute : str
        Under which the node gives what is unpacked.
    place : int or None
        Which of several it is.
    """

    __slots__ = ("_node", "_raw", "_attribute", "_place")

    def __init__(self, node: Any, raw: Any, attribute: str, place: int | None) -> None:
        self._node, self._raw, self._attribute, self._place = node, raw, attribute, place

    @property
    def unpack_hook(self) -> Any:
        """The hook that unpacks the saved tensor, None if it was saved without hooks."""
        return _HIDDEN if _made_under_hooks(self._node) else None

    @property
    def data(self) -> Any:
        """The tensor, stale or not; None if it has been released, or never was."""
        if self.unpack_hook is not None:
            return _HIDDEN
        taken = self._node.metadata.get((_REFUSED, self._attribute, self._place))
        if taken is not None:
            stale = taken()
            return None if stale is None else stale.tensor
        try:
            with torch._C.DisableTorchFunction(), all_modes_aside():  # to unpack a tensor is an operator
                found = getattr(self._node, self._attribute)
                tensor = found if self._place is None else found[self._place]
                # A node that saves its own result saves the values, without the history that leads back to the node.
                return tensor.detach() if tensor is not None and tensor.grad_fn == self._node else tensor
        except RuntimeError as error:
            return None if versions_in(error) is None else self._take(error)

    def _take(self, error: RuntimeError) -> Any:
        """Return what PyTorch refuses to unpack, and go on refusing."""
        stale = _StaleTensor(error, self._node.metadata.setdefault((_REFUSED, str(error)), weakref.WeakSet()))
        try:
            self._raw.register_hooks(stale.pack, _StaleTensor.refuse)
        except RuntimeError:  # the slot is empty, or was packed by a hook of its own
            return None
        self._node.metadata[_REFUSED, self._attribute, self._place] = weakref.ref(stale)
        return stale.tensor


class _StaleTensor:
    """What is kept in the slot of a tensor that has been written since it was saved, or that is unpacked with one.

    Parameters
    ----------
    together : WeakSet of _StaleTensor
        Those that the same error is about: it does not say which of the tensors it means.
    """

    def __init__(self, error: RuntimeError, together: weakref.WeakSet[_StaleTensor]) -> None:
        self.tensor: Any = None
        self._words, self._versions = str(error), versions_in(error)
        self._meant = False
        self._together = together
        together.add(self)

    def pack(self, tensor: torch.Tensor) -> _StaleTensor:
        """Take what the slot holds."""
        self.tensor = tensor
        self._meant = self._versions is not None and self._versions[0] == tensor._version
        return self

    @property
    def _restored(self) -> bool:
        """Whether what was saved has been put back, and its version with it."""
        return self._meant and self._versions is not None and self._versions[1] == self.tensor._version

    def refuse(self) -> torch.Tensor:
        """Refuse to give it to the node, as PyTorch would, unless what was saved is back."""
        if any(stale._restored for stale in self._together):
            tensor: torch.Tensor = self.tensor
            return tensor
        now = f"is at version {self.tensor._version}"
        raise RuntimeError(_NOW.sub(now, self._words) if self._meant else self._words)
