"""Queries about the model: its modules, and each parameter with the norms of its gradient over the backwards."""

from __future__ import annotations

from dataclasses import replace

from ...records.module_tracking import module_records
from .pause_context import PauseContext
from .session_findings import SessionFindings
from .session_records import ModuleRecord, ParameterRecord

__all__ = ["ModelQueries"]


class ModelQueries(SessionFindings):
    """What a session knows of the model of the program."""

    def modules(self) -> tuple[ModuleRecord, ...]:
        """Return the modules that have run, and those inside of them; after the end those of the last backward.

        Raises
        ------
        NotParkedError
            If the program runs.

        Examples
        --------
        >>> import gradscope as gs
        >>> import gradscope.inspect as gi
        >>> model = gs.nn.Sequential(gs.nn.Linear(3, 2), gs.nn.ReLU())
        >>> session = gi.Debugger.for_call(lambda: model(gs.ones(1, 3)).sum().backward())
        >>> session.start()
        >>> state = session.wait()
        >>> [(module.path, module.kind) for module in session.modules()]
        [('', 'Sequential'), ('0', 'Linear'), ('1', 'ReLU')]
        >>> session.abort()
        """
        if self.ended:
            return self._session.modules_at_end
        return self._at_stop(lambda place: module_records(self._adapter, self._session.tracker.roots()))

    def parameters(self) -> tuple[ParameterRecord, ...]:
        """Return every parameter of the modules that have run, and the other leaves of the backward that is shown.

        Raises
        ------
        NotParkedError
            If the program runs.

        Examples
        --------
        >>> import gradscope as gs
        >>> import gradscope.inspect as gi
        >>> w = gs.ones(4, requires_grad=True)
        >>> session = gi.debug((w * 2).sum(), params={"w": w})
        >>> state = session.wait()
        >>> session.parameters()
        (ParameterRecord(path='w', shape=(4,), requires_grad=True, index=2, norm=None, unreached=False, recent=()),)
        >>> session.cont()
        >>> state = session.wait()
        >>> session.parameters()[0].norm
        4.0
        """

        def at_stop(place: PauseContext) -> tuple[ParameterRecord, ...]:
            left_out = self._left_out_at(place)
            known = self._session.parameters()
            return tuple(replace(one, unreached=False) if one.path in left_out else one for one in known)

        if self.ended:
            return self._session.parameters()
        return self._at_stop(at_stop)

    def losses(self) -> tuple[float, ...]:
        """Return the losses of the latest backwards, at most 120, the oldest first.

        The last is that of the backward that is shown: what came after it is left out in the past. Where that loss is
        not known, there are none.
        A loss is known where backward() was called of a variable, and is one number: of ``loss.backward()``,
        ``accelerator.backward(loss)`` or ``scaler.scale(loss).backward()``.

        Raises
        ------
        NotParkedError
            If the program runs.

        Examples
        --------
        >>> import gradscope as gs
        >>> import gradscope.inspect as gi
        >>> def train(w):
        ...     for factor in (2.0, 1.0):
        ...         loss = (w * factor).sum()
        ...         loss.backward()
        >>> session = gi.Debugger.for_call(lambda: train(gs.ones(4, requires_grad=True)))
        >>> session.start()
        >>> state = session.wait()
        >>> session.cont()
        >>> state = session.wait()
        >>> session.losses()
        (8.0, 4.0)
        """
        if self.ended:
            return self._session.losses()
        return self._at_stop(lambda place: self._session.losses())
