"""The instrumentation points: typed events that listeners subscribe to.

With no listener each point costs one check of a flag. A listener runs on the thread where the event happens; it may
block (that is how the debugger pauses), may replace gradients where an event says so, and may raise: the exception
leaves through the call that caused the event. ``docs/events.md`` lists every event and its fields.

Examples
--------
>>> import gradscope as gs
>>> from gradscope.runtime import events
>>> x = gs.ones(3, requires_grad=True)
>>> names = []
>>> with events.subscribe(lambda event: names.append(event.node.name()), events.NodeEntered):
...     (x * 2).sum().backward()
>>> names
['SumBackward0', 'MulBackward0', 'AccumulateGrad']
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from . import dispatch, state
from .call_sites import MOST_FRAMES, CallSite, capture_call_site, capture_user_frames, user_site
from .errors import SavedTensorModifiedError

if TYPE_CHECKING:
    from .engine.graph_task import GraphTask
    from .graph.graph_node import Node

__all__ = ["Event", "Subscription", "subscribe"]  # every event adds its name

kinds: dict[str, type[Event]] = {}
"""All events by their names, those of instruments too."""


class Event:
    """Base of all events, which register themselves."""

    __slots__ = ()
    __match_args__: ClassVar[tuple[str, ...]] = ()

    CLOSE: ClassVar[bool] = False
    """Whether it tells what happens to a node before it has run, or to what it has saved: nodes are attended then."""

    def __init_subclass__(cls) -> None:
        kinds[cls.__name__] = cls  # Python makes a dataclass with slots twice: the second one counts
        if cls.__module__ == __name__ and cls.__name__ not in __all__:
            __all__.append(cls.__name__)


class InPassing:
    """What :meth:`Subscription.listen_to` takes in an event's place: a node has run, and is told of in passing.

    The listener is called as ``listener(task, given, made)``, and no event is made: the last two are bare arrays, not
    to be written or kept. The node still has what it saved. A listener that returns True wants to look closer: those
    who by then hear ``NodeExited`` are told of this node too.
    """


def event_table() -> str:
    """Return the events as a table in Markdown, for the documentation: what each tells, and its fields."""
    rows = ["| event | what has happened | fields |", "|---|---|---|"]
    for kind in kinds.values():
        if kind.__module__ == __name__:
            about = " ".join((kind.__doc__ or "").partition("\n    Attributes\n")[0].split()).replace("``", "`")
            fields = ", ".join(f"`{field}`" for field in kind.__match_args__)
            rows.append(f"| `{kind.__name__}` | {about} | {fields} |")
    return "\n".join(rows)


@dataclass(slots=True, eq=False)
class GraphTaskStarted(Event):
    """A `backward()` or `grad()` is about to run its first node."""

    task: GraphTask


@dataclass(slots=True, eq=False)
class GraphTaskFinished(Event):
    """A `backward()` or `grad()` ran to its end."""

    task: GraphTask


@dataclass(slots=True, eq=False)
class GraphTaskFailed(Event):
    """A `backward()` or `grad()` ended by `error`."""

    task: GraphTask
    error: BaseException


@dataclass(slots=True, eq=False)
class NodeReady(Event):
    """All gradients a node waits for have arrived."""

    CLOSE: ClassVar[bool] = True

    task: GraphTask
    node: Node


class NodeEntered(Event):
    """A node is about to run, after its tensor hooks and pre-hooks.

    ``grad_outputs`` is a list of the incoming gradients (one per output of the forward operator, None if undefined);
    assigning an entry replaces that gradient. Setting ``skip = True`` leaves the node out: its results are None.

    Attributes
    ----------
    grad_outputs : list of Tensor or None
        Made of the bare gradients when somebody looks at them.
    """

    __slots__ = ("_arrays", "_grads", "node", "skip", "task")
    __match_args__ = ("task", "node", "grad_outputs", "skip")

    def __init__(
        self, task: GraphTask, node: Node, grads: list[Any] | None, arrays: Sequence[Any] = (), skip: bool = False
    ) -> None:
        self.task = task
        self.node = node
        self._grads = grads
        self._arrays = arrays
        self.skip = skip

    @property
    def grad_outputs(self) -> list[Any]:
        """The incoming gradients."""
        if self._grads is None:
            self._grads = _as_tensors(self._arrays)
        return self._grads

    @grad_outputs.setter
    def grad_outputs(self, grads: list[Any]) -> None:
        self._grads = grads

    @property
    def seen(self) -> bool:
        """Whether a listener has had the gradients, and so may have replaced one."""
        return self._grads is not None


class NodeExited(Event):
    """A node has run, and its post-hooks. ``grad_inputs`` (one per entry of ``next_functions``) may be assigned.

    It still has what it saved. ``arrays`` are both as bare arrays, read-only and quicker, where nobody has had their
    tensors; None elsewhere.

    Attributes
    ----------
    grad_outputs, grad_inputs : list of Tensor or None
        Made of the bare gradients when somebody looks at them.
    arrays : tuple of (sequence, sequence) or None
        Incoming and produced as bare arrays, not to be written; None where others have had their tensors.
    """

    __slots__ = ("_grads", "arrays", "node", "task")
    __match_args__ = ("task", "node", "grad_outputs", "grad_inputs", "arrays")

    def __init__(
        self, task: GraphTask, node: Node, grads: tuple[list[Any], list[Any]] | None, arrays: Any = None
    ) -> None:
        self.task = task
        self.node = node
        self._grads = grads
        self.arrays: tuple[Sequence[Any], Sequence[Any]] | None = arrays

    @property
    def grad_outputs(self) -> list[Any]:
        """The incoming gradients."""
        return self._tensors()[0]

    @property
    def grad_inputs(self) -> list[Any]:
        """The produced gradients."""
        return self._tensors()[1]

    @property
    def seen(self) -> bool:
        """Whether a listener has had the gradients, and so may have replaced one."""
        return self._grads is not None

    def _tensors(self) -> tuple[list[Any], list[Any]]:
        if self._grads is None:
            given, made = self.arrays  # type: ignore[misc]
            self._grads = _as_tensors(given), _as_tensors(made)
        return self._grads


def _as_tensors(arrays: Sequence[Any]) -> list[Any]:
    return [None if array is None else dispatch.wrap(array) for array in arrays]


class ForkExited(NodeExited):
    """What is subscribed to in the place of `NodeExited` by who hears it of forks alone.

    Those are nodes with several edges along which gradients leave them. What is told is a `NodeExited`.
    """

    __slots__ = ()


@dataclass(slots=True, eq=False)
class LeafReached(Event):
    """A gradient is about to be added into ``node.variable.grad``."""

    task: GraphTask
    node: Node


@dataclass(slots=True, eq=False)
class GradientCaptured(Event):
    """`grad()` took the gradient of its input number `index`."""

    CLOSE: ClassVar[bool] = True

    task: GraphTask
    node: Node
    index: int
    grad: Any


@dataclass(slots=True, eq=False)
class GradientAccumulated(Event):
    """`grad` has been added into ``variable.grad``."""

    CLOSE: ClassVar[bool] = True

    task: GraphTask
    variable: Any
    grad: Any


@dataclass(slots=True, eq=False)
class HookCalled(Event):
    """A hook of `kind` ("tensor", "retain_grad", "pre", "post", "post_accumulate") has run on `node`."""

    CLOSE: ClassVar[bool] = True

    task: GraphTask
    node: Node
    kind: str
    hook: Callable[..., Any]


@dataclass(slots=True, eq=False)
class TensorSaved(Event):
    """`node` saved `tensor` under `name`, at `version`."""

    node: Node
    name: str
    tensor: Any
    version: int | None


@dataclass(slots=True, eq=False)
class TensorUnpacked(Event):
    """`node` unpacked what it saved as `name`, which was at `version`."""

    CLOSE: ClassVar[bool] = True

    node: Node
    name: str
    version: int | None


@dataclass(slots=True, eq=False)
class TensorReleased(Event):
    """`node` let go of what it saved as `name`."""

    CLOSE: ClassVar[bool] = True

    node: Node
    name: str


@dataclass(slots=True, eq=False)
class OperatorRecorded(Event):
    """An operator has run, or `tensor()` with tensors in what it copies.

    ``inputs`` are its tensor arguments, ``outputs`` its results; ``call_site`` is None unless a listener asked.
    ``node`` is None where nothing was recorded: under no_grad, where no input requires grad, in detach() and tensor().
    """

    node: Node | None
    name: str
    inputs: tuple[Any, ...]
    outputs: tuple[Any, ...]
    call_site: CallSite | None


@dataclass(slots=True, eq=False)
class NodeRecorded(Event):
    """A node has been added to the graph; ``node.call_site`` is None unless a listener asked.

    Less is put together for it than for ``OperatorRecorded``.
    """

    node: Node


@dataclass(slots=True, eq=False)
class WriteStarted(Event):
    """`tensor` is about to be written in place: by an operator, an assignment to an item, or an optimizer."""

    tensor: Any


@dataclass(slots=True, eq=False)
class VersionBumped(Event):
    """`operator` wrote `tensor` in place; its memory is now at `version`.

    ``requires_grad`` is that of the alias that was written, before the write; ``grad_mode`` tells whether recording was
    on.
    """

    tensor: Any
    operator: str
    version: int
    call_site: CallSite | None
    requires_grad: bool = False
    grad_mode: bool = True

    def repeated_by(self, other: VersionBumped) -> bool:
        """Whether `other` is a write by the same operator at the same known place."""
        return self.call_site is not None and self.operator == other.operator and self.call_site == other.call_site


@dataclass(slots=True, eq=False)
class VersionViolation(Event):
    """A saved tensor has been modified; `error` is about to be raised."""

    error: SavedTensorModifiedError


@dataclass(slots=True, eq=False)
class WriteRefused(Event):
    """An in-place write is not allowed; `error`, an InplaceError, is about to be raised."""

    error: BaseException


@dataclass(slots=True, eq=False)
class MemoryShared(Event):
    """The memory of `tensor` was handed to where a write counts no version of its own.

    ``how`` is ``".data"``, ``".data ="``, ``"numpy()"``, ``"__dlpack__()"``, or the function that has made the tensor:
    ``"from_numpy()"``, ``"as_tensor()"``, ``"asarray()"`` or ``"frombuffer()"``.
    """

    tensor: Any
    how: str
    call_site: CallSite | None


@dataclass(slots=True, eq=False)
class ItemAssigned(Event):
    """``tensor[index]`` was assigned to, where several elements of `tensor` lie at one address (an expanded one)."""

    tensor: Any
    index: Any
    call_site: CallSite | None


@dataclass(slots=True, eq=False)
class FunctionApplied(Event):
    """A custom Function is about to run forward on `args`."""

    function: type
    args: tuple[Any, ...]


@dataclass(slots=True, eq=False)
class ModuleForwardPre(Event):
    """`module` is about to run forward on `args`."""

    module: Any
    args: tuple[Any, ...]


@dataclass(slots=True, eq=False)
class ModuleForward(Event):
    """`module` has run forward."""

    module: Any
    args: tuple[Any, ...]
    output: Any


@dataclass(slots=True, eq=False)
class ModuleBackwardPre(Event):
    """The gradients of `module`'s outputs are there."""

    module: Any
    grad_output: Any


