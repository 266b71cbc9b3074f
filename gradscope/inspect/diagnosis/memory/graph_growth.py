"""Graphs that grow from one iteration to the next: a kept loss, a state that carries its history."""

from __future__ import annotations

import gc
import re
import threading
import weakref
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise, repeat
from operator import is_
from sys import getrefcount
from typing import Any

from ...adapters import Adapter, NodeFacts
from ...output.number_format import count, format_bytes
from ...records.execution_order import NodeLinks, walk
from ...records.object_search import living
from ...records.records import Location
from ...source.call_sites import caller, place
from ...source.growing_lines import growing_line
from ..explanation import Explanation, adapter_of, at, storage_bytes
from ..finding_limits import Limits
from ..plots import lines
from ..watch import Watch
from .reference_cycles import GraphCycle, have_graphs, tied_gradients
from .reference_paths import SECONDS, Roots

__all__ = ["Growth", "GrowthWatch", "RetainingVariable", "Sample", "growth"]

_TOKEN = "gradscope.inspect.born"
_CANDIDATES = 16
# Finding what keeps an object that no variable holds takes seconds among millions of objects.
_IN_VAIN = 2
_SEARCHES = 3
# At most so many nodes of a graph are counted.
_WALKED = 10_000
_INDEX = re.compile(r"\[\d+\]$")
_CREATING = re.compile(r"\.backward\(.*create_graph=True")


@dataclass(frozen=True)
class Sample:
    """The state at the start of one backward, or at a ``mark()``.

    Attributes
    ----------
    number : int
        From 1.
    location : Location or None
        Who called backward.
    graph : int
        Nodes that this backward will run.
    nbytes : int
        Bytes of memory that they have saved, each counted once.
    alive : int
        Nodes alive in the whole process, of those made under observation.
    """

    number: int
    location: Location | None
    graph: int
    nbytes: int
    alive: int


@dataclass(frozen=True)
class RetainingVariable:
    """A variable that keeps graphs of earlier iterations alive.

    Attributes
    ----------
    name, path, scope : str
        The variable, and the way from it to the tensor.
    made : Location or None
        Where the tensor was made.
    grows : Location or None
        Where the variable grows (``losses.append(loss)``).
    """

    name: str
    path: str
    scope: str
    made: Location | None
    grows: Location | None

    def __str__(self) -> str:
        where = f"; it grows{at(self.grows)}" if self.grows is not None else ""
        return f"`{self.path}` ({self.scope}) keeps the tensor made{at(self.made)}{where}"


@dataclass(frozen=True, repr=False)
class Growth(Explanation):
    """How graphs developed over iterations.

    Attributes
    ----------
    kind : str
        ``'steady'``, ``'longer graphs'`` (each backward runs more nodes) or ``'kept graphs'`` (graphs of earlier
        iterations stay alive).
    per_iteration : int
        Nodes added in each iteration.
    joint : Location or None
        For longer graphs: the line at which an iteration builds on a result of an earlier one.
    keepers : tuple of RetainingVariable
        Who keeps the graphs.
    cycles : tuple of GraphCycle
        Where no variable does: the cycles that may.
    cut : bool
        Whether the search for who keeps the graphs was ended before it had looked everywhere.

    See Also
    --------
    growth : watches a block, and has it as its result.

    Examples
    --------
    >>> import gradscope as gs
    >>> import gradscope.inspect as gi
    >>> w = gs.ones(3, requires_grad=True)
    >>> with gi.growth() as watch:
    ...     for _ in range(5):
    ...         (w * w).sum().backward()
    >>> watch.result.kind, bool(watch.result)
    ('steady', False)
    """

    samples: tuple[Sample, ...]
    kind: str
    per_iteration: int
    joint: Location | None
    keepers: tuple[RetainingVariable, ...]
    cycles: tuple[GraphCycle, ...] = ()
    cut: bool = False

    @property
    def location(self) -> Location | None:
        """The line to look at."""
        grows = next((variable.grows for variable in self.keepers if variable.grows is not None), None)
        return self.joint or grows or next((cycle.location for cycle in self.cycles), None)

    def __bool__(self) -> bool:
        return self.kind != "steady"

    def __str__(self) -> str:
        if not self.samples:
            return "No backward pass was seen; call mark() once an iteration where there is none."
        last = self.samples[-1]
        held = f"{count(last.graph, 'node')} and {format_bytes(last.nbytes)} a backward, {last.alive:,} nodes alive"
        if self.kind == "steady":
            return f"Steady over {count(len(self.samples), 'backward pass', 'backward passes')}: {held}."
        if self.kind == "longer graphs":
            lines = [f"Each backward runs {count(self.per_iteration, 'node')} more than the one before: {held}."]
        else:
            more = f"{count(self.per_iteration, 'node')} more with each backward, {last.alive:,} by now"
            ran = f"The last backward ran {count(last.graph, 'node')} with {format_bytes(last.nbytes)} saved"
            lines = [f"Graphs of earlier iterations stay alive: {more}. {ran}."]
        if self.joint is not None:
            lines.append(f"  An iteration builds on an earlier one{at(self.joint)}: detach() what is carried over.")
        lines += [f"  {variable}" for variable in self.keepers]
        if self.keepers:
            lines.append("  Keep the number, loss.item(), or loss.detach(), which has no graph.")
        elif self.cut:
            lines.append(f"  Which variable keeps them was not found in {SECONDS:g} s of looking through all objects.")
        lines += [f"  {line}" for cycle in self.cycles for line in str(cycle).splitlines()]
        return "\n".join(lines)

    def plot(self, ax: Any = None) -> Any:
        """Draw nodes alive, and nodes run, by backward.

        Raises
        ------
        ImportError
            If Matplotlib (the extra ``plots``) is not installed.
        """
        series = {"alive": [s.alive for s in self.samples], "run by this backward": [s.graph for s in self.samples]}
        return lines(series, title=f"Graph growth: {self.kind}", xlabel="backward", ylabel="nodes", ax=ax)

    def _title(self) -> str:
        return f"Graph growth: {self.kind}"

    def _columns(self) -> Sequence[str]:
        return ("#backward", "line", "#nodes run", "#bytes saved", "#nodes alive")

    def _rows(self) -> Iterable[Sequence[str]]:
        for s in self.samples:
            yield (str(s.number), place(s.location), str(s.graph), f"{s.nbytes:,}", str(s.alive))


