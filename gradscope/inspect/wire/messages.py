"""The messages of the protocol: what a front asks, what a program answers and tells.

A message is a MessagePack map; its field ``type`` says which it is, and that of a verb ``verb``. Records travel as they
are defined in :mod:`gradscope.inspect.records.records` and :mod:`..debugging.session.session_records`.
"""

from __future__ import annotations

import re
from typing import TypeAlias

from msgspec import Raw, Struct

from ..debugging.session.session_records import TaskRecord, ThreadRecord, WatchRecord
from ..records.records import Index, SessionState, StopReason, TensorSubject

__all__ = [
    "PROTOCOL", "Abort", "AddBreakpoint", "AddWatch", "Ask", "Back", "BackwardRecords", "BreakpointRecord", "Cancel",
    "Catch", "Changed", "Conclude", "Conclusion", "Continue", "Derivative", "Elements", "EnableBreakpoint", "Evaluate",
    "Execute", "Explain", "Failure", "FindElement", "Findings", "FollowThread", "Frames", "FromFront", "FromProgram",
    "GoLive", "Goto", "Hello", "IgnoreBreakpoint", "Inspect", "Into", "Leave", "Logged", "Losses", "MainThreadStack",
    "Message", "Modules", "NextBackward", "Nodes", "Norms", "Out", "PageOfTensor", "ParameterNames", "Parameters",
    "Pause", "Proof", "RecordAlways", "Records", "Refused", "RemoveBreakpoint", "RemoveWatch", "Reply", "Request",
    "ReverseContinue", "RunTo", "SaveTensor", "ScaleGrad", "SetGrad", "SetLimit", "Skip", "Standing", "Start", "Step",
    "SummaryOfTensor", "Until", "Variables", "Verb", "Welcome", "WhatIfAsked", "Where", "Whereabouts", "ZeroGrad",
]  # fmt: skip

PROTOCOL = 2
"""The version of the protocol; the two sides must have the same."""


def _kebab(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "-", name).lower()


class Message(Struct, tag_field="type", tag=_kebab):
    """Anything that is sent."""


class Verb(Struct, tag_field="verb", tag=_kebab, forbid_unknown_fields=True):
    """Anything that is asked; each has the meaning of the method of ``Debugger`` with its name."""


# --- handshake ---


class Hello(Message):
    """The first message of both sides.

    Attributes
    ----------
    protocol : int
        The version of the protocol.
    version : str
        Of gradscope.
    pid : int
        The sender's process.
    nonce : bytes
        32 random bytes, which the other side's proof is about.
    rank : int or None
        Which rank of a `torch.distributed` job the program is, as `RANK` in its environment says; nothing for none.
    world : int
        How many ranks the job has.
    job : str
        What the ranks of one job have in common: where the first of them is reached.
    """

    protocol: int
    version: str
    pid: int
    nonce: bytes
    rank: int | None = None
    world: int = 1
    job: str = ""


class Proof(Message):
    """The second message of both sides: that the sender knows the token.

    Attributes
    ----------
    digest : bytes
        HMAC-SHA256, by the token, of the sender's role (``front`` or ``program``), the receiver's nonce and its own. On
        a Unix socket, which only its owner can open, the token is empty.
    """

    digest: bytes


class Welcome(Message):
    """The front is attached.

    Attributes
    ----------
    title : str
        What is being debugged.
    standing : Standing
        Where it stands.
    """

    title: str
    standing: Standing


class Refused(Message):
    """The connection ends here.

    Attributes
    ----------
    text : str
        Why, and what to do.
    """

    text: str


# --- what is asked and answered ---


class Request(Message):
    """A verb to carry out.

    Attributes
    ----------
    id : int
        Which the answer will have; the front chooses it.
    verb : Verb
        What to do.
    """

    id: int
    verb: AnyVerb


class Cancel(Message):
    """Do not answer a request any more; one that has not begun is not carried out.

    Attributes
    ----------
    id : int
        Of the request.
    """

    id: int


class Reply(Message):
    """What a verb has returned.

    Attributes
    ----------
    id : int
        Of the request.
    result : object
        Its type is the verb's; nothing for most.
    standing : Standing
        Where the program stands after it.
    """

    id: int
    result: Raw
    standing: Standing


class Failure(Message):
    """What a verb has raised.

    Attributes
    ----------
    id : int
        Of the request.
    error : str
        The name of the exception's class.
    text : str
        Its message.
    standing : Standing
        Where the program stands after it.
    """

    id: int
    error: str
    text: str
    standing: Standing


# --- what is told ---


class Changed(Message):
    """The program has stopped, gone on or ended, or breakpoints or watches have changed.

    Changes that follow each other faster than they can be sent are told by one message.

    Attributes
    ----------
    kind : str
        ``'state'``, ``'breakpoints'`` or ``'watches'``.
    standing : Standing
        How it is now.
    """

    kind: str
    standing: Standing


