"""Which forwards of a training loop no backward has followed: the iterations that a program skips."""

from __future__ import annotations

import math
import sys
import weakref
from collections.abc import Set as AbstractSet
from types import CodeType, FrameType
from typing import Any, NamedTuple

from ...adapters import Adapter
from ...source.call_sites import user_frames
from ...source.source_paths import shown_line
from ..loss_value import loss_value
from .call_lines import line_of_frame, own_frame

__all__ = ["ForwardAccount", "ForwardLog", "SkippedForward"]

_KEPT = 16  # of those between two steps, and of those of a whole run


class SkippedForward(NamedTuple):
    """A forward that no backward has followed, at a line where one follows otherwise.

    Attributes
    ----------
    step : int
        The number of the step before it; 0 before the first.
    stepped, forward : str
        The lines that called ``step()`` then, and the module, as ``'file:line'``; empty where they are not known.
    loss : str
        ``'nan'``, ``'inf'`` or ``'-inf'``, where that was its loss; empty where it was finite, or is not known.
    """

    step: int
    stepped: str
    forward: str
    loss: str = ""

    def text(self) -> str:
        """Return what a rank has done there, to be said after its number.

        Examples
        --------
        >>> SkippedForward(3, "", "train.py:5", "nan").text()
        'skipped an iteration after step 3: no backward followed the forward at train.py:5, whose loss was nan'
        """
        line = f" ({shown_line(self.stepped)})" if self.stepped else ""
        after = f"after step {self.step}{line}" if self.step else "before its first step"
        loss = f", whose loss was {self.loss}" if self.loss else ""
        return f"skipped an iteration {after}: no backward followed the forward at {shown_line(self.forward)}{loss}"


class ForwardAccount(NamedTuple):
    """How far a rank has come.

    Attributes
    ----------
    step : int
        The number of its newest step; 0 before the first.
    stepped : str
        The line that took it.
    skipped : tuple of SkippedForward
        The newest iterations that it has skipped, the oldest first.
    skips : int
        How many those were in all.
    """

    step: int = 0
    stepped: str = ""
    skipped: tuple[SkippedForward, ...] = ()
    skips: int = 0


class _Forward(NamedTuple):
    """A forward of a whole model: the line that called it, in which function."""

    identity: int
    module: weakref.ref[Any]
    line: str
    code: CodeType | None


class _Trained:
    """The lines at which models are trained: a backward has followed, and reached, a forward there.

    A line may be of a function that calls other models too, which are only looked at.
    """

    def __init__(self) -> None:
        self._lines: dict[int, tuple[weakref.ref[Any], set[str]]] = {}  # by id: a module may have no hash

    def add(self, forward: _Forward) -> None:
        """Add the line of a forward, for its model."""
        known, lines = self._lines.get(forward.identity, (None, set()))
        if known is not forward.module:
            lines = set()
            self._lines[forward.identity] = forward.module, lines
        lines.add(forward.line)

    def clear(self) -> None:
        """Forget all."""
        self._lines.clear()

    def __contains__(self, forward: _Forward) -> bool:
        known, lines = self._lines.get(forward.identity, (None, set()))
        return known is forward.module and forward.line in lines