class _IterationMarker:
    """Lives in the notes of the nodes that were made in one iteration."""

    __slots__ = ("iteration",)

    def __init__(self, iteration: int) -> None:
        self.iteration = iteration


class _LivingNodes:
    """Counts the nodes that are alive: as many as there are references to markers in their notes.

    Attributes
    ----------
    markers : list of _IterationMarker
        Those of the iterations of which nodes are alive; the last is that of what is made now.
    """

    def __init__(self) -> None:
        self.markers = [_IterationMarker(0)]

    def begin(self, iteration: int) -> None:
        """Begin an iteration, and forget those of which no node is alive."""
        alive = [self.markers[i] for i, nodes in enumerate(self._alive()) if nodes]
        self.markers = [*alive, _IterationMarker(iteration)]

    def alive(self) -> int:
        """Return how many nodes are alive."""
        return sum(self._alive())

    def _alive(self) -> list[int]:
        markers = self.markers
        return [getrefcount(markers[i]) - _HELD for i in range(len(markers))]


_calibration = [_IterationMarker(0)]
# The count of a marker that no node refers to, asked as in :meth:`_LivingNodes._alive`.
_HELD = getrefcount(_calibration[0])


class _Collector:
    """Counts the nodes that the cyclic collector takes, for as long as this lives."""

    def __init__(self, nodes: _LivingNodes) -> None:
        self.taken = 0
        counter, there = weakref.ref(self), 0

        def collecting(phase: str, info: dict[str, int]) -> None:
            nonlocal there
            mine = counter()
            if phase == "start":
                there = nodes.alive()
            elif mine is not None:
                mine.taken += there - nodes.alive()

        gc.callbacks.append(collecting)
        weakref.finalize(self, gc.callbacks.remove, collecting).atexit = False


