"""The debugger session: start a program, stop it inside its backward passes, look, change, go on.

A :class:`Debugger` has no face. Line mode and the terminal UI are faces: they call its verbs, which return at once,
and learn from :meth:`Debugger.wait` or a listener that the program has stopped. The program runs on a thread of its
own; everything that touches its tensors is done by that thread, at the gate where it waits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...adapters import Adapter
from ...debuggee.program import CallProgram
from ...debuggee.script import ScriptProgram
from ...records.records import DebuggerEvent, NodeRecord, SessionState
from ..history.history_policy import HistoryPolicy
from ..history.time_travel import TimeTravel
from ..stops.breakpoint_specs import parse_spec
from ..stops.run_targets import RunCommand
from ..stops.stop_settings import StopSettings
from .model_queries import ModelQueries
from .node_sequence import MOST_RECORDS
from .pause_context import PauseContext
from .session_errors import ProgramEndedError, SessionError
from .session_records import WhatIf
from .tensor_queries import TensorQueries

__all__ = ["Debugger", "ProgramEndedError", "SessionError"]

_GO_TO_A_NODE = "step() goes to the first node of a backward, back() and goto() to one that was recorded."


class Debugger(TimeTravel, StopSettings, ModelQueries, TensorQueries):
    """A session with one program.

    Parameters
    ----------
    program : Program
        What to run; see :meth:`for_script` and :meth:`for_call`.
    adapter : Adapter, optional
        The framework; by default gradscope's own runtime, and PyTorch once the program has imported it.

    Attributes
    ----------
    title : str
        What is being debugged: the script's path, or the function's name.

    Notes
    -----
    Verbs (:meth:`start`, :meth:`step`, :meth:`into`, :meth:`out`, :meth:`cont`, :meth:`run_to`,
    :meth:`next_backward`) return at once, with the state already ``RUNNING``; :meth:`wait` blocks until the next stop.
    Before :meth:`start`, the first verb starts the program: ``step()`` to the first node of the first backward,
    ``cont()`` to the first breakpoint. Verbs raise :class:`SessionError` while the program runs. When it has ended,
    those that look at what was recorded still work (:meth:`back`, :meth:`goto`, :meth:`inspect`, ...), and those that
    would let it go on raise :class:`ProgramEndedError`; :meth:`restart` starts it again.

    :meth:`inspect`, :meth:`evaluate`, :meth:`set_grad` and their kin run on the paused program's thread and block until
    it has answered; call them from a worker thread where blocking matters.

    See Also
    --------
    set_trace, listen, Recorder

    Examples
    --------
    >>> import gradscope as gs
    >>> from gradscope.inspect import Debugger
    >>> w = gs.tensor([1.0, 2.0], requires_grad=True)
    >>> session = Debugger.for_call((w * w).sum().backward)
    >>> session.add_breakpoint("op:Mul").id
    1
    >>> session.cont()
    >>> session.wait().value, session.reason.text
    ('paused before', 'breakpoint 1 (op:Mul)')
    >>> [node.name for node in session.nodes], session.current
    (['SumBackward0', 'MulBackward0', 'AccumulateGrad'], 1)
    >>> session.node.grad_outputs[0].norm
    1.4142135623730951
    >>> session.evaluate("saved['self'] * 10")
    array([10., 20.], dtype=float32)
    >>> session.set_grad(0, 0.5)
    >>> session.cont()
    >>> session.wait().value, w.grad
    ('finished', tensor([1., 2.]))
    """

    # --- making one ---

    @classmethod
    def for_script(
        cls,
        path: str,
        argv: Sequence[str] = (),
        *,
        adapter: Adapter | None = None,
        history: HistoryPolicy | None = None,
    ) -> Debugger:
        """Return a session for a Python script, which will run as ``python path argv...`` runs it.

        Parameters
        ----------
        argv : sequence of str
            The script's arguments.

        Returns
        -------
        Debugger
            Not started.

        Raises
        ------
        FileNotFoundError, IsADirectoryError
            If there is no such script.
        """
        return cls(ScriptProgram(path, argv), adapter, history=history)

    @classmethod
    def for_call(
        cls, function: Callable[[], Any], *, adapter: Adapter | None = None, history: HistoryPolicy | None = None
    ) -> Debugger:
        """Return a session for a function without arguments.

        Returns
        -------
        Debugger
            Not started.
        """
        return cls(CallProgram(function), adapter, history=history)

    # --- where it stands ---

    @property
    def task_index(self) -> int:
        """Which backward of the program is shown, from 1; 0 before the first."""
        view = self._session.shown[0]
        return self._session.task_count if view is None else view.number

    @property
    def task_count(self) -> int:
        """How many backwards the program has begun on the threads that were followed, also while it runs free."""
        return self._session.task_count

    @property
    def nodes(self) -> Sequence[NodeRecord]:
        """The nodes of the backward that is shown, in the engine's order: run, current, and predicted.

        A record is made when it is asked for, so that a slice of a hundred thousand nodes costs what the slice costs.
        Records have their gradients in numbers where somebody looked at the node; :meth:`inspect` gives the full one.
        Another backward brings another sequence.
        """
        return self._session.nodes

    def __repr__(self) -> str:
        here = self.current
        if not (self.state.paused or self.state is SessionState.REPLAYING) or here < 0:
            return f"<Debugger: {self.state}>"
        return f"<Debugger: {self.state} node {here} of {len(self.nodes)}, {self.nodes[here].name}>"

    def _repr_html_(self) -> str:
        # Tables load when a notebook asks for one.
        from .debugger_html import debugger_html

        return debugger_html(self)

    @property
    def current(self) -> int:
        """Index into :attr:`nodes` of the node where the program has last stopped, or the cursor is; -1 for none."""
        return self._session.shown[1]

    @property
    def node(self) -> NodeRecord:
        """The node at hand, :attr:`current`, with everything that :meth:`inspect` tells of it.

        Raises
        ------
        SessionError
            If no backward is shown: the program has not been stopped in one.
        """
        if self.current < 0:
            raise SessionError(f"there is no node at hand: the program is {self.state.value}\n{_GO_TO_A_NODE}")
        return self.inspect(self.current)

    def where(self) -> str:
        """Return the user's lines that led to this backward(), outermost first, as a traceback has them."""
        return self._session.where()

    # --- going on ---

    def start(self) -> None:
        """Start the program and stop at the first node of its first backward (or at an earlier breakpoint)."""
        self._go_or_travel(RunCommand("entry"))

    def step(self, n: int = 1) -> None:
        """Run `n` nodes and stop before the next; past the end of a backward, stop at the next one's first node."""
        if n < 1:
            raise ValueError(f"step() takes a positive number of nodes, got {n}")
        self._go_or_travel(RunCommand("step", count=n))

    def into(self) -> None:
        """From before a node, run it and stop after it, when what it produced can be seen; else like :meth:`step`."""
        self._go_or_travel(RunCommand("into"))

    def out(self) -> None:
        """Run until the backward of the current module has ended.

        Raises
        ------
        SessionError
            If the current node belongs to no module.
        """
        view, index = self._session.shown
        inside = self.state.paused and view is not None and bool(view.order) and index >= 0
        if inside and view is not None and not view.module_at(index):
            node = f"node {index} {view.record(index).name}"
            raise SessionError(f"{node} belongs to no module that could be finished\n`step` or `until` go on.")
        self._go_or_travel(RunCommand("out"))

    def cont(self) -> None:
        """Run to the next breakpoint, failure or the end of the program."""
        self._go_or_travel(RunCommand("cont"))

    def run_to(self, index: int) -> None:
        """Run until node number `index` of the current backward is about to run.

        Raises
        ------
        ValueError
            If there is no such node, or it has run.
        """
        last, here = len(self.nodes) - 1, self.current
        if not 0 <= index <= last:
            raise ValueError(f"there is no node {index} in this backward: its nodes are 0 to {last}")
        if self.state.paused and index <= here:
            raise ValueError(f"node {index} has already been reached: the program is {self.state.value} node {here}")
        if self.state is not SessionState.REPLAYING:
            self._go(RunCommand("run-to", index=index))
        elif self.ended or self._session.shown[0] is not self._session.view or index <= self.live:
            self.goto(index)
        else:
            self.go_live()
            self._go(RunCommand("run-to", index=index))

    def until(self, target: int | str) -> None:
        """Run to a node of the current backward by its number, or to the next that a spec names.

        Parameters
        ----------
        target : int or str
            ``12``, or a spec as for :meth:`add_breakpoint`, such as ``'train.py:31'``.

        Raises
        ------
        BreakpointError
            If the spec cannot be understood.
        """
        if isinstance(target, int) or target.strip().isdecimal():
            self.run_to(int(target))
        else:
            self._go_or_travel(RunCommand("until", matches=parse_spec(target.strip()), text=target.strip()))

    def next_backward(self) -> None:
        """Run to the first node of the next backward (or an earlier breakpoint)."""
        self._go_or_travel(RunCommand("entry"))

    def pause(self) -> None:
        """Ask the running program to stop before the next node it runs."""
        with self._changed:  # the program may just come to a stop, which this would let it pass later
            if self.state is not SessionState.RUNNING:
                raise SessionError(f"there is nothing to pause: the program is {self.state.value}")
            self._session.pause_requested = True

    # --- looking and changing, on the program's own thread ---

    def inspect(self, index: int) -> NodeRecord:
        """Return everything known about a node of the current backward.

        Returns
        -------
        NodeRecord
            With the gradients seen so far. Saved tensors have their summaries as long as the node's backward has not
            ended and the program is paused.

        Raises
        ------
        ValueError
            If there is no such node.
        """
        if not 0 <= index < len(self.nodes):
            raise ValueError(f"there is no node {index} in this backward: it has {len(self.nodes)} nodes")
        view = self._session.shown[0]
        assert view is not None
        if not self.state.paused:
            return view.summarized(index)
        return self._at_stop(lambda place: self._session.inspected(view, index))

    def records(self, start: int, stop: int) -> list[NodeRecord]:
        """Return some of :attr:`nodes`, with the gradients seen so far in numbers.

        Parameters
        ----------
        start, stop : int
            As of a slice.
        """
        view = self._session.shown[0]
        places = range(len(self.nodes))[max(0, start) : max(0, stop)]
        return [] if view is None else [view.summarized(index) for index in places]

    def backward_records(self, number: int) -> list[NodeRecord]:
        """Return the nodes of a backward that is recorded, also of another than the one that is shown.

        Parameters
        ----------
        number : int
            Which backward of the program, from 1.

        Raises
        ------
        SessionError
            If nothing of it is recorded, or it has more than 20,000 nodes.

        Examples
        --------
        >>> import gradscope as gs
        >>> import gradscope.inspect as gi
        >>> session = gi.debug((gs.ones(3, requires_grad=True) * 2).sum())
        >>> state = session.wait()
        >>> [(node.operator, node.norm) for node in session.backward_records(1)]
        [('Sum', 1.0), ('Mul', None), ('AccumulateGrad', None)]
        >>> session.abort()
        """
        shown = self._session.shown[0]
        view = shown if shown is not None and shown.number == number else self._session.history.backward(number)
        if view is None or not view.order:
            if number > self.task_count:
                raise SessionError(f"backward {number} has not begun: the latest is {self.task_count}")
            raise SessionError(
                f"nothing is recorded of backward {number}\n"
                "What runs free keeps the norms of the last backward: `record on` records all from now on."
            )
        if len(view.order) > MOST_RECORDS:
            raise SessionError(f"backward {number} has {len(view.order):,} nodes: more than {MOST_RECORDS:,}")
        return [view.record(index) for index in range(len(view.order))]

    def evaluate(self, expression: str) -> Any:
        """Return the value of an expression where the program is paused.

        Parameters
        ----------
        expression : str
            Knows ``grad`` (the first incoming gradient), ``grads``, ``produced``, ``saved``, ``norm``, ``node``,
            ``index``, ``last``, ``changed``, ``isnan``, ``isinf``, ``np``, ``at_node(12)`` and ``at_node(12,
            backward=3)`` (another node's ``grads``, ``produced`` and ``saved``), then the variables of the function
            that called backward(), and, unless these are among them, ``iteration`` and ``backward`` (which one it is,
            from 1). At a node of the past gradients are those recorded.

        Returns
        -------
        object
            Tensors come back as NumPy arrays, copied.

        Raises
        ------
        NotParkedError
            If the program is not paused.
        Exception
            What the expression raised.
        """
        return self._at_stop(lambda place: place.evaluate(expression))

    def evaluate_text(self, expression: str) -> str:
        """Return the ``repr`` of an expression's value, made on the program's thread.

        Parameters
        ----------
        expression : str
            As for :meth:`evaluate`.
        """
        return self._at_stop(lambda place: place.evaluate_text(expression))

    def set_grad(self, slot: int, value: Any) -> None:
        """Replace a gradient: an incoming one before the node, a produced one after it.

        Parameters
        ----------
        slot : int
            Which one, from 0.
        value : number, array, tensor or str
            A string is an expression as in :meth:`evaluate`; numbers and smaller shapes broadcast.

        Raises
        ------
        NotParkedError
            If the program is not paused.
        ValueError, TypeError
            If there is no such gradient, or the value does not fit its shape and dtype.
        """
        self._edit(lambda place: place.set_grad(slot, value))

    def zero_grad_slot(self, slot: int) -> None:
        """Set a gradient to zero: an incoming one before the node, a produced one after it."""
        self._edit(lambda place: place.set_grad(slot, 0))

    def scale_grad(self, slot: int, factor: float) -> None:
        """Multiply a gradient by a number."""
        self._edit(lambda place: place.scale_grad(slot, factor))

    def skip(self) -> None:
        """Leave the node out that is about to run: what it would have produced is undefined.

        Raises
        ------
        ValueError
            If the node has run, or the framework cannot leave one out.
        """
        self._edit(lambda place: place.skip())

    def what_if(self, slot: int, value: Any) -> WhatIf:
        """Return what would become of the parameters if an incoming gradient were another.

        The rest of the backward is run aside, node by node: nothing is accumulated, and the program does not notice.
        Hooks are not called, since they may do anything; :attr:`WhatIf.hooks_left_out` names them. It works where the
        program is paused and at earlier nodes of a backward in progress.

        Parameters
        ----------
        slot : int
            Which incoming gradient of the node, from 0.
        value : number, array, tensor or str
            As for :meth:`set_grad`.

        Raises
        ------
        NotParkedError
            If the program is not paused.
        ValueError, TypeError
            If there is no such gradient, the value does not fit, or a node cannot be run again.

        Examples
        --------
        >>> import gradscope as gs
        >>> from gradscope.inspect import Debugger
        >>> w = gs.tensor([1.0, 2.0], requires_grad=True)
        >>> session = Debugger.for_call((w * w).sum().backward)
        >>> session.start()
        >>> session.wait().value
        'paused before'
        >>> (change,) = session.what_if(0, "grad * 3").changes
        >>> round(change.before, 3), round(change.after, 3), change.relative, w.grad
        (4.472, 13.416, 2.0, None)
        >>> session.abort()
        >>> session.wait().value
        'finished'
        """
        return self._at_stop(lambda place: place.what_if(slot, value))

    def execute(self, statement: str) -> None:
        """Run a Python statement in the paused function of the program, as if it stood there."""
        self._at_stop(lambda place: place.execute(statement))

    @property
    def grad_in(self) -> list[Any]:
        """The incoming gradients of the current node as NumPy arrays, None for an undefined one."""
        return list(self.evaluate("list(grads)"))

    @property
    def grad_out(self) -> list[Any] | None:
        """The produced gradients, None before the node has run."""
        produced: list[Any] | None = self.evaluate("None if produced is None else list(produced)")
        return produced

    def _edit(self, change: Callable[[PauseContext], None]) -> None:
        self._at_stop(change)
        self._broadcast.tell(DebuggerEvent("state", self._state, self._reason))