@dataclass(slots=True, eq=False)
class ModuleBackward(Event):
    """The gradients of `module`'s inputs are there."""

    module: Any
    grad_input: Any
    grad_output: Any


Listener = Callable[[Event], None]

_lock = threading.RLock()
_subscriptions: tuple[Subscription, ...] = ()
# The listeners of each kind of event, with the thread on which each listens. Code that asks once a node reads this
# table: that takes little more than half the time of wanted().
heard: dict[type[Any], tuple[tuple[Callable[..., Any], int | None], ...]] = {}
# Called where a backward begins, by those who do not listen meanwhile; it is no listening, and nothing else costs more.
unheard: tuple[Callable[[], object], ...] = ()
# How many of the user's frames the listeners want of a call site.
frames_wanted = 0
# Whether somebody listens to what happens to a node before it has run, or to what it has saved.
closely = False


class Subscription:
    """A listener's place; ends by :meth:`unsubscribe` or with its ``with`` block."""

    def __init__(self, listeners: dict[type[Any], Callable[..., Any]], thread: int | None, sites: int) -> None:
        self.listeners = listeners
        self.thread = thread
        self.call_sites = sites

    def listen_to(self, listeners: dict[type[Any], Callable[..., Any]], call_sites: int | None = None) -> None:
        """Hear other events from now on, in the same place among listeners; nothing if it has ended.

        Parameters
        ----------
        listeners : dict of type to callable
            By event class, or :class:`InPassing`.
        call_sites : int, optional
            As for :func:`subscribe`; as before by default.
        """
        with _lock:
            self.listeners = listeners
            self.call_sites = self.call_sites if call_sites is None else call_sites
            _set(_subscriptions)

    def unsubscribe(self) -> None:
        """Stop listening; doing so twice is harmless."""
        with _lock:  # somebody else may begin to listen meanwhile
            if self in _subscriptions:
                _set(tuple(s for s in _subscriptions if s is not self))

    def __enter__(self) -> Subscription:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.unsubscribe()


