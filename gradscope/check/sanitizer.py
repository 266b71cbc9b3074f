"""The in-place sanitizer: listens to the runtime and turns violations into findings.

It subscribes to the events of :mod:`gradscope.runtime.events` with call sites on, so that every node knows the line
that recorded it and every write the line that did it. It changes nothing and keeps no tensor, node or frame.
"""

from __future__ import annotations

import os
import sys
import threading
import weakref
from collections.abc import Iterable, Iterator
from types import FrameType
from typing import Any

from ..inspect.records import Location
from ..runtime import events
from ..runtime.errors import InplaceError, SavedTensorFreedError, SavedTensorModifiedError
from .findings import Finding, Site, TensorDescription
from .source import Write, is_suppressed, written_at

__all__ = ["Sanitizer"]

_OPTIMIZERS = f"{os.sep}gradscope{os.sep}optim{os.sep}"

# More places than this that wrote the same tensor since it was saved say nothing new.
_MORE_WRITES = 2


class Sanitizer:
    """Context manager: collects findings while its block runs.

    Attributes
    ----------
    findings : list of Finding
        One per root cause, in the order they were met.
    suppressed : int
        How many more there were on lines with a ``# gradscope: ignore[...]`` comment.
    backwards, writes : int
        How many backward passes and in-place writes (other than into gradients that accumulate) were watched.

    Examples
    --------
    >>> import gradscope as gs
    >>> from gradscope.check import Sanitizer
    >>> x = gs.ones(3, requires_grad=True)
    >>> with Sanitizer() as sanitizer:
    ...     y = x.exp()
    ...     _ = y.add_(1)
    ...     try:
    ...         y.sum().backward()
    ...     except RuntimeError:
    ...         pass
    >>> sanitizer.findings[0].code, sanitizer.findings[0].node
    ('GS101', 'ExpBackward0')
    """

    def __init__(self) -> None:
        self.suppressed = 0
        self.backwards = 0
        self.writes = 0
        self._found: dict[tuple[Any, ...], Finding] = {}
        self._lock = threading.Lock()
        self._reported: weakref.WeakSet[BaseException] = weakref.WeakSet()
        self._freed_by: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
        self._running = _Running()
        self._subscription: events.Subscription | None = None

    @property
    def findings(self) -> list[Finding]:
        """What was found so far."""
        with self._lock:
            return list(self._found.values())

    def __enter__(self) -> Sanitizer:
        self._subscription = events.subscribe(
            self._listen,
            events.GraphTaskStarted,
            events.GraphTaskFinished,
            events.GraphTaskFailed,
            events.TensorReleased,
            events.VersionBumped,
            events.VersionViolation,
            events.WriteRefused,
            call_sites=True,
        )
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self._subscription is not None:
            self._subscription.unsubscribe()

    def explains(self, error: BaseException | None) -> bool:
        """Whether `error` has become a finding that is not suppressed.

        Parameters
        ----------
        error : BaseException or None

        Returns
        -------
        bool
        """
        return error is not None and error in self._reported

    # --- listening ---

    def _listen(self, event: Any) -> None:
        kind = type(event)
        if kind is events.VersionBumped:
            self.writes += event.operator != "AccumulateGrad"
        elif kind is events.TensorReleased:
            self._freed_by[event.node] = self._running.site()
        elif kind is events.GraphTaskStarted:
            self.backwards += 1
            self._running.tasks.append((event.task, events.capture_call_site(2)))
        elif kind is events.VersionViolation:
            self._violation(event.error)
        elif kind is events.WriteRefused:
            self._add(refused(event.error), event.error)
        else:
            if kind is events.GraphTaskFailed and isinstance(event.error, SavedTensorFreedError):
                self._second_backward(event.error)
            if self._running.tasks:
                self._running.tasks.pop()

    def _violation(self, error: SavedTensorModifiedError) -> None:
        read = self._running.site() or events.capture_call_site(2)
        task = self._running.task()
        nodes = list(_nodes_of(task)) if task is not None else []
        leaves = [n.variable for n in nodes if n.name() == "AccumulateGrad"]
        self._add(modified(error, read, leaves, reached=True), error)
        # The other nodes of this backward that would have failed too, had it come so far.
        for node in nodes:
            if task.runs(node):
                for saved in node.saved_tensors_info():
                    other = None if (saved.node, saved.name) == (error.node, error.saved_name) else saved.violation()
                    if other is not None:
                        self._add(modified(other, read, leaves, reached=False))

    def _second_backward(self, error: SavedTensorFreedError) -> None:
        first = self._freed_by.get(error.node)
        if first is None:
            # The node of a written view runs inside the CopySlices of its base.
            first = next((s for n, s in self._freed_by.items() if getattr(n, "function", None) is error.node), None)
        self._add(freed(error, self._running.site(), first), error)

    def _add(self, finding: Finding, error: BaseException | None = None) -> None:
        with self._lock:
            if is_suppressed(finding.primary, finding.code):
                self.suppressed += 1
                return
            if error is not None:
                self._reported.add(error)
            known = self._found.get(finding.key)
            self._found[finding.key] = finding if known is None else known.again()


