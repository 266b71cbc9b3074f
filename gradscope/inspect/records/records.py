"""Immutable records, made on the program's own thread: all that a screen or a prompt reads.

A record holds numbers, text and tuples; never a tensor, a node or a frame. So it can be handed to another thread, kept
as long as one likes, and nothing of the program stays alive because of it.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeAlias

from .quick_making import quickly_made

__all__ = [
    "BackwardFinding",
    "DebuggerEvent",
    "EdgeRecord",
    "Index",
    "InnerOperator",
    "Location",
    "ModuleRecord",
    "NodeRecord",
    "SavedRecord",
    "SessionState",
    "StopReason",
    "TensorPage",
    "TensorSpec",
    "TensorSubject",
    "TensorSummary",
    "WriteRecord",
    "dtype_name",
    "operator_name",
    "operator_of",
]


Index: TypeAlias = int | tuple[int, int]
"""A place in a dimension of a tensor, or where a part of it begins and ends."""


class SessionState(StrEnum):
    """Where a debugger session stands; the value is the word to show.

    See Also
    --------
    Debugger

    Examples
    --------
    >>> from gradscope.inspect import SessionState
    >>> print(SessionState.PAUSED_BEFORE, SessionState.PAUSED_BEFORE.paused)
    paused before True
    """

    NOT_STARTED = "not started"
    RUNNING = "running"
    PAUSED_BEFORE = "paused before"
    PAUSED_AFTER = "paused after"
    REPLAYING = "replaying"
    FINISHED = "finished"
    FAILED = "failed"

    @property
    def paused(self) -> bool:
        """Whether the program waits, at a node or (replaying) while an earlier one is looked at."""
        return self in (SessionState.PAUSED_BEFORE, SessionState.PAUSED_AFTER, SessionState.REPLAYING)

    @property
    def ended(self) -> bool:
        """Whether the program has come to its end, well or not."""
        return self in (SessionState.FINISHED, SessionState.FAILED)


@dataclass(frozen=True, slots=True)
class StopReason:
    """Why the program stopped.

    Attributes
    ----------
    kind : str
        ``'entry'`` (first node of a backward), ``'step'``, ``'run-to'``, ``'breakpoint'``, ``'nan'``, ``'inf'``,
        ``'violation'`` (a saved tensor has been modified), ``'write'`` (one that a breakpoint watches has just been),
        ``'exception'``, ``'pause'``, ``'trace'`` (``set_trace()``), ``'replay'`` (the cursor is at a node of the past),
        ``'live'`` (it is back) or ``'finished'``.
    text : str
        One line to show.
    breakpoint : int or None
        The number of the breakpoint that stopped it.
    writes : tuple of WriteRecord
        At a violation: who has written the saved tensor since, as far as that was noted. In PyTorch these are the calls
        of the program itself and the steps of optimizers; what is written inside another call is not noted.

    See Also
    --------
    Debugger

    Examples
    --------
    >>> import gradscope as gs
    >>> import gradscope.inspect as gi
    >>> session = gi.debug(gs.ones(3, requires_grad=True).exp().sum())
    >>> state = session.wait()
    >>> session.reason
    StopReason(kind='entry', text='first node of backward 1', breakpoint=None, writes=())
    >>> session.cont()
    >>> state = session.wait()
    """

    kind: str
    text: str
    breakpoint: int | None = None
    writes: tuple[WriteRecord, ...] = ()

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class WriteRecord:
    """A write in place into what a node has saved.

    Attributes
    ----------
    name : str
        Under which name the node saved it.
    operator : str
        What wrote: ``'add_'``, ``'SGD.step'``.
    location : Location or None
        The user's line.
    """

    name: str
    operator: str
    location: Location | None


@dataclass(frozen=True, slots=True)
class Location:
    """A line of the user's program, or of a package that it calls.

    Attributes
    ----------
    calls : tuple of Location
        Of a line in an installed package, where an instrument asks for them: who called, and who called that, up to the
        line of the program's own. It is no part of what makes two locations equal.

    See Also
    --------
    NodeRecord

    Examples
    --------
    >>> from gradscope.inspect import Location
    >>> print(Location("train.py", 31, "main", "loss = criterion(model(x), y)"))
    train.py:31
    """

    filename: str
    lineno: int
    function: str
    source: str
    calls: tuple[Location, ...] = field(default=(), compare=False, repr=False)

    def __str__(self) -> str:
        return f"{self.filename}:{self.lineno}"


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """Shape, dtype and device of a tensor: what a node expects of a gradient.

    See Also
    --------
    TensorSummary

    Examples
    --------
    >>> import gradscope as gs
    >>> import gradscope.inspect as gi
    >>> graph = gi.graph(gs.ones(3, requires_grad=True).exp()[0])
    >>> [outputs[0].shape for _, outputs in graph.nodes(data="outputs")]
    [(), (3,), (3,)]
    """

    shape: tuple[int, ...]
    dtype: str
    device: str


@quickly_made
@dataclass(frozen=True, slots=True)
class TensorSummary:
    """A tensor in numbers.

    Attributes
    ----------
    name : str
        What the tensor is called where it was met (``'grad_outputs[0]'``, ``'mat1'``).
    norm : float
        The 2-norm over all elements, so it is NaN as soon as one element is.
    min, max, mean, std : float or None
        Over the finite elements; None if there are none. Complex elements count by their magnitude.
    histogram : tuple of (int, int)
        ``(k, count)``: how many finite non-zero elements have a magnitude in ``[2**k, 2**(k+1))``; empty bins left out.
    preview : str
        The first elements.
    negatives : tuple of (int, int) or None
        The same for the negative elements alone; None where the sign is not known: of complex ones, in a recording.

    See Also
    --------
    summarize : makes it.

    Examples
    --------
    >>> import gradscope as gs
    >>> import gradscope.inspect as gi
    >>> summary = gi.summarize(gs.tensor([3.0, -4.0, 0.0]))
    >>> summary.norm, summary.min, summary.max, summary.zeros, summary.histogram
    (5.0, -4.0, 3.0, 1, ((1, 1), (2, 1)))
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    device: str
    numel: int
    nbytes: int
    norm: float
    min: float | None
    max: float | None
    mean: float | None
    std: float | None
    zeros: int
    nans: int
    infs: int
    histogram: tuple[tuple[int, int], ...]
    preview: str
    negatives: tuple[tuple[int, int], ...] | None = None

    @property
    def has_values(self) -> bool:
        """Whether elements were read: there are none to read of a tensor on the meta device, or of a fake one."""
        return bool(self.numel) or 0 in self.shape

    def _repr_html_(self) -> str:
        # Tables load when a notebook asks for one.
        from .record_html import summary_html

        return summary_html(self)