def subscribe(
    listener: Listener, *kinds: type[Event], thread: int | None = None, call_sites: bool | int = False
) -> Subscription:
    """Call `listener` with every event of the given kinds.

    Parameters
    ----------
    listener : callable
        Called as ``listener(event)``.
    *kinds : type
        Event classes; none subscribes to nothing (the flag stays down).
    thread : int, optional
        Only events on the thread with this identifier (``threading.get_ident()``); all threads by default.
    call_sites : bool or int
        Record call sites while subscribed: whole stacks, or only so many of the user's innermost frames, which costs a
        fraction.
    """
    if not callable(listener):
        raise TypeError(
            f"subscribe() expects a listener that can be called, got {type(listener).__name__}\n"
            "It comes first, before the event classes: subscribe(listener, NodeEntered)."
        )
    return subscribe_each(dict.fromkeys(kinds, listener), thread=thread, call_sites=call_sites)


def subscribe_each(
    listeners: dict[type[Event], Listener], *, thread: int | None = None, call_sites: bool | int = False
) -> Subscription:
    """Call, for events of each of the given kinds, a listener of its own.

    Parameters
    ----------
    listeners : dict of type to callable
        By event class.
    thread, call_sites
        As for :func:`subscribe`.
    """
    for kind in listeners:
        if not (isinstance(kind, type) and issubclass(kind, Event)):
            raise TypeError(f"subscribe() expects event classes, got {kind!r}\nSee gradscope.runtime.events.__all__.")
    frames = MOST_FRAMES if call_sites is True else int(call_sites)
    subscription = Subscription(listeners, thread, frames)
    with _lock:
        _set((*_subscriptions, subscription))
    return subscription