class Logged(Message):
    """Lines that logpoints have printed.

    Attributes
    ----------
    lines : tuple of str
        Without their ends.
    lost : int
        How many lines before these were not sent, since nobody took them.
    """

    lines: tuple[str, ...]
    lost: int = 0


class BreakpointRecord(Struct, frozen=True):
    """A breakpoint; see :class:`~gradscope.inspect.debugging.stops.breakpoints.Breakpoint`."""

    id: int
    spec: str
    condition: str | None
    temporary: bool
    enabled: bool
    hits: int
    ignore: int
    log: str | None


class Standing(Struct, frozen=True):
    """Where a program stands.

    Attributes
    ----------
    serial : int
        Larger in each one that is sent: of two, the larger is newer.
    state : SessionState
        ``'running'``, ``'paused before'``, ...
    reason : StopReason or None
        Why it has stopped.
    task_index, task_count : int
        Which backward is shown, from 1, and how many there were.
    node_count : int
        How many nodes it has.
    arrangement : int
        Another number as soon as the nodes stand in another order, or are others.
    current, live : int
        The node where the cursor is, and the one where the program is; -1 for none.
    ended : bool
        Whether the program has come to its end.
    recorded, record_always : bool
        Whether there is a past to look at, and whether it is recorded while the program runs free.
    exit_status : int or None
        The program's, when it has ended.
    breakpoints : tuple of BreakpointRecord
        By number.
    catching : dict of str to bool
        At which kinds of trouble it stops.
    limits : dict of str to float
        The numbers beyond which there is a finding.
    watches : tuple of WatchRecord
        With their values at the last stop.
    threads : tuple of ThreadRecord
        Those that have called backward().
    tasks : tuple of TaskRecord
        The backwards in progress, the outermost first.
    """

    serial: int
    state: SessionState
    reason: StopReason | None
    task_index: int
    task_count: int
    node_count: int
    arrangement: int
    current: int
    live: int
    ended: bool
    recorded: bool
    record_always: bool
    exit_status: int | None
    breakpoints: tuple[BreakpointRecord, ...]
    catching: dict[str, bool]
    limits: dict[str, float]
    watches: tuple[WatchRecord, ...]
    threads: tuple[ThreadRecord, ...]
    tasks: tuple[TaskRecord, ...]


# --- verbs that let the program go on ---


class Start(Verb):
    """Start the program, and stop at the first node of its first backward."""


class Step(Verb):
    """Run `n` nodes."""

    n: int = 1


class Into(Verb):
    """Stop after the current node has run."""


class Out(Verb):
    """Run until the backward of the current module has ended."""


class Continue(Verb):
    """Run to the next breakpoint."""


class RunTo(Verb):
    """Run until node `index` is about to run."""

    index: int


class Until(Verb):
    """Run to a node by its number, or to the next that a spec names."""

    target: int | str


class NextBackward(Verb):
    """Run to the first node of the next backward."""


class Pause(Verb):
    """Stop before the next node; carried out at once, whatever else is being answered."""


class Abort(Verb):
    """End the program; carried out at once."""


class Leave(Verb):
    """Detach: the program runs on without a front; the process of one that has ended comes to its end."""


# --- verbs that go through the past ---


class Back(Verb):
    """Look at the node that ran `n` nodes before."""

    n: int = 1


class ReverseContinue(Verb):
    """Go back to where a breakpoint would have stopped."""


class Goto(Verb):
    """Go to a recorded node of this backward."""

    index: int


class GoLive(Verb):
    """Go to where the program is."""


class RecordAlways(Verb):
    """Record nodes while the program runs free too, or do not."""

    on: bool


# --- where to stop, what to show ---


class AddBreakpoint(Verb):
    """Set a breakpoint; returns its number."""

    spec: str
    condition: str | None = None
    temporary: bool = False
    log: str | None = None


class RemoveBreakpoint(Verb):
    """Remove a breakpoint."""

    id: int


class EnableBreakpoint(Verb):
    """Let a breakpoint stop the program, or not."""

    id: int
    enabled: bool = True


class IgnoreBreakpoint(Verb):
    """Pass a breakpoint by the next `count` times."""

    id: int
    count: int


class Catch(Verb):
    """Stop at trouble of a kind, or do not."""

    kind: str
    on: bool = True


class SetLimit(Verb):
    """Set a number beyond which there is a finding: ``NAME=VALUE``."""

    setting: str


class AddWatch(Verb):
    """Evaluate an expression at every stop; returns the watch."""

    expression: str


class RemoveWatch(Verb):
    """Remove a watch."""

    id: int


class FollowThread(Verb):
    """Stop in this thread only."""

    number: int


# --- looking ---


class Nodes(Verb):
    """Return the records of nodes, without gradients, as of a slice; `arrangement` says of which order."""

    arrangement: int
    start: int
    stop: int


class Norms(Verb):
    """Return the norms of the gradients that have come to nodes, by their places, as far as they are known.

    `arrangement` says of which order.
    """

    arrangement: int