@dataclass(frozen=True, slots=True)
class TensorSubject:
    """A tensor to look at, or two to compare.

    Attributes
    ----------
    expression : str
        As for :meth:`gradscope.inspect.Debugger.evaluate`: ``'grad'``, ``'at_node(12).saved["mat1"]'``, ...
    against : str
        What it is compared with; empty for nothing.
    measure : str
        By what: ``'difference'`` or ``'relative error'``, that is the difference divided by the larger magnitude.

    See Also
    --------
    TensorPage

    Examples
    --------
    >>> import gradscope.inspect as gi
    >>> gi.TensorSubject("grad", against="at_node(0).grad", measure="relative error")
    TensorSubject(expression='grad', against='at_node(0).grad', measure='relative error')
    """

    expression: str
    against: str = ""
    measure: str = "difference"


@dataclass(frozen=True, slots=True)
class TensorPage:
    """Some numbers of a tensor.

    Attributes
    ----------
    shape : tuple of int
        Of the whole tensor.
    dtype : str
        NumPy's name of it; of a comparison ``'float64'`` or ``'complex128'``.
    values : tuple
        Numbers, in C order; a complex one is a pair.

    See Also
    --------
    TensorSpec

    Examples
    --------
    >>> import gradscope as gs
    >>> import gradscope.inspect as gi
    >>> session = gi.debug((gs.ones(3, requires_grad=True) * 2).sum())
    >>> state = session.wait()
    >>> session.elements("grad")
    TensorPage(shape=(), dtype='float32', values=(1.0,))
    >>> session.cont()
    >>> state = session.wait()
    """

    shape: tuple[int, ...]
    dtype: str
    values: tuple[bool | int | float | tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class SavedRecord:
    """A tensor that a node saved for its derivative.

    Attributes
    ----------
    name : str
        Under which name the node saved it.
    shape : tuple of int or None
        None once released. Inside of a ``vmap`` the samples come first, as in the gradients.
    saved_version, current_version : int or None
        None where no version is kept: released, or packed by a saved-tensor hook.
    state : str
        ``'ok'``, ``'modified'`` (written since it was saved; the node will refuse it) or ``'released'``.
    writes : tuple of WriteRecord
        Who has written it since, where it is modified and that was noted; see :attr:`StopReason.writes`.

    See Also
    --------
    NodeRecord

    Examples
    --------
    >>> import gradscope as gs
    >>> import gradscope.inspect as gi
    >>> session = gi.debug(gs.ones(3, requires_grad=True).exp()[0])
    >>> state = session.wait()
    >>> session.step()
    >>> state = session.wait()
    >>> [saved.name for saved in session.node.saved]
    ['result']
    >>> session.cont()
    >>> state = session.wait()
    """

    name: str
    shape: tuple[int, ...] | None
    dtype: str
    nbytes: int
    saved_version: int | None
    current_version: int | None
    state: str
    summary: TensorSummary | None = None
    writes: tuple[WriteRecord, ...] = ()


@dataclass(frozen=True, slots=True)
class InnerOperator:
    """A call of the forward pass that torch.compile has compiled, and its backward, inside of the region's one node.

    Attributes
    ----------
    operator : str
        The function, method or module that was called: ``'sqrt'``, ``'Linear'``.
    kernels : tuple of str
        The operators of which its backward consists.
    module : str
        The path of the module that called it; empty where it is not known.
    location : Location or None
        The user's line.
    given, made : float or None
        The 2-norm of the gradients that come into it and that leave it; None as long as nobody has looked.
    bad : int
        How many elements are NaN or Inf of what leaves it.
    why : str
        Of the call that has made the first of them: why.

    See Also
    --------
    NodeRecord

    Examples
    --------
    >>> import gradscope.inspect as gi
    >>> gi.InnerOperator("sqrt", ("mul", "div"), given=0.0, made=float("inf"), bad=1).operator
    'sqrt'
    """

    operator: str
    kernels: tuple[str, ...]
    module: str = ""
    location: Location | None = None
    given: float | None = None
    made: float | None = None
    bad: int = 0
    why: str = ""


@dataclass(frozen=True, slots=True)
class EdgeRecord:
    """Where one produced gradient goes: input `input_nr` of the node `target_key`; nowhere if that is None.

    See Also
    --------
    NodeRecord

    Examples
    --------
    >>> import gradscope as gs
    >>> import gradscope.inspect as gi
    >>> session = gi.debug(gs.ones(3, requires_grad=True).exp().sum())
    >>> state = session.wait()
    >>> (edge,) = session.node.edges
    >>> edge.target_key == session.nodes[1].key, edge.input_nr
    (True, 0)
    >>> session.abort()
    """

    target_key: int | None
    input_nr: int


@quickly_made
@dataclass(frozen=True, slots=True)
class NodeRecord:
    """A node of a backward graph, as far as it is known.

    Attributes
    ----------
    index : int
        Place in the engine's order, from 0; -1 for a node that will not run.
    key : int
        Stable identity of the node.
    name, operator : str
        ``'MulBackward0'`` and ``'Mul'``.
    module, parameter : str
        ``'layers.0'`` and, for an AccumulateGrad, ``'layers.0.weight'``; empty when not known.
    location : Location or None
        The user's line that made the node.
    edges : tuple of EdgeRecord
        One per produced gradient.
    state : str
        ``'pending'``, ``'current'``, ``'done'``, ``'failed'`` or ``'skipped'``.
    grad_outputs : tuple of (TensorSummary or None) or None
        The incoming gradients; None when nobody looked, None inside for an undefined gradient.
    grad_inputs : tuple of (TensorSummary or None) or None
        The produced gradients.
    outputs : tuple of TensorSpec
        What the forward operator returned, so what the incoming gradients look like.
    norm : float or None
        The 2-norm over all elements of the incoming gradients; None when nobody looked, or when all are undefined.
    duration : int or None
        Nanoseconds that the node ran, with its hooks, by the clock of the host: a device may have computed on. None
        when it has not run yet.
    edited : bool
        Whether somebody has replaced one of its gradients in the debugger.
    inside : tuple of InnerOperator
        Of what torch.compile has compiled: what is inside, in the order of the backward.
    inherited : str or None
        Where a NaN or an infinity came out of it although none had gone in: the saved tensor that has had it since the
        forward pass, empty where the node has made it; None elsewhere, and where that is not known.

    See Also
    --------
    EdgeRecord, SavedRecord

    Examples
    --------
    >>> import gradscope as gs
    >>> import gradscope.inspect as gi
    >>> session = gi.debug(gs.ones(3, requires_grad=True).exp().sum())
    >>> state = session.wait()
    >>> session.node.name, session.node.operator, session.node.norm
    ('SumBackward0', 'Sum', 1.0)
    >>> session.cont()
    >>> state = session.wait()
    """

    index: int
    key: int
    name: str
    operator: str
    sequence_nr: int
    module: str
    parameter: str
    location: Location | None
    edges: tuple[EdgeRecord, ...]
    state: str = "pending"
    grad_outputs: tuple[TensorSummary | None, ...] | None = None
    grad_inputs: tuple[TensorSummary | None, ...] | None = None
    saved: tuple[SavedRecord, ...] = ()
    outputs: tuple[TensorSpec, ...] = ()
    norm: float | None = None
    duration: int | None = None
    edited: bool = False
    inside: tuple[InnerOperator, ...] = ()
    inherited: str | None = None

    def _repr_html_(self) -> str:
        # Tables load when a notebook asks for one.
        from .record_html import node_html

        return node_html(self)


@dataclass(frozen=True, slots=True)
class ModuleRecord:
    """A module that has run, or is part of one that has.

    Attributes
    ----------
    path : str
        Its path; empty for the model itself.
    kind : str
        The name of its class.
    arguments : str
        What it says about itself: its ``extra_repr()``.
    """

    path: str
    kind: str
    arguments: str = ""


@dataclass(frozen=True, slots=True)
class DebuggerEvent:
    """An event that a session tells its listeners.

    Attributes
    ----------
    kind : str
        ``'state'`` (the program stopped, went on or ended), ``'output'`` (it wrote a line), ``'breakpoints'``
        (the list of breakpoints changed), ``'watches'`` (that of watches), ``'limits'`` (of findings) or ``'log'`` (a
        logpoint was passed).
    reason : StopReason or None
        With ``'state'``: why it stopped.
    text : str
        With ``'output'`` and ``'log'``: the line, without its end.
    stream : str
        With ``'output'``: ``'stdout'`` or ``'stderr'``.

    See Also
    --------
    gradscope.inspect.Debugger.add_listener : registers who is told.

    Examples
    --------
    >>> import gradscope as gs
    >>> import gradscope.inspect as gi
    >>> session = gi.debug(gs.ones(3, requires_grad=True).exp().sum())
    >>> state = session.wait()
    >>> told = []
    >>> unregister = session.add_listener(told.append)
    >>> point = session.add_breakpoint("op:Exp")
    >>> told[0].kind
    'breakpoints'
    >>> session.abort()
    """

    kind: str
    state: SessionState
    reason: StopReason | None = None
    text: str = ""
    stream: str = "stdout"


@functools.cache
def dtype_name(dtype: Any) -> str:
    """Return the bare name of a framework's dtype, an empty string for None.

    Examples
    --------
    >>> import gradscope as gs
    >>> dtype_name(gs.float32), dtype_name(None)
    ('float32', '')
    """
    return "" if dtype is None else str(dtype).rpartition(".")[2]


@functools.lru_cache(1 << 12)
def operator_name(name: str) -> str:
    """Return the operator's part of a node's name.

    Examples
    --------
    >>> operator_name("MulBackward0"), operator_name("AccumulateGrad")
    ('Mul', 'AccumulateGrad')
    """
    head, found, tail = name.rpartition("Backward")
    return head if found and head and (not tail or tail.isdigit()) else name


@functools.cache
def operator_of(name: str) -> str:
    """Return an operator's bare name.

    Examples
    --------
    >>> operator_of("aten::sum.dim_IntList"), operator_of("aten.add_.Tensor"), operator_of("to.dtype")
    ('sum', 'add', 'to')
    """
    bare = name.rpartition("::")[2].removeprefix("aten.").partition(".")[0]
    return bare if bare.startswith("__") else bare.rstrip("_") or bare


@dataclass(frozen=True, slots=True)
class BackwardFinding:
    """Something that is wrong with the backward at hand, or will be.

    Attributes
    ----------
    kind : str
        That of the stop (``'nan'``, ``'inf'``, ``'violation'``, ``'exception'``), or ``'modified'`` (a saved tensor
        has been written, and its node still runs), ``'slope'`` (a derivative will be infinite), ``'unreached'``
        (parameters that get no gradient), ``'faded'`` (layers that get next to nothing), ``'bounded'`` (a chain that
        must make the gradient vanish), ``'vanishing'``, ``'exploding'`` or ``'zero'`` (a gradient that has become so).
    severity : str
        ``'error'`` or ``'warning'``.
    title : str
        One line, which does not name the place.
    text : str
        More of it, in lines; may be empty.
    location : Location or None
        The line to look at.
    index : int
        The node to look at; -1 where it is about none.
    parameters : tuple of str
        The parameters that it is about.
    likely : bool
        Whether the line is a suspect, read in the source and not seen running.
    """

    kind: str
    severity: str
    title: str
    text: str = ""
    location: Location | None = None
    index: int = -1
    parameters: tuple[str, ...] = ()
    likely: bool = False