def call_unheard(told: Callable[[], object], on: bool) -> None:
    """Call `told` where a backward begins, whether or not anybody listens, or no more.

    Parameters
    ----------
    told : callable
        It may begin to listen, and hears of that backward then.
    on : bool
        Whether from now on it is to be called.
    """
    global unheard
    with _lock:
        others = tuple(one for one in unheard if one != told)
        unheard = (*others, told) if on else others


def _set(subscriptions: tuple[Subscription, ...]) -> None:
    global _subscriptions, heard, frames_wanted, closely
    with _lock:
        _subscriptions = subscriptions
        heard = {
            kind: tuple((s.listeners[kind], s.thread) for s in subscriptions if kind in s.listeners)
            for kind in {k for s in subscriptions for k in s.listeners}
        }
        if ForkExited in heard:  # who hears of every node hears of a fork too
            exits = ForkExited, NodeExited
            heard[ForkExited] = tuple(
                (s.listeners[kind], s.thread) for s in subscriptions for kind in exits if kind in s.listeners
            )
        frames_wanted = max((s.call_sites for s in subscriptions), default=0)
        closely = any(issubclass(kind, Event) and kind.CLOSE for kind in heard)
        state.set_listening(bool(heard))


def wanted(kind: type[Event | InPassing]) -> bool:
    """Whether anybody listens to events of `kind`."""
    return kind in heard


def listening_to_exit(node: Node) -> tuple[tuple[Callable[..., Any], int | None], ...] | None:
    """Return who hears that a node has run, as in the table of listeners; None if nobody does."""
    if ForkExited in heard:
        edges = node.edges
        if len(edges) > 1 and len(edges) - edges.count(None) > 1:
            return heard[ForkExited]
    return heard.get(NodeExited)


def emit(event: Event) -> None:
    """Hand `event` to its listeners, in the order they subscribed; the computation of tangents is no event."""
    if state.local.in_tangent:
        return
    for listener, thread in heard.get(type(event), ()):
        if thread is None or thread == threading.get_ident():
            listener(event)


def call_site_if_wanted(skip: int = 2) -> CallSite | None:
    """Return the caller's call site when a listener asked for call sites, or in anomaly mode.

    The user's frame, if one is all that is wanted, is `skip` frames above the caller at least.
    """
    if frames_wanted == 1 and not state.anomaly:
        return user_site(skip + 1)
    if state.anomaly or frames_wanted == MOST_FRAMES:
        return capture_call_site(2)
    return capture_user_frames(3, frames_wanted) if frames_wanted else None
