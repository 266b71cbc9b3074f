"""Which tensor was computed from which, by every operator that ran, recorded for backward or not.

The backward graph knows only what was recorded. To say where the way from a parameter to the loss was *lost*, one has
to have seen the operators that were not: detach, argmax, anything under ``no_grad``. The ledger listens to all of them
and keeps an :class:`LedgerEntry` for each: names, lines and links, never a tensor. An entry lives as long as something
that was computed from it, up to a bound on their number.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from ...adapters import Adapter
from ...records.module_tracking import Tracker
from ...records.naming import tables_of
from ...records.records import Location, operator_of
from ...source.call_sites import caller
from ..watch import Watch
from .dataflow_entries import BackwardRun, LedgerEntry
from .loss_terms import COMPARING, crossed
from .withheld_gradients import note_withheld

__all__ = ["RESCALING", "DataflowObserver", "overflowed", "ran_in"]

# How amp.GradScaler ends an iteration, with its scale, how long that has grown, and whether a gradient was bad,
# in which case it has left the optimizer's step out.
RESCALING = "_amp_update_scale"

# Operators that overwrite all of a tensor, whatever it held.
_FILLING = {"copy", "fill", "normal", "uniform", "zero"}
_MAKERS = 4_096
_KINDS = 1_000  # a program may make classes in a loop
_RAN = "gradscope.inspect.ran"
_MADE_BY = "gradscope.inspect.entry"


class _UsedTensor(weakref.ref[Any]):
    """A tensor that operators have used: the entry that computed it last, and the address of its memory then."""

    __slots__ = ("entry", "identity", "memory")

    entry: LedgerEntry
    identity: int
    memory: Any


def _forgets(by_id: dict[int, _UsedTensor], by_memory: dict[Any, tuple[Any, LedgerEntry]]) -> Callable[[Any], None]:
    """Return what takes the lines of a tensor that has died out of both tables."""

    def gone(known: _UsedTensor) -> None:
        if by_id.get(known.identity) is known:
            del by_id[known.identity]
        found = by_memory.get(known.memory)
        if found is not None and found[0] is known:
            del by_memory[known.memory]

    return gone


class DataflowObserver(Watch, Tracker):
    """The ledger's observer.

    Parameters
    ----------
    limit : int
        How many entries to keep; of the older ones only that they existed.

    Attributes
    ----------
    backwards : int
        How many backward passes have started.
    """

    operators_of_steps = False

    def __init__(self, adapter: Adapter, limit: int) -> None:
        super().__init__(adapter)
        self.adapter = adapter
        self.backwards = 0
        self._limit = limit
        self._addresses: dict[type, Callable[[Any], Any]] = {}
        self._made_by = (_MADE_BY, id(self))
        self._entries: deque[LedgerEntry] = deque()
        self._by_id: dict[int, _UsedTensor] = {}
        self._by_memory: dict[Any, tuple[weakref.ref[Any], LedgerEntry]] = {}
        self._gone = _forgets(self._by_id, self._by_memory)
        self._written: dict[Any, tuple[weakref.ref[Any], LedgerEntry]] = {}
        # The entry that last made the memory at an address: right for memory that has lived since, such as a leaf's.
        self._makers: dict[Any, weakref.ref[LedgerEntry]] = {}
        self._most_makers = _MAKERS
        # The backwards that run, each with the adapter of its framework, which is asked at every node.
        self._runs: dict[int, tuple[BackwardRun, Adapter]] = {}
        self._accumulated: dict[int, tuple[weakref.ref[Any], BackwardRun]] = {}
        self._modules: weakref.WeakSet[Any] = weakref.WeakSet()
        self._lent: weakref.WeakSet[Any] = weakref.WeakSet()
        self._first_written: dict[int, tuple[weakref.ref[Any], Location | None]] = {}

    # --- what the observer passes on ---

    def module_entered(self, module: Any) -> None:
        """Note that `module` runs."""
        self._modules.add(module)
        parameters, _ = tables_of(module)
        if any(p is not None and not self.adapter.is_parameter(p) for p in parameters.values()):
            self._lent.add(module)
        super().module_entered(module)

    def operator_ran(self, call: Any) -> None:
        """Write an operator down."""
        inputs, outputs, location = call.inputs, call.outputs, call.location
        if not outputs:
            return
        written = {id(t) for t in inputs for output in outputs if t is output}
        if written and all(id(t) in written and self._is_leaf(t) for t in outputs):
            self._initialised(outputs, location, operator_of(call.name))
            return  # initialising or updating a parameter is no use of it
        used, memories = self._used(inputs, location)
        entry = LedgerEntry(operator_of(call.name), tuple(used if len(used) < 2 else dict.fromkeys(used)))
        entry.location = location
        stack = self._running.modules
        if stack:
            entry.module = stack[-1][1]
        node = call.node
        if node is not None:
            entry.recorded = True
            self.adapter.notes(node)[self._made_by] = entry
            if entry.name in COMPARING:
                entry.crossed = crossed([tuple(t.shape) for t in inputs])
        else:
            entry.grad_enabled = call.grad_enabled
            entry.differentiable = any(_has_gradients(t) for t in outputs)
            if entry.name == "grad":
                entry.constant = any(self._is_leaf(t) and not self.adapter.is_parameter(t) for t in inputs)
        self._keep(entry)
        for tensor in outputs:
            memory = self._made(tensor, entry, written=id(tensor) in written)
            if memory not in memories:
                self._makers[memory] = weakref.ref(entry)
        if len(self._makers) > self._most_makers:
            self._forget_makers()

    def _forget_makers(self) -> None:
        """Forget the entries that are no more: a weak dictionary takes four times as long to fill."""
        self._makers = {memory: maker for memory, maker in self._makers.items() if maker() is not None}
        self._most_makers = max(_MAKERS, 2 * len(self._makers))

    def _address(self, tensor: Any) -> Any:
        found = self._addresses.get(type(tensor))
        if found is None:
            if len(self._addresses) >= _KINDS:
                self._addresses.clear()
            found = self._addresses[type(tensor)] = self.adapter.of(tensor).address
        return found(tensor)

    def task_started(self, task: Any) -> None:
        """Note that a backward starts, and on which line."""
        self.backwards += 1
        self._runs[id(task)] = BackwardRun(self.backwards, caller()), self.adapter.of(task)

    def node_entered(self, call: Any) -> None:
        """Note that a node runs in this backward."""
        running = self._runs.get(id(call.task))
        if running is None:
            return
        run, adapter = running
        leaf = adapter.variable(call.node)
        if leaf is None:
            adapter.notes(call.node).setdefault(_RAN, run)
        elif any(grad is not None for grad in call.grad_outputs):
            self._accumulated[id(leaf)] = (weakref.ref(leaf), run)

    def node_exited(self, call: Any) -> None:
        """Note where it gave no gradient on."""
        running = self._runs.get(id(call.task))
        if running is not None:
            note_withheld(running[1], call)

    def task_finished(self, task: Any) -> None:
        """Forget the task."""
        self._runs.pop(id(task), None)

    def task_failed(self, task: Any, error: BaseException) -> None:
        """Forget the task, but for that it failed."""
        running = self._runs.pop(id(task), None)
        if running is not None:
            running[0].failed = True

    # --- what explanations ask ---

    def entry_of(self, tensor: Any) -> LedgerEntry:
        """Return what a tensor was last computed by; a new entry without inputs if that is not known."""
        found = self._by_id.get(id(tensor))
        known = found.entry if found is not None and found() is tensor else None
        recorded = known is not None and known.recorded
        if known is not None and (known.leaf or (recorded and not self._written)):
            return known
        if not recorded and self._is_leaf(tensor):
            return self._source(tensor, leaf=True)
        memory = self._memory_of(tensor)
        written = self._in_memory(self._written, memory)
        if known is not None:
            last = written if written is not None and written.number > known.number else known
            return last if last.recorded else self._of_function(tensor, last)
        behind = written or self._in_memory(self._by_memory, memory)
        if behind is None:
            return self._source(tensor)
        alias = LedgerEntry("alias", (behind,))
        self._keep(alias)
        self._made(tensor, alias)
        return alias

    def origin_of(self, loss: Any) -> LedgerEntry:
        """Return what a loss was computed by, also where it was made a leaf since: ``loss.requires_grad = True``."""
        made = self.made_in_memory(loss) if self._is_leaf(loss) else None
        return self.entry_of(loss) if made is None else made

    def entry_of_node(self, node: Any) -> LedgerEntry | None:
        """Return the operator that made a node."""
        return self.adapter.notes(node).get(self._made_by)

    def parameters(self) -> list[tuple[str, Any]]:
        """Return the parameters of all modules seen, with their paths, each once: models may share them."""
        names = self.parameter_paths()
        roots = (reference() for reference in list(self._roots.values()))
        tensors = (t for root in roots if root is not None for _, t in self.adapter.named_parameters(root))
        return [(names[identity], tensor) for identity, tensor in {id(tensor): tensor for tensor in tensors}.items()]

    def models(self) -> list[Any]:
        """Return the outermost modules seen."""
        return [root for root in (reference() for reference in list(self._roots.values())) if root is not None]

    def accumulated(self, leaf: Any) -> BackwardRun | None:
        """Return the last backward that added into a leaf's gradient."""
        found = self._accumulated.get(id(leaf))
        return found[1] if found is not None and found[0]() is leaf else None

    def has_accumulated(self, identity: int, reference: weakref.ref[Any]) -> bool:
        """Whether a backward has given a leaf its gradient, which may be gone since.

        Parameters
        ----------
        identity : int
            The leaf's id.
        reference : weakref.ref
            To the leaf, without a callback: of such references a tensor has one, which outlives it.
        """
        found = self._accumulated.get(identity)
        return found is not None and found[0] is reference

    def ran(self, module: Any) -> bool:
        """Whether a module has been called."""
        return module in self._modules

    def lent(self, module: Any) -> bool:
        """Whether a module has been called with tensors in the place of its parameters, as ``functional_call()`` does.

        What is its own is then only there to be replaced.
        """
        return module in self._lent

    def made_in_memory(self, tensor: Any) -> LedgerEntry | None:
        """Return the operator that made the memory of a leaf: of ``Parameter(w * 2)``, the multiplication."""
        maker = self._makers.get(self._address(tensor))
        return None if maker is None else maker()

    def made_at(self, leaf: Any) -> Location | None:
        """Return the line that made a leaf: its memory, or first of all wrote it."""
        made = self.made_in_memory(leaf)
        if made is not None and made.location is not None:
            return made.location
        reference, location = self._first_written.get(id(leaf), (None, None))
        return location if reference is not None and reference() is leaf else None

    def is_input(self, tensor: Any) -> bool:
        """Whether the memory of a tensor was there before any operator: data that the program brought."""
        entry = self._in_memory(self._by_memory, self._address(tensor))
        return entry is not None and not entry.forgotten and not entry.inputs

    def has_leaf(self, entries: Iterable[LedgerEntry], leaf: Any) -> bool:
        """Whether a leaf, or another Python object for its memory, is among entries."""
        memory = self._address(leaf)
        return any(entry.leaf and entry.memory == memory for entry in entries)

    def known(self, tensor: Any) -> bool:
        """Whether an operator has used or made a tensor."""
        found = self._by_id.get(id(tensor))
        return found is not None and found() is tensor

    def descendants(self, start: Iterable[LedgerEntry]) -> list[LedgerEntry]:
        """Return the entries computed from `start`, oldest first."""
        reached = set(start)
        found = []
        for entry in self._entries:
            if any(i in reached for i in entry.inputs):
                reached.add(entry)
                found.append(entry)
        return found

    def aliases(self, leaf: Any, among: Iterable[LedgerEntry]) -> None:
        """Link the tensors without history in the memory of `leaf` to it: what ``.data`` gave before it was known."""
        source, memory = self.entry_of(leaf), self._address(leaf)
        for entry in among:
            if not entry.name and not entry.leaf and entry.memory == memory:
                entry.name, entry.inputs = "alias", (source,)

    # --- keeping ---

    def _initialised(self, leaves: Iterable[Any], location: Location | None, operator: str) -> None:
        for leaf in leaves:
            if operator in _FILLING:
                # Nothing is left of what computed its memory, or of what lay there before it.
                self._makers.pop(self._address(leaf), None)
            known = self._first_written.get(id(leaf))
            if known is None or known[0]() is not leaf:
                self._first_written[id(leaf)] = (self._watch(leaf, self._first_written), location)

    def _register(self, root: Any) -> None:
        super()._register(root)
        for _, parameter in self.adapter.named_parameters(root):
            self.entry_of(parameter)

    def _used(self, inputs: Iterable[Any], location: Location | None) -> tuple[list[LedgerEntry], list[Any]]:
        """Return by what the inputs of an operator were computed last, and the addresses of their memory."""
        entries, memories = [], []
        for tensor in inputs:
            known = self._by_id.get(id(tensor))
            if known is not None and known.entry.recorded and not self._written and known() is tensor:
                entry, memory = known.entry, known.memory  # as nearly always
            else:
                entry, memory = self.entry_of(tensor), self._memory_of(tensor)
            if entry.location is None and not entry.leaf and entry.name in ("", "alias"):
                # Nothing tells where it was made; where it was first used is the next best.
                entry.location = location
            entries.append(entry)
            memories.append(memory)
        return entries, memories

    def _of_function(self, tensor: Any, inside: LedgerEntry) -> LedgerEntry:
        """Return a new entry for the result of a custom Function whose call nobody told; `inside` if it is none.

        Parameters
        ----------
        inside : LedgerEntry
            The operator in its forward that computed the tensor.
        """
        root = None if inside.recorded else self.adapter.root(tensor)
        if root is None:
            return inside
        node = root[0]
        entry = self.entry_of_node(node)
        if entry is None:
            entry = LedgerEntry(self.adapter.node_name(node), tuple(dict.fromkeys(self._given_to(node, inside))))
            entry.recorded = entry.grad_enabled = entry.differentiable = True
            entry.location, entry.module = inside.location, inside.module
            self._keep(entry)
            self.adapter.notes(node)[self._made_by] = entry
        self._made(tensor, entry)
        return entry

    def _given_to(self, node: Any, inside: LedgerEntry) -> Iterable[LedgerEntry]:
        for child, _ in self.adapter.edges(node):
            leaf = None if child is None else self.adapter.variable(child)
            entry = self.entry_of(leaf) if leaf is not None else child and self.entry_of_node(child)
            if entry is not None:
                yield entry
        if self.adapter.node_name(node).startswith("Checkpoint"):
            # Re-entrant checkpoints differentiate with respect to parameters that no edge leads to.
            yield from (entry for entry in inside.ancestors() if entry.leaf)

    def _keep(self, entry: LedgerEntry) -> None:
        self._entries.append(entry)
        if len(self._entries) > self._limit:
            # The entry lets go of its sources, or a chain of entries would grow for ever.
            oldest = self._entries.popleft()
            oldest.inputs, oldest.forgotten = (), True

    def _source(self, tensor: Any, *, leaf: bool = False) -> LedgerEntry:
        entry = LedgerEntry()
        entry.leaf = leaf
        memory = entry.memory = self._address(tensor)
        known = self._by_id[id(tensor)] = self._know(tensor, entry, memory)
        if self._in_memory(self._by_memory, memory) is None:
            self._by_memory[memory] = (known, entry)
        return entry

    def _is_leaf(self, tensor: Any) -> bool:
        """Whether a tensor is a leaf that requires grad."""
        return bool(tensor.requires_grad and self.adapter.is_leaf(tensor))

    def _made(self, tensor: Any, entry: LedgerEntry, *, written: bool = False) -> Any:
        """Note that an operator made a tensor; return the address of its memory."""
        known = self._by_id.get(id(tensor))
        if known is None or known() is not tensor:
            known = _UsedTensor(tensor, self._gone)
            known.entry, known.identity, known.memory = entry, id(tensor), self._address(tensor)
            # A result that an operator has just recorded is no leaf; asking would take long.
            if (entry.recorded and not written) or not self._is_leaf(tensor):
                self._by_id[id(tensor)] = known
        elif not self._is_leaf(tensor):
            known.entry = entry
        memory = known.memory
        if memory not in self._by_memory or self._in_memory(self._by_memory, memory) is None:
            self._by_memory[memory] = (known, entry)
        if written:
            # The view that was written may be gone in a moment; the memory is its base's.
            owner = self._by_memory[memory][0]()
            self._written[memory] = (self._watch(tensor if owner is None else owner, self._written, memory), entry)
        return memory

    def _know(self, tensor: Any, entry: LedgerEntry, memory: Any) -> _UsedTensor:
        known = _UsedTensor(tensor, self._gone)
        known.entry, known.identity, known.memory = entry, id(tensor), memory
        return known

    def _memory_of(self, tensor: Any) -> Any:
        """Return the address of a tensor's memory, as it was when the tensor was first met: asking takes time."""
        found = self._by_id.get(id(tensor))
        return found.memory if found is not None and found() is tensor else self._address(tensor)

    def _in_memory(self, table: dict[Any, tuple[weakref.ref[Any], LedgerEntry]], memory: Any) -> LedgerEntry | None:
        """Return the entry of a piece of memory, if it is still the same piece: an address is used again."""
        found = table.get(memory)
        if found is None:
            return None
        tensor = found[0]()
        if tensor is None or self._memory_of(tensor) != memory:
            del table[memory]
            return None
        return found[1]

    @staticmethod
    def _watch(tensor: Any, table: dict[Any, Any], key: Any = None) -> weakref.ref[Any]:
        """Return a weak reference to a tensor that takes its line out of `table` when the tensor dies."""
        key = id(tensor) if key is None else key

        def gone(reference: Any) -> None:
            found = table.get(key)
            if found is not None and found[0] is reference:
                del table[key]

        return weakref.ref(tensor, gone)


def overflowed(adapter: Adapter, rescaling: Any) -> bool:
    """Return whether a GradScaler that updates its scale has found a gradient that is not finite.

    Parameters
    ----------
    rescaling : OperatorCall
        Of :data:`RESCALING`.
    """
    return any(adapter.to_host(t).any() for t in rescaling.inputs[2:3] if adapter.is_tensor(t))


def _has_gradients(tensor: Any) -> bool:
    return bool(tensor.is_floating_point() or tensor.is_complex())


def ran_in(adapter: Adapter, node: Any) -> BackwardRun | None:
    """Return the first backward, seen by a ledger, in which a node ran."""
    return adapter.notes(node).get(_RAN)
