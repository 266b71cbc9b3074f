"""What a session knows of the parameters: shapes, norms over the backwards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ...adapters import Adapter
from ...records.module_tracking import Tracker, join
from ..history.norm_history import NormHistory
from .debugged_backward import TaskView
from .session_records import ParameterRecord

__all__ = ["KnownParameter", "known_parameters", "parameter_records"]

_RECENT = 40
"""Backwards whose norms are told of each parameter: a line of a screen shows no more."""


class KnownParameter(NamedTuple):
    """A parameter, as long as it lives and after.

    Parameters
    ----------
    number : int
        Its number in the history of norms.
    has_grad : bool
        Whether it had a gradient when somebody looked.
    """

    path: str
    shape: tuple[int, ...]
    requires_grad: bool
    number: int
    has_grad: bool


def known_parameters(
    adapter: Adapter, tracker: Tracker, view: TaskView | None, history: NormHistory
) -> list[KnownParameter]:
    """Return the parameters of the modules that have run, and the other leaves that a backward brings gradients to.

    Parameters
    ----------
    view : TaskView or None
        A backward that has not been closed.
    """
    named = {
        join(label, path): tensor
        for label, root in tracker.roots().items()
        for path, tensor in adapter.named_parameters(root)
    }
    for path, leaf in ({} if view is None else view.named_leaves()).items():
        named.setdefault(path, leaf)
    return [
        KnownParameter(
            path,
            tuple(adapter.spec(tensor).shape),
            bool(tensor.requires_grad),
            history.number_of(tensor),
            adapter.leaf_grad(tensor) is not None,
        )
        for path, tensor in named.items()
    ]


def parameter_records(
    known: Sequence[KnownParameter], view: TaskView | None, history: NormHistory
) -> tuple[ParameterRecord, ...]:
    """Return what is known of parameters, with what a backward and the latest ones have brought them.

    Parameters
    ----------
    view : TaskView or None
        The backward that is shown.
    """
    places = {} if view is None else view.parameter_places()
    recent = history.norms([one.number for one in known], _RECENT)
    found = []
    for one, norms in zip(known, recent):
        place = places.get(one.path, -1)
        norm = view.record(place).norm if view is not None and place >= 0 else None
        lost = one.requires_grad and view is not None and place < 0 and not norms and not one.has_grad
        found.append(ParameterRecord(one.path, one.shape, one.requires_grad, place, norm, lost, norms))
    return tuple(found)