class ForwardLog:
    """Follows the forwards of whole models in training mode, on a program's threads.

    Evaluation in training mode is no skipped iteration: it has a line of its own, which no backward follows.
    """

    def __init__(self, adapter: Adapter) -> None:
        self._adapter = adapter
        self._waiting: dict[int, _Forward] = {}  # by the ids of their models: those that no backward has followed
        self._trained = _Trained()
        self._reduces = False  # whether a model that is trained is one whose gradients are reduced
        self._since: list[tuple[_Forward, SkippedForward]] = []  # skipped since the newest step: the newest of them
        self._dropped = 0  # and how many there were before those
        self._account = ForwardAccount()  # of the time before the newest step
        self._backward: tuple[CodeType, int] | None = None

    def entered(self, module: Any, line: str) -> None:
        """Note that a line calls a whole model."""
        if not getattr(module, "training", True):
            return
        frame = own_frame(sys._getframe(1))
        before = self._waiting.get(id(module))
        trains = before is not None and before.module() is module and self._may_train(before)
        if not self._adapter.of(module).is_grad_enabled():  # it is looked at, or a re-entrant checkpoint calls it
            if not trains:
                self._waiting.pop(id(module), None)
            return
        if before is not None and trains and self._is_reduced(module):
            self._since.append((before, self._skip(before, self._bad_loss(frame))))
            if len(self._since) > _KEPT:
                del self._since[0]
                self._dropped += 1
        code = None if frame is None else frame.f_code
        self._waiting[id(module)] = _Forward(id(module), weakref.ref(module), line, code)

    def followed(self, frame: FrameType | None, leaves: AbstractSet[int]) -> None:
        """Note that a backward begins, which a function calls, and the ids of the leaves that it may reach."""
        living = [(forward, module) for forward in self._waiting.values() if (module := forward.module()) is not None]
        # A model that is evaluated beside (an average of another, on one rank) is not trained by that one's backward.
        reached = [pair for pair in living if pair[0] in self._trained or self._holds(pair[1], leaves)] or living
        reduced = self._adapter.parallel_modules([module for _, module in reached])
        if reduced and not self._reduces:
            self._reduces = True
            self._trained.clear()
        for forward, module in reached:
            if not self._reduces or any(module is one for one in reduced):  # others wait for no other model
                self._trained.add(forward)
        self._waiting.clear()
        self._backward = None if frame is None else (frame.f_code, frame.f_lineno)

    def _holds(self, module: Any, leaves: AbstractSet[int]) -> bool:
        """Whether some of the leaves are parameters of a module, or stand for them."""
        if any(id(parameter) in leaves for _, parameter in self._adapter.named_parameters(module)):
            return True
        return any(id(whole) in leaves for _, whole in self._adapter.stand_ins(module))

    def before_step(self, number: int, line: str) -> list[SkippedForward]:
        """Return what was skipped since the step before, when a line is about to take one."""
        found = self._iterations()
        self._account = self._with(found)._replace(step=number, stepped=line)
        self._since, self._dropped = [], 0
        return found

    def account(self, frame: FrameType | None = None) -> ForwardAccount:
        """Return how far the rank has come; its frame is as for :meth:`after_step`."""
        return self._with(self.after_step(frame))

    def after_step(self, frame: FrameType | None = None) -> list[SkippedForward]:
        """Return what was skipped since the newest step, when the program stands or has ended.

        Parameters
        ----------
        frame : frame, optional
            Where it stands: it may be about to call backward(), unless the function that does has returned or its loss
            is not finite. Without one it has ended.
        """
        found = self._iterations()
        running = [] if frame is None else [*user_frames(frame)]
        codes = {one.f_code for one in running}
        calls = None if self._backward is None else self._backward[0]
        for forward in list(self._waiting.values()):
            if forward not in self._trained or forward.line in map(line_of_frame, running):
                continue
            loss = self._bad_loss(frame, waits=False)  # a device may wait for other ranks
            if loss or frame is None or (forward.code is calls and calls not in codes):
                found.append(self._skip(forward, loss))
        return found

    def _with(self, found: list[SkippedForward]) -> ForwardAccount:
        """Return the account with what was skipped since the newest step."""
        step, stepped, skipped, skips = self._account
        return ForwardAccount(step, stepped, (*skipped, *found)[-_KEPT:], skips + self._dropped + len(found))

    def _may_train(self, forward: _Forward) -> bool:
        """Whether a backward follows such forwards; before the first one, it may follow any."""
        return self._backward is None or forward in self._trained

    def _iterations(self) -> list[SkippedForward]:
        """Return what was skipped on lines of the training, as a backward has told by now."""
        return [skip for forward, skip in self._since if forward in self._trained]

    def _is_reduced(self, module: Any) -> bool:
        """Whether other ranks wait for the backward of the last forward of a module; not under no_sync()."""
        parallel = self._adapter.parallel_modules([module])
        return not parallel or self._adapter.of(module).data_parallel(module).synchronised

    def _skip(self, forward: _Forward, loss: str) -> SkippedForward:
        return SkippedForward(self._account.step, self._account.stepped, forward.line, loss)

    def _bad_loss(self, frame: FrameType | None, *, waits: bool = True) -> str:
        """Return the loss that the function which calls backward() holds now, unless that is finite."""
        if self._backward is None or frame is None:
            return ""
        code, line = self._backward
        calls = next((one for one in user_frames(frame) if one.f_code is code), None)
        value = None if calls is None else loss_value(self._adapter, calls, line, waits=waits)
        return "" if value is None or math.isfinite(value) else str(value)
