"""One backward as the debugger sees it: its nodes in the engine's order, and what has been seen of each."""

from __future__ import annotations

import sys
import threading
import traceback
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from functools import cached_property
from time import perf_counter_ns
from types import FrameType
from typing import Any

from ...adapters import Adapter, FailedCall
from ...records.execution_order import NodeLinks, engine_order, walk
from ...records.module_tracking import Tracker, module_of_parameter
from ...records.object_search import no_collection
from ...records.records import InnerOperator, Location, NodeRecord, SavedRecord, operator_name
from ...records.snapshots import bare_record, saved_records
from ...source.frame_variables import variables_of
from ..history.gradient_restore import GradBackup
from ..history.past_gradients import GradientCopies, ValueStore
from ..stops import condition_names
from .node_sequence import MOST_RECORDS, FinishedNodeFacts, FinishedNodes, NodeList
from .session_records import BackwardFinding

__all__ = ["CallFacts", "SeenNode", "TaskView"]


class CallFacts:
    """What a breakpoint may ask of the node that is about to run, found when asked."""

    def __init__(self, view: TaskView, node: Any, index: int) -> None:
        self._view = view
        self._node = node
        self.index = index
        self.task = view.number
        self.iteration = view.iteration

    @property
    def name(self) -> str:
        """The node's name."""
        return self._view.adapter.node_name(self._node)

    @property
    def operator(self) -> str:
        """The operator's name."""
        return operator_name(self.name)

    @cached_property
    def parameter(self) -> str:
        """The parameter's path."""
        return self._view.parameter_of(self._node)

    @cached_property
    def module(self) -> str:
        """The module's path."""
        return self._view.tracker.module_of(self._node) or module_of_parameter(self.parameter)

    @cached_property
    def location(self) -> Location | None:
        """The user's line that made the node."""
        return self._view.adapter.location(self._node)


class SeenNode:
    """What has been seen of a node that ran while somebody looked."""

    __slots__ = ("edited", "incoming", "produced", "saved", "state")

    def __init__(self) -> None:
        self.state = "current"
        self.edited = False
        self.incoming: GradientCopies | None = None
        self.produced: GradientCopies | None = None
        self.saved: tuple[SavedRecord, ...] = ()