class Records(Verb):
    """Return the records of nodes of the backward that is shown, with the gradients seen so far, as of a slice."""

    start: int
    stop: int


class Inspect(Verb):
    """Return all that is known of a node."""

    index: int


class Evaluate(Verb):
    """Return the ``repr`` of an expression's value."""

    expression: str


class Elements(Verb):
    """Return the numbers of an expression's value, which is a tensor, an array or a number.

    `start` and `stop` cut its elements, in C order.
    """

    expression: str
    start: int = 0
    stop: int = 1 << 20


class PageOfTensor(Verb, tag="tensor-page"):
    """Return a part of a tensor: for each dimension one place, or where the part begins and ends there."""

    subject: TensorSubject
    index: tuple[Index, ...]


class SummaryOfTensor(Verb, tag="tensor-summary"):
    """Return a tensor in numbers."""

    subject: TensorSubject


class FindElement(Verb):
    """Return the place of an element in C order, or nothing.

    `sought` is ``'not finite'`` (the next after the element `after`), ``'largest'`` or ``'smallest'``, by magnitude.
    """

    subject: TensorSubject
    sought: str
    after: int = -1


class SaveTensor(Verb):
    """Write a tensor into a new file where the program runs, as ``numpy.save`` does; returns its path."""

    subject: TensorSubject
    path: str


class Derivative(Verb):
    """Return, for each argument of the operator of a node, the expression of its gradient."""

    node_name: str


class Execute(Verb):
    """Run a statement in the paused function of the program."""

    statement: str


class Variables(Verb):
    """Return the variables of the function that is paused."""


class Frames(Verb):
    """Return the functions of the program that wait, the innermost first, with their variables."""


class Losses(Verb):
    """Return the losses of the latest backwards, the oldest first."""


class Where(Verb):
    """Return the user's lines that led to this backward, as a traceback has them."""


class Whereabouts(Verb):
    """Return where the main thread is, at once and without a stop: the collective that it waits in, or its line."""


class MainThreadStack(Verb):
    """Return the functions that the main thread is in, as a traceback has them, at once and without a stop."""


class Explain(Verb):
    """Return more than the reason of why it has stopped here."""


class Findings(Verb):
    """Return what is wrong with the backward that is shown, the worst first."""


class BackwardRecords(Verb):
    """Return the nodes of a backward that is recorded, also of another than the one that is shown."""

    number: int


class Modules(Verb):
    """Return the modules that have run, and those inside of them."""


class Parameters(Verb):
    """Return every parameter, with what the backward that is shown and the latest ones have brought it."""


class Ask(Verb):
    """Return the answer to a question about the program, as text.

    `question` is ``'memory'``, ``'gradient_flow'`` or ``'why_no_grad'``, `argument` what the
    command of line mode takes.
    """

    question: str
    argument: str = ""


class ParameterNames(Verb):
    """Return the paths of the parameters of the modules that have run."""


class Conclude(Verb):
    """Return how the program ended: an exit status for whoever ran the debugger, a line, and the traceback."""


# --- changing ---


class SetGrad(Verb):
    """Replace a gradient of the paused node by the value of an expression."""

    slot: int
    expression: str


class ZeroGrad(Verb):
    """Set a gradient of the paused node to zero."""

    slot: int


class ScaleGrad(Verb):
    """Multiply a gradient of the paused node."""

    slot: int
    factor: float


class Skip(Verb):
    """Leave out the node that is about to run."""


class WhatIfAsked(Verb, tag="what-if"):
    """Return what would become of the parameters if an incoming gradient were another."""

    slot: int
    expression: str


# --- results ---


class Conclusion(Struct, frozen=True):
    """How a program ended; see :meth:`gradscope.inspect.Debugger.conclusion`."""

    status: int
    text: str
    traceback: str


AnyVerb: TypeAlias = (
    Start | Step | Into | Out | Continue | RunTo | Until | NextBackward | Pause | Abort | Leave
    | Back | ReverseContinue | Goto | GoLive | RecordAlways
    | AddBreakpoint | RemoveBreakpoint | EnableBreakpoint | IgnoreBreakpoint | Catch | AddWatch | RemoveWatch
    | FollowThread | SetLimit
    | Nodes | Norms | Records | Inspect | Evaluate | Elements | PageOfTensor | SummaryOfTensor | FindElement
    | SaveTensor | Derivative | Execute | Variables | Frames | Losses | Where | Whereabouts | MainThreadStack | Explain
    | Findings | BackwardRecords | Modules | Parameters | Ask | ParameterNames | Conclude
    | SetGrad | ZeroGrad | ScaleGrad | Skip | WhatIfAsked
)  # fmt: skip

FromFront: TypeAlias = Hello | Proof | Refused | Request | Cancel
FromProgram: TypeAlias = Hello | Proof | Refused | Welcome | Reply | Failure | Changed | Logged