class _Running(threading.local):
    """The backward passes that run on this thread, and where each was started."""

    def __init__(self) -> None:
        self.tasks: list[tuple[Any, Any]] = []

    def task(self) -> Any:
        return self.tasks[-1][0] if self.tasks else None

    def site(self) -> Any:
        return next((site for _, site in reversed(self.tasks) if site.user_frame() is not None), None)


def _nodes_of(task: Any) -> Iterator[Any]:
    """Yield the nodes of a backward pass."""
    stack = list(dict.fromkeys(node for node, _ in task.roots))
    seen = set(stack)
    while stack:
        node = stack.pop()
        yield node
        for child, _ in node.next_functions:
            if child is not None and child not in seen:
                seen.add(child)
                stack.append(child)


# --- findings ---------------------------------------------------------------------------------------------------------


def location_of(site: Any) -> Location | None:
    """Return the user's line of a call site."""
    frame = site.user_frame() if site is not None else None
    return None if frame is None else Location(frame.filename, frame.lineno, frame.function, site.source_line)


def sites(*entries: tuple[str, Any, str]) -> tuple[Site, ...]:
    """Return a Site for each (role, call site, text) whose place is known."""
    located = ((role, location_of(site), text) for role, site, text in entries)
    return tuple(Site(role, location, text) for role, location, text in located if location is not None)


def modified(error: SavedTensorModifiedError, read: Any, leaves: Iterable[Any], *, reached: bool) -> Finding:
    """Return the finding for a saved tensor that was written: GS101, or GS102 for a parameter.

    Parameters
    ----------
    error : SavedTensorModifiedError
    read : CallSite or None
        Where the backward pass was started.
    leaves : iterable of Tensor
        The leaves of the graph, among which the tensor may be.
    reached : bool
        Whether backward came to the node, or would have.
    """
    write = error.writes[0] if error.writes else None
    leaf = _leaf_behind(error, leaves)
    step = _is_optimizer_step(write)
    where = location_of(write.call_site) if write is not None else None
    text = written_at(where, write.operator) if write is not None else Write()
    name = (_name_of(leaf) if leaf is not None else "") or ("" if step else text.name)
    tensor = TensorDescription(
        name, error.shape, error.dtype.name, error.producer or "", error.saved_name, leaf is not None
    )
    if leaf is not None or step:
        code = "GS102"
        by = "an optimizer step" if step else f"{write.operator}()" if write is not None else "a write"
        message = f"parameter {tensor} was modified by {by} between forward and backward".replace(" a tensor", "")
    else:
        code, message = "GS101", f"{tensor} was modified in place, and {error.operator} still needs it"
    verb = "fails" if reached else "would fail"
    again = _further(error.writes, where)
    return Finding(
        code=code,
        message=message,
        sites=sites(
            ("written", write.call_site if write else None, f"written here by {write.operator}" if write else ""),
            ("saved", error.saved_at, f"saved here by {error.operator} as `{error.saved_name}`"),
            ("read", read, f"needed here: {error.operator} {verb}"),
            *(("written again", w.call_site, f"written again by {w.operator}") for w in again),
        ),
        tensor=tensor,
        node=error.operator,
        saved_version=error.saved_version,
        current_version=error.current_version,
        help=_help_for_write(error, write, text, leaf is not None or step, step),
    )


def _further(writes: list[Any], first: Location | None) -> list[Any]:
    """Return the later writes, one per line, that stand elsewhere than the first."""
    seen = {(first.filename, first.lineno)} if first is not None else set()
    found = []
    for write in writes[1:]:
        frame = write.call_site.user_frame() if write.call_site is not None else None
        if frame is not None and frame[:2] not in seen:
            seen.add(frame[:2])
            found.append(write)
    return found[:_MORE_WRITES]


def _help_for_write(error: Any, write: Any, text: Write, is_parameter: bool, step: bool) -> str:
    if step:
        return "call backward() before step(), or run the forward pass again after it"
    if is_parameter:
        return "update the parameter after backward(), or run the forward pass again after the update"
    name = text.name or "the tensor"
    if write is not None and not write.requires_grad and error.producer and write.grad_mode:
        return f"the write went through detach(), which shares the memory: write into `{name}.detach().clone()`"
    hidden = write is not None and not write.grad_mode
    prefix = "no_grad() hides the write from the graph, not from the memory: " if hidden else ""
    if text.replacement:
        return f"{prefix}write `{text.replacement}`"
    if text.into_part:
        return (
            f"{prefix}write into a copy (`{name} = {name}.clone()` before this line), or collect the parts in a list "
            "and stack() them"
        )
    operator = write.operator.removesuffix("_") if write is not None else "the operator"
    return f"{prefix}use the out-of-place {operator}(), or write into a clone() of {name}"