class TaskView:
    """A backward as the debugger knows it; the live task is held until it has ended.

    Parameters
    ----------
    task : object
        The framework's graph task.
    store : ValueStore
        Where the values of gradients are kept.
    number : int
        Which backward of the program it is, from 1; 0 as long as its thread is not followed.
    iteration : int
        Which backward that was called at this line, from 1.
    site : str
        That line.
    frame : frame or None
        The user's, for names of tensors that no module has.
    """

    def __init__(
        self,
        adapter: Adapter,
        tracker: Tracker,
        task: Any,
        store: ValueStore,
        *,
        number: int = 0,
        iteration: int = 0,
        site: str = "",
        frame: FrameType | None = None,
    ) -> None:
        self.adapter = adapter
        self.tracker = tracker
        self.task = task
        self.number = number
        self.iteration = iteration
        self.site = site
        self.index = -1
        self.call: Any = None
        self.recording = False
        self.failed = False
        self._function = "" if frame is None else frame.f_code.co_name
        self.order: list[int] = []
        self.arrangement: Hashable = object()
        self.nodes = NodeList(self)
        self.backup = GradBackup(adapter)
        # Comparisons with the iteration before need these; they are None as long as nobody compares.
        self.counts: dict[Hashable, int] | None = None
        self.identity: Hashable = None
        # By place, of nodes that ran while nobody looked: the norm of what they were given.
        self.norms: dict[int, float | None] = {}
        self.durations: dict[int, int] = {}
        # Why it has stopped at NaNs and infinities, in this order; each is explained while all is there.
        self.bad_values: list[BackwardFinding] = []
        self.began = 0
        # The places of the nodes that bring gradients to leaves, and those nodes.
        self._leaves: list[tuple[int, Any]] = []
        self._store = store
        self.norms_of = adapter.passing_norms()
        self._release: Callable[[], None] | None = None
        self._asked_to_keep = False
        self._positions: dict[int, int] = {}
        self._seen: dict[int, SeenNode] = {}
        self._insides: dict[int, tuple[InnerOperator, ...]] = {}
        self._inherited: dict[int, str] = {}
        self._ran: dict[int, int] = {}
        self._bare: dict[int, NodeRecord] = {}
        self._links: dict[int, NodeLinks] = {}
        self._finished = FinishedNodes()
        self._names: dict[int, str] | None = None
        self._frame = frame
        self._called_by = threading.get_ident()

    @property
    def looked_at(self) -> bool:
        """Whether its order is known, or one of its nodes has been seen."""
        return bool(self.order or self._seen)

    @property
    def live(self) -> bool:
        """Whether it has not ended."""
        return self.task is not None

    def caller(self) -> str:
        """Return the line that called it, as a traceback has it."""
        filename, _, lineno = self.site.rpartition(":")
        if not filename:
            return ""
        frame = traceback.FrameSummary(filename, int(lineno), self._function)
        return "".join(traceback.StackSummary.from_list([frame]).format())

    def user_frames(self) -> list[FrameType]:
        """Return the user's frames, innermost first: of this thread, and of the one that waits for the backward.

        They are two where a device runs nodes, on a thread of its own.
        """
        frames = condition_names.user_frames()
        if threading.get_ident() != self._called_by:
            waiting = sys._current_frames().get(self._called_by)
            frames += [] if waiting is None else condition_names.user_frames(waiting)
        return frames

    # --- while it runs ---

    def record_from_here(self, *, keep: bool) -> None:
        """Look at every node from now on; with `keep`, nodes that have run keep what they saved until the end."""
        self.recording = True
        if keep and not self._asked_to_keep:
            self._asked_to_keep = True
            self._release = self.adapter.keep_saved(self.task)

    def note_leaf(self, node: Any) -> None:
        """Note that the node which is about to run, or has just, brings its gradient to a leaf."""
        self._leaves.append((self.index + 1, node))

    def leaf_norms(self) -> list[tuple[Any, float | None]]:
        """Return the leaves it has come to, with the norm of what was brought to them; None where nobody looked."""
        return [(leaf, self._leaf_norm(place, node)) for leaf, place, node in self._leaves_reached()]

    def _leaves_reached(self) -> list[tuple[Any, int, Any]]:
        """Return the leaves it has come to, each with its place and its node when it came there first."""
        found: dict[int, tuple[Any, int, Any]] = {}
        for place, node in self._leaves:
            leaf = self.adapter.variable(node)
            if leaf is not None:
                found.setdefault(id(leaf), (leaf, place, node))
        return list(found.values())

    def _leaf_norm(self, place: int, node: Any) -> float | None:
        seen = self._seen.get(self.adapter.key(node)) if self._seen else None
        return self.norms.get(place) if seen is None or seen.incoming is None else seen.incoming.norm

    def announced(self, call: Any, began: int = 0) -> None:
        """Note that a node is about to run while nobody looks."""
        self.index += 1
        self.call = call
        self.began = began or perf_counter_ns()

    def entered(self, call: Any) -> None:
        """Note that a node is about to run."""
        self.index += 1
        self.call = call
        if self.recording:
            self.see_entry()

    def see_entry(self) -> SeenNode:
        """Look at the node that is about to run."""
        key = self.adapter.key(self.call.node)
        seen = self._seen.get(key)
        if seen is None:
            seen = self._seen[key] = SeenNode()
            self._ran[key] = self.index
            seen.saved = saved_records(self.adapter, self.call.node, summaries=False)
            self._put_in_order(key)
        # They may not be known after a failure that nobody followed.
        if self.call.grad_outputs is not None:
            seen.incoming = self.group(self.call.grad_outputs, "grad_outputs")
        return seen

    def exited(self, call: Any) -> None:
        """Note that a node has run."""
        if not self.recording:
            return
        key = self.adapter.key(call.node)
        seen = self._seen.get(key)
        if seen is None or seen.incoming is None:
            seen = self.see_entry()
        seen.state = "skipped" if getattr(self.call, "skip", False) else "done"
        seen.produced = self.group(call.grad_inputs, "grad_inputs")
        seen.saved = self._after(call.node, seen.saved)

    def see_inside(self, node: Any, inside: tuple[InnerOperator, ...]) -> None:
        """Take what has run inside of a compiled node."""
        self._insides[self.adapter.key(node)] = inside

    def note_inherited(self, node: Any, saved: str) -> None:
        """Note from which saved tensor a node has the bad value that it was not given; empty where it has made it."""
        self._inherited[self.adapter.key(node)] = saved

    def group(self, grads: list[Any], name: str) -> GradientCopies:
        """Copy gradients, within the budget."""
        group = GradientCopies(self.adapter, grads, name)
        self._store.keep(group)
        return group

    def next_call(self) -> FailedCall | None:
        """Return the node that is about to be announced; what arrives there is not known yet."""
        self.prepare()
        place = self.index + 1
        if place >= len(self.order):
            return None
        return FailedCall(self.task, self.live_node(self.order[place]), None)

    def take_failed(self, found: FailedCall) -> None:
        """Stand at a node that failed before it was announced, or after it had run."""
        self.prepare()
        node, place = found.node, self._positions.get(self.adapter.key(found.node))
        if found.task is not self.task:
            # Found out by what a backward leaves behind; this one was followed, and how far it has come is known: it is
            # the node that has run last, whose results were refused, or the next.
            following = min(self.index + 1, len(self.order) - 1)
            place = place if place == self.index and not found.in_hook else following
            node = self.live_node(self.order[place])
        call = found._replace(task=self.task, node=node)
        if place == self.index:
            self.call = call
        else:
            self.entered(call)

    def fail(self) -> None:
        """Note that the node that was running raised."""
        self.failed = True
        if self.call is not None:
            self.see_entry().state = "failed"

    def close(self) -> None:
        """Let go of everything alive; what has been looked at stays as records."""
        if self._seen and not self.order:
            self._lay_out()
        seen = None if self.call is None else self.seen_now()
        if seen is not None and seen.state == "current":
            seen.state = "pending"  # the backward was aborted before the node ran
        if self.order:
            with no_collection():
                self._finished = self._finished_nodes()
        if self._release is not None:
            self._release()
        self.task = self.call = self._frame = self._release = self._names = None
        self._links, self._bare, self._leaves = {}, {}, []
        self.backup.clear()

    def _finished_nodes(self) -> FinishedNodes:
        """Return what stays of the nodes; a list of each fact is made in a third of the time of an object a node."""
        adapter = self.adapter
        links = list(map(self._links.__getitem__, self.order))
        nodes = [link.node for link in links]
        facts = adapter.facts(nodes)
        parameters = ["" if leaf is None else self._name_of(leaf) for leaf in facts.leaves]
        modules = self.tracker.modules_of(self.order, facts.notes)
        sites = list(map(id, facts.sites))
        locations = {site: adapter.location(node) for site, node in dict(zip(sites, nodes)).items()}
        return FinishedNodes(
            facts.names,
            [link.sequence_nr for link in links],
            [module or (name and module_of_parameter(name)) for module, name in zip(modules, parameters)],
            parameters,
            list(map(locations.__getitem__, sites)),
            [link.edges for link in links],
            list(map(adapter.outputs, nodes)),
        )

    def _after(self, node: Any, saved: tuple[SavedRecord, ...]) -> tuple[SavedRecord, ...]:
        """Return the saved tensors as they were, marked released where the program lets them go."""
        views = self.adapter.saved(node)
        if self._release is not None or len(views) != len(saved):
            return tuple(replace(s, state="released") for s in saved)
        return tuple(replace(s, state="released") if v.released else s for s, v in zip(saved, views))

    # --- its nodes in order ---

    def prepare(self) -> None:
        """Predict the whole order, once."""
        if not self.order:
            self._lay_out()
        if self.call is not None and self.adapter.key(self.call.node) not in self._positions:
            self._insert(self.call.node)

    def adopt(self, call: Any) -> None:
        """Take over a backward that has been going on for a while, at the node it is about to run."""
        self._lay_out()
        self.index = self._positions.get(self.adapter.key(call.node), 0) - 1

    def _lay_out(self) -> None:
        with no_collection():
            self._predict()
        for key in sorted(self._ran, key=self._ran.__getitem__):
            self._put_in_order(key)

    def _predict(self) -> None:
        adapter = self.adapter
        roots = [node for node, _ in adapter.task_roots(self.task)]
        self._links = links = walk(adapter, roots)
        runs = {key for key, link in links.items() if adapter.task_runs(self.task, link.node)}
        targets = {k: [c for c, _ in links[k].edges if c is not None and c in runs] for k in runs}
        keys = [key for key in map(adapter.key, roots) if key in runs]
        self.arrangement = object()
        self.order = engine_order(keys, {key: links[key].sequence_nr for key in runs}, targets)
        self._positions = {key: index for index, key in enumerate(self.order)}

    def _put_in_order(self, key: int) -> None:
        """Put a node where the engine ran it, should the prediction have it elsewhere."""
        predicted, place = self._positions.get(key), self._ran[key]
        if predicted is None or predicted == place:
            return
        del self.order[predicted]
        self.order.insert(place, key)
        self._number(min(predicted, place))

    def _insert(self, node: Any) -> None:
        """Take in a node that came into the graph after the backward had been laid out."""
        key, adapter = self.adapter.key(node), self.adapter
        edges = tuple((None if n is None else adapter.key(n), nr) for n, nr in adapter.edges(node))
        self._links[key] = NodeLinks(node, adapter.sequence_nr(node), edges)
        self.order.insert(self.index, key)
        self._number(self.index)

    def _number(self, start: int) -> None:
        self.arrangement = object()
        for index in range(start, len(self.order)):
            self._positions[self.order[index]] = index

    # --- what the faces read ---

    def position(self, key: int) -> int | None:
        """Return the place of a node in the engine's order."""
        return self._positions.get(key)

    def record(self, index: int) -> NodeRecord:
        """Return the record of a node, with gradients in numbers where they have been made already."""
        key = self.order[index]
        seen = self._seen.get(key)
        bare = self._bare_record(key, index)
        if seen is None:
            if index not in self.norms:
                return bare
            return replace(bare, norm=self.norms[index], duration=self.durations.get(index))
        return replace(
            bare,
            state=self._state(index) if seen.state == "current" else seen.state,
            grad_outputs=None if seen.incoming is None else seen.incoming.known,
            grad_inputs=None if seen.produced is None else seen.produced.known,
            saved=seen.saved,
            norm=None if seen.incoming is None else seen.incoming.norm,
            duration=self.durations.get(index),
            edited=seen.edited,
            inside=self._insides.get(key, bare.inside),
            inherited=self._inherited.get(key),
        )

    def known_norms(self) -> dict[int, float]:
        """Return the norms that the records of its nodes have, by their places, without making one."""
        count = len(self.order)
        # The backward goes on on other threads meanwhile: each of these copies is made at once.
        known: dict[int, float | None] = self.norms.copy()
        for key, seen in self._seen.copy().items():
            place = self._positions.get(key)
            if place is not None:
                known[place] = None if seen.incoming is None else seen.incoming.norm
        return {place: norm for place, norm in known.items() if norm is not None and place < count}

    def candidate(self, index: int) -> CallFacts | FinishedNodeFacts:
        """Return what a breakpoint may ask of a node."""
        key = self.order[index]
        link = self._links.get(key)
        return FinishedNodeFacts(self._finished, index) if link is None else CallFacts(self, link.node, index)

    def module_at(self, index: int) -> str:
        """Return the module path of a node, or that of its parameter's module."""
        record = self.record(index)
        return record.module or module_of_parameter(record.parameter)

    def full(self, index: int) -> NodeRecord:
        """Return the record of a node with its gradients in numbers, and its saved tensors if they are still there.

        Saved tensors are read, so this is for the program's own thread; see :meth:`summarized`.
        """
        record = self.summarized(index)
        node = self.live_node(record.key)
        if node is None:
            return record
        saved = saved_records(self.adapter, node, summaries=True)
        if record.state in ("done", "skipped") and len(saved) == len(record.saved):
            # What the program has released, the session may still keep.
            saved = tuple(replace(was, summary=now.summary) for was, now in zip(record.saved, saved))
        return replace(record, saved=saved)

    def summarized(self, index: int) -> NodeRecord:
        """Return the record of a node with its gradients in numbers."""
        seen = self._seen.get(self.order[index])
        for group in (seen.incoming, seen.produced) if seen is not None else ():
            if group is not None:
                group.summaries  # noqa: B018 - made on first use
        return self.record(index)

    def seen_now(self) -> SeenNode | None:
        """Return what has been seen of the node that runs."""
        return self._seen.get(self.adapter.key(self.call.node))

    def seen(self, index: int) -> SeenNode | None:
        """Return what has been seen of a node."""
        return self._seen.get(self.order[index]) if self.order else None

    def edges(self, key: int) -> Sequence[tuple[int | None, int]]:
        """Return where the gradients of a node go: the key of the receiver, and which input."""
        link = self._links.get(key)
        return self._finished.edges[self._positions[key]] if link is None else link.edges

    def live_node(self, key: int) -> Any:
        """Return the live node of a key, None when the backward has ended."""
        link = self._links.get(key)
        return None if link is None else link.node

    def _state(self, index: int) -> str:
        if index < self.index or (index == self.index and not self.live):
            return "done"
        if index != self.index:
            return "pending"
        return "skipped" if getattr(self.call, "skip", False) else "current"

    def _bare_record(self, key: int, index: int) -> NodeRecord:
        state, record, link = self._state(index), self._bare.get(key), self._links.get(key)
        if record is None and link is not None:
            if len(self._bare) >= MOST_RECORDS:  # of a larger backward parts are looked at
                self._bare = {}
            record = self._bare[key] = bare_record(
                self.adapter,
                link.node,
                index=index,
                module=self.tracker.module_of(link.node),
                parameter=self.parameter_of(link.node),
                state=state,
                link=link,
            )
        elif record is None:
            return self._finished.record(index, key, state)
        elif record.index != index or record.state != state:
            record = self._bare[key] = replace(record, index=index, state=state)
        return record

    # --- names ---

    def parameter_places(self) -> dict[str, int]:
        """Return the places of the nodes that bring gradients to leaves with a name, by that."""
        links = self._links
        if links:
            nodes = enumerate(map(links.__getitem__, self.order))
            names = [(self.parameter_of(link.node), place) for place, link in nodes if not link.edges]
        else:  # of 100,000 nodes few bring gradients to leaves, and a tuple for each would call the collector
            names = [(name, place) for place, name in enumerate(self._finished.parameters) if name]
        return {name: place for name, place in reversed(names) if name}

    def named_leaves(self) -> dict[str, Any]:
        """Return the leaves with a name that it brings gradients to, or has brought as long as it is not laid out."""
        if not self.order:
            return {name: leaf for leaf, _, _ in self._leaves_reached() if (name := self._name_of(leaf))}
        links = filter(None, map(self._links.get, self.order))
        nodes = [link.node for link in links if not link.edges]
        return {name: self.adapter.variable(node) for node in nodes if (name := self.parameter_of(node))}

    def parameter_of(self, node: Any) -> str:
        """Return the path of an AccumulateGrad's parameter; the name of a variable where no module has it."""
        leaf = self.adapter.variable(node)
        return "" if leaf is None else self._name_of(leaf)

    def _name_of(self, leaf: Any) -> str:
        if self._names is None:
            self._names = _variables(self._frame) | self.tracker.parameter_paths()
        return self._names.get(id(leaf), "")


def _variables(frame: FrameType | None) -> dict[int, str]:
    """Return the names of the variables that a frame sees, by the identity of their values."""
    found: dict[int, str] = {}
    for scope in (frame.f_globals, variables_of(frame)) if frame is not None else ():
        found.update({id(value): name for name, value in reversed(list(scope.items()))})
    return found