class GrowthWatch(Watch):
    """Counts nodes while the program runs."""

    def __init__(self, adapter: Adapter, growing: int = Limits.growing_graphs) -> None:
        self.adapter = adapter
        self._trend_of = growing
        self._samples: list[Sample] = []
        self._living = _LivingNodes()
        self._collector = _Collector(self._living)
        # The number of nodes that the cyclic collector had taken, at each sample.
        self._taken: list[int] = []
        self._joint: Location | None = None
        self._keepers: tuple[RetainingVariable, ...] = ()
        self._cycles: dict[GraphCycle, None] = {}
        self._searches = 0
        self._cut = False
        self._depth = threading.local()

    # --- what the observer passes on ---

    def operator_recorded(self, node: Any) -> None:
        """Mark a node with the iteration that it was made in."""
        self.adapter.notes(node)[_TOKEN] = self._living.markers[-1]

    def task_started(self, task: Any) -> None:
        """Take a sample, unless this backward runs inside another."""
        depth = self._depth.now = getattr(self._depth, "now", 0) + 1
        if depth == 1:
            nodes = self.adapter.task_nodes(task)
            facts = self.adapter.facts(nodes)
            if self._reaches_back(facts):
                links = walk(self.adapter, [node for node, _ in self.adapter.task_roots(task)])
                self._joint = self._find_joint(links) or self._joint
            self._sample(nodes, sum(map(is_, facts.leaves, repeat(None))), caller())

    def task_finished(self, task: Any) -> None:
        """Note that a backward has ended."""
        self._depth.now = max(getattr(self._depth, "now", 1) - 1, 0)

    def task_failed(self, task: Any, error: BaseException) -> None:
        """Note that a backward has ended."""
        self.task_finished(task)

    # --- what people call ---

    def mark(self) -> None:
        """Take a sample now: once an iteration, where no backward is called."""
        self._sample((), 0, caller())

    @property
    def growth(self) -> Growth:
        """What has been seen so far."""
        kind, step = self._trend()
        if kind == "steady":
            return Growth(tuple(self._samples), kind, step, None, self._keepers)
        self._search()
        joint = self._joint if kind == "longer graphs" else None
        cycles = tuple(self._cycles) if not self._keepers else ()
        return Growth(tuple(self._samples), kind, step, joint, self._keepers, cycles, self._cut)

    # --- looking ---

    def _sample(self, nodes: Sequence[Any], run: int, location: Location | None) -> None:
        nbytes = _saved_bytes(self.adapter, nodes)
        self._taken.append(self._collector.taken)
        self._samples.append(Sample(len(self._samples) + 1, location, run, nbytes, self._living.alive()))
        self._living.begin(len(self._samples))
        # The search runs now, while the loop does: afterwards its variables may be gone.
        if self._trend()[0] != "steady" and self._search() and not self._keepers and not self._cycles:
            self._cycles.update(dict.fromkeys(self._find_cycles()))

    def _search(self) -> bool:
        """Look for who keeps the graphs, unless that is known, or has taken too long; return whether it was done."""
        if self._keepers or self._cut or self._searches == _SEARCHES:
            return False
        self._searches += 1
        self._keepers = self._find_keepers()
        return True

    def _find_cycles(self) -> list[GraphCycle]:
        """Return the cycles that may keep the graphs: a backward that makes a graph of the gradients ties one."""
        places = [sample.location for sample in self._samples if sample.location is not None]
        creating = next((place for place in places if _CREATING.search(place.source)), None)
        return [tied_gradients(creating)] if creating is not None or have_graphs(self.adapter) else []

    def _trend(self) -> tuple[str, int]:
        """Return the kind of growth over the last samples of one line, and its step."""
        if not self._samples:
            return "steady", 0
        here = self._samples[-1].location
        pairs = zip(reversed(self._samples), reversed(self._taken), strict=True)
        same = list(islice((pair for pair in pairs if pair[0].location == here), self._trend_of))[::-1]
        if len(same) < self._trend_of:
            return "steady", 0
        graphs = [b.graph - a.graph for (a, _), (b, _) in pairwise(same)]
        # Cycles are kept until the collector comes along, in whichever iteration: what it took counts as kept.
        kept = [(b.alive + y - b.graph) - (a.alive + x - a.graph) for (a, x), (b, y) in pairwise(same)]
        if min(graphs) > 0:
            return "longer graphs", min(graphs)
        if min(kept) > 0:
            return "kept graphs", min(kept)
        return "steady", 0

    def _reaches_back(self, facts: NodeFacts) -> bool:
        """Whether a backward will run nodes of an earlier iteration."""
        now = self._living.markers[-1]
        return any(notes and notes.get(_TOKEN, now) is not now for notes in facts.notes)

    def _find_joint(self, links: dict[int, NodeLinks]) -> Location | None:
        """Return the line of a node of this iteration that hands gradients to one of an earlier iteration."""
        born = {key: self.adapter.notes(link.node).get(_TOKEN) for key, link in links.items()}
        now = len(self._samples)
        for key, link in links.items():
            mine = born[key]
            if mine is None or mine.iteration != now:
                continue
            for child, _ in link.edges:
                other = None if child is None else born[child]
                if other is not None and other.iteration < now:
                    return self.adapter.location(link.node)
        return None

    def _find_keepers(self) -> tuple[RetainingVariable, ...]:
        roots = Roots()
        found: dict[tuple[str, str], RetainingVariable] = {}
        candidates = [t for t in living(self.adapter.tensor_classes()) if self._has_old_graph(t)]
        candidates = self._ends_first(candidates)[:_CANDIDATES]
        in_vain = 0
        for tensor in candidates:
            if roots.cut or (in_vain == _IN_VAIN and not found):
                break
            reference = roots.path_to(tensor, ignore=(candidates,))
            in_vain += reference is None
            if reference is None or (reference.name, reference.scope) in found:
                continue
            root = self.adapter.root(tensor)
            made = None if root is None else self.adapter.location(root[0])
            # The index is left out: any item of the list may have been met first.
            path = _INDEX.sub("[...]", reference.path)
            grows = None if made is None else growing_line(_attribute_of(path) or reference.name, made)
            found[reference.name, reference.scope] = RetainingVariable(
                reference.name, path, reference.scope, made, grows
            )
        self._cut = roots.cut
        # A variable that is merely the last of its loop keeps one graph; one that grows keeps them all.
        growing = [
            variable for variable in found.values() if variable.grows is not None or variable.path != variable.name
        ]
        return tuple(growing or found.values())

    def _ends_first(self, tensors: list[Any]) -> list[Any]:
        """Return tensors with those first that no other was computed from: what a graph has saved, a graph keeps."""
        starts = {id(t): self.adapter.root(t)[0] for t in tensors}  # type: ignore[index]
        below: set[int] = set()
        stack = list(starts.values())
        while stack and len(below) < _WALKED:
            children = [child for child, _ in self.adapter.edges(stack.pop()) if child is not None]
            new = [child for child in children if self.adapter.key(child) not in below]
            below.update(map(self.adapter.key, new))
            stack += new
        return sorted(tensors, key=lambda t: self.adapter.key(starts[id(t)]) in below)

    def _before_this_round(self) -> int:
        """Return the iteration before which graphs are old: one line may call several backwards in each round."""
        last = self._samples[-1]
        before = next((s for s in reversed(self._samples[:-1]) if s.location == last.location), last)
        return before.number

    def _has_old_graph(self, tensor: Any) -> bool:
        try:
            root = self.adapter.root(tensor) if self.adapter.is_leaf(tensor) is False else None
        except (AttributeError, RuntimeError):  # another thread has the object half made
            return False
        if root is None:
            return False
        stack = [root[0]]
        seen: set[int] = set()
        old = self._before_this_round()
        while stack and len(seen) < _WALKED:
            node = stack.pop()
            key = self.adapter.key(node)
            if key in seen:
                continue
            seen.add(key)
            marker = self.adapter.notes(node).get(_TOKEN)
            if marker is not None and marker.iteration < old:
                return True
            stack += [child for child, _ in self.adapter.edges(node) if child is not None]
        return False