def refused(error: InplaceError) -> Finding:
    """Return the finding for an in-place write that was refused: GS103 for leaves, GS105 for views."""
    site = events.capture_call_site(3)
    frame = site.user_frame()
    leaf = error.reason in ("leaf", "view of leaf")
    text = written_at(location_of(site), "")
    tensor = TensorDescription(text.name, error.shape, error.dtype.name, parameter=leaf)
    if leaf:
        kind = "a view of a leaf" if error.reason == "view of leaf" else "a leaf"
        message = f"{tensor}, {kind} that requires grad, was written in place"
        return Finding(
            code="GS103",
            message=message,
            sites=sites(
                ("written", site, "written here, while recording"),
                ("viewed", error.view_site if not _same(error.view_site, frame) else None, "the view was made here"),
            ),
            tensor=tensor,
            help="write it under `with no_grad():`, or use the out-of-place form",
        )
    what, way_out = _VIEWS[error.reason]
    source = f" ({error.view_operator})" if error.view_operator else ""
    written = [
        ("written", w.call_site, f"written here by {w.operator}, through another alias") for w in error.writes[:1]
    ]
    use = ("read", site, "needed here, with a stale history") if written else ("written", site, "written here")
    return Finding(
        code="GS105",
        message=f"{tensor}, {what}{source}, was written in place",
        sites=sites(*written, use, ("viewed", error.view_site, "the view was made here")),
        tensor=tensor,
        help=f"write `{text.replacement}`" if text.replacement else way_out,
    )


_VIEWS = {
    "multi": (
        "one of several views returned by one operator",
        "use the out-of-place form, or take the part by indexing or narrow()",
    ),
    "no_grad": (
        "a view made under no_grad()",
        "make the view and write it on the same side of no_grad()",
    ),
    "custom": ("a view returned by a custom Function", "return a clone() from the Function's forward"),
    "inference": ("a view made in inference mode", "clone() the view outside inference mode"),
    "inference tensor": ("an inference tensor", "clone() it outside inference mode"),
}


def freed(error: SavedTensorFreedError, read: Any, first: Any) -> Finding:
    """Return the finding for a backward pass through a freed graph: GS104."""
    node = error.node
    same = _same(first, read.user_frame() if read is not None else None)
    return Finding(
        code="GS104",
        message=f"backward went through {node.name()} a second time, after the first one had freed what it saved",
        sites=sites(
            ("read", read, "second backward here"),
            ("freed", first, "first backward, in an earlier iteration" if same else "first backward here"),
            ("saved", node.call_site, f"{node.name()} was recorded here"),
        ),
        node=node.name(),
        help=(
            "detach() what is carried from one iteration to the next, or pass retain_graph=True if both are wanted"
            if same
            else "add the losses and call backward() once, or pass retain_graph=True to the first"
        ),
    )


# --- what a tensor is -------------------------------------------------------------------------------------------------


def _is_optimizer_step(write: Any) -> bool:
    return (
        write is not None
        and write.call_site is not None
        and any(_OPTIMIZERS in frame.filename for frame in write.call_site.frames)
    )


def _same(site: Any, frame: Any) -> bool:
    place = site.user_frame() if site is not None else None
    return place is not None and frame is not None and place[:2] == frame[:2]


def _leaf_behind(error: SavedTensorModifiedError, leaves: Iterable[Any]) -> Any:
    """Return the leaf of the graph whose memory the saved tensor is."""
    for saved in error.node.saved_tensors_info():
        if saved.name == error.saved_name and not saved.released and saved.current_version == error.current_version:
            memory = saved.data.untyped_storage()
            for leaf in leaves:
                if leaf.untyped_storage() == memory:
                    return leaf
    return None


def _name_of(leaf: Any) -> str:
    """Return the path of a parameter, or the variable of a leaf, as a live frame of the user's knows it."""
    frame: FrameType | None = sys._getframe(1)
    found = ""
    while frame is not None:
        if not events.is_library_file(frame.f_code.co_filename):
            # A name from further out (`model.fc1.weight` in the training loop) beats one from within (`self.weight`).
            found = _name_among(leaf, frame.f_locals) or found
        frame = frame.f_back
    return found


def _name_among(leaf: Any, variables: dict[str, Any]) -> str:
    entries = list(variables.items())
    for name, value in entries:
        for prefix, module in ((name, value), *_attributes(name, value)):
            for path, parameter in _parameters(module):
                if parameter is leaf:
                    return f"{prefix}.{path}"
    return next((name for name, value in entries if value is leaf), "")


def _attributes(name: str, value: Any) -> list[tuple[str, Any]]:
    """Return what hangs on `self`: a trainer's model."""
    return [(f"self.{key}", item) for key, item in getattr(value, "__dict__", {}).items()] if name == "self" else []


def _parameters(module: Any) -> list[tuple[str, Any]]:
    """Return the named parameters of a module; of anything else, none."""
    if not callable(getattr(type(module), "named_parameters", None)):
        return []
    return list(module.named_parameters())