def _attribute_of(path: str) -> str:
    """Return the attribute that holds the items: ``'seen'`` of ``'probe.seen[...]'``, nothing of a path with others."""
    name = path.removesuffix("[...]").rpartition(".")[2]
    return name if name.isidentifier() else ""


def _saved_bytes(adapter: Adapter, nodes: Sequence[Any]) -> int:
    """Return the size of the memory that nodes have saved, each piece counted once."""
    known = adapter.saved_bytes(nodes)
    if known is not None:
        return known
    sizes: dict[Any, int] = {}
    for view in (view for node in nodes for view in adapter.saved(node)):
        if not view.released and view.saved_version is not None:
            sizes[adapter.memory_key(view.data)] = storage_bytes(view.data)
    return sum(sizes.values())


class growth:  # noqa: N801 - a context manager, called like a function
    """Context manager: watch how graphs grow from one backward to the next.

    Parameters
    ----------
    adapter : Adapter, optional
        Of one framework only; all by default.

    Attributes
    ----------
    result : Growth
        What has been seen so far.

    See Also
    --------
    leaks

    Examples
    --------
    >>> import gradscope as gs
    >>> import gradscope.inspect as gi
    >>> w, losses = gs.ones(3, requires_grad=True), []
    >>> with gi.growth() as watch:
    ...     for _ in range(5):
    ...         loss = (w * w).sum()
    ...         loss.backward()
    ...         losses.append(loss)
    >>> watch.result.kind, watch.result.per_iteration
    ('kept graphs', 2)
    """

    def __init__(self, *, adapter: Adapter | None = None) -> None:
        self._watch = GrowthWatch(adapter_of(None, adapter))
        self._observation: Any = None

    def mark(self) -> None:
        """Take a sample now: once an iteration, where no backward is called."""
        self._watch.mark()

    @property
    def result(self) -> Growth:
        """What has been seen so far."""
        return self._watch.growth

    def __enter__(self) -> growth:
        self._observation = self._watch.adapter.observe(self._watch, forward=True, backward=True)
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self._observation.close()
