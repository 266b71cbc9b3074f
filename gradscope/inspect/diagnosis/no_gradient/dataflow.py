"""Which tensor was computed from which, by every operator that ran, recorded for backward or not.

The backward graph knows only what was recorded. To say where the way from a parameter to the loss was *lost*, one has
to have seen the operators that were not: detach, argmax, anything under ``no_grad``. The ledger listens to all of them
and keeps an :class:`LedgerEntry` for each: names, lines and links, never a tensor. An entry lives as long as something
that was computed from it, up to a bound on their number. Of most operators that were recorded the graph knows the same:
of these the :class:`~.operator_log.OperatorLog` keeps a line, and makes the entry when somebody asks.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from ...adapters import Adapter
from ...records.module_tracking import Tracker
from ...records.naming import tables_of
from ...records.records import Location, operator_of
from ...source.call_sites import caller
from ..watch import Watch
from .dataflow_entries import BackwardRun, LedgerEntry, next_number
from .loss_terms import COMPARING, crossed
from .operator_log import Handle, OperatorLog
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


def _forgets(by_id: dict[int, _UsedTensor], by_memory: dict[Any, tuple[Any, Handle]]) -> Callable[[Any], None]:
    """Return what takes the lines of a tensor that has died out of both tables."""

    def gone(known: _UsedTensor) -> None:
        if by_id.get(known.identity) is known:
            del by_id[known.identity]
        found = by_memory.get(known.memory)
        if found is not None and found[0] is known:
            del by_memory[known.memory]

    return gone


class _Questions(NamedTuple):
    """What is asked of the adapter at every operator, by the class of a tensor: it answers sooner for its framework."""

    address: Callable[[Any], Any]
    own_address: Callable[[Any], Any]
    notes: Callable[[Any], dict[Any, Any]]
    notes_below: Callable[[Any], Sequence[dict[Any, Any]]]


class RunningBackward:
    """A backward that runs, as the ledger hears of its nodes.

    Parameters
    ----------
    accumulated : dict
        Takes the run by the id of each leaf that it gives a gradient.

    Attributes
    ----------
    ran : list of node
        Those that have run, in order, but for leaves.
    """

    __slots__ = ("_accumulated", "_adapter", "_carried", "ran", "run")

    def __init__(
        self, run: BackwardRun, adapter: Adapter, accumulated: dict[int, tuple[weakref.ref[Any], BackwardRun]]
    ) -> None:
        self.run = run
        self.ran: list[Any] = []
        self._adapter = adapter
        self._carried = adapter.carried  # called at every node
        self._accumulated = accumulated

    def node_entered(self, call: Any) -> None:
        """Note that a leaf gets a gradient."""
        leaf = self._adapter.variable(call.node)
        if leaf is not None and any(grad is not None for grad in call.grad_outputs):
            self._accumulated[id(leaf)] = (weakref.ref(leaf), self.run)

    def node_exited(self, call: Any) -> None:
        """Note that a node has run, and where it gave no gradient on."""
        given, made = self._carried(call)
        if made:  # a leaf makes nothing
            self.ran.append(call.node)
        for grad in made:
            if grad is None:
                note_withheld(self._adapter, call, given, made)
                break

    def note_runs(self) -> None:
        """Note at the nodes that have run that they have: it is asked which backward was the first."""
        notes, run = self._adapter.notes, self.run
        for node in self.ran:
            notes(node).setdefault(_RAN, run)


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
    at_leaves_alone = ("node_entered",)

    def __init__(self, adapter: Adapter, limit: int) -> None:
        super().__init__(adapter)
        self.adapter = adapter
        self.backwards = 0
        self._questions: dict[type, _Questions] = {}
        self._made_by = (_MADE_BY, next_number())  # a node may outlive a ledger
        self._log = OperatorLog(limit)
        self._by_id: dict[int, _UsedTensor] = {}
        self._by_memory: dict[Any, tuple[weakref.ref[Any], Handle]] = {}
        self._gone = _forgets(self._by_id, self._by_memory)
        self._written: dict[Any, tuple[weakref.ref[Any], Handle]] = {}
        # The entry that last made the memory at an address: right for memory that has lived since, such as a leaf's.
        self._makers: dict[Any, Handle] = {}
        self._most_makers = _MAKERS
        self._running_backwards: dict[int, RunningBackward] = {}
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
        if call.node is None or len(call.outputs) != 1 or self._written or not self._follow_graph(call):
            self._follow_tensors(call)

    def _follow_graph(self, call: Any) -> bool:
        """Write an operator down by its node, as far as that tells all that there is to know; return whether it does.

        So it is with nearly every recorded operator: it makes one tensor in memory of its own out of tensors that have
        a gradient. Where these come from the node's edges tell sooner than they do, and nothing is kept of the result:
        as long as it lives its node leads to the entry.
        """
        given, (result,), name = call.inputs, call.outputs, operator_of(call.name)
        questions = self._questions.get(type(result)) or self._questions_of_kind(result)
        if name in COMPARING:
            return False
        for tensor in given:
            if tensor is result:  # it was written in place
                return False
        made_by = self._made_by
        sources = []
        for notes in questions.notes_below(call.node):
            if made_by not in notes:
                return False
            sources.append(notes[made_by])
        memory = questions.own_address(result) if len(sources) == len(given) else None
        if memory is None:
            return False
        stack = self._running.modules
        number = self._log.record(name, sources, call.location, stack[-1][1] if stack else "")
        questions.notes(call.node)[made_by] = number
        self._by_memory[memory] = weakref.ref(result), number
        self._makers[memory] = number
        if len(self._makers) > self._most_makers:
            self._forget_makers()
        return True

    def _follow_tensors(self, call: Any) -> None:
        """Write an operator down by the tensors that it was given and has made."""
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
            self._note_leaves(node)
            if entry.name in COMPARING:
                entry.crossed = crossed([tuple(t.shape) for t in inputs])
        else:
            entry.grad_enabled = call.grad_enabled
            entry.differentiable = any(_has_gradients(t) for t in outputs)
            if entry.name == "grad":
                entry.constant = any(self._is_leaf(t) and not self.adapter.is_parameter(t) for t in inputs)
        self._log.keep(entry)
        for tensor in outputs:
            memory = self._made(tensor, entry, written=id(tensor) in written)
            if memory not in memories:
                self._makers[memory] = entry
        if len(self._makers) > self._most_makers:
            self._forget_makers()

    def _note_leaves(self, node: Any) -> None:
        """Note at the leaves that a node leads to by which entry they are known, for the next operator that asks."""
        for child, _ in self.adapter.edges(node):
            leaf = None if child is None else self.adapter.variable(child)
            if leaf is not None:
                self.adapter.notes(child)[self._made_by] = self.entry_of(leaf)

    def _forget_makers(self) -> None:
        """Forget who made the memory of long ago, and tensors that are no more."""
        is_forgotten = self._log.is_forgotten
        self._makers = {memory: maker for memory, maker in self._makers.items() if not is_forgotten(maker)}
        self._most_makers = max(_MAKERS, 2 * len(self._makers))
        for memory in [memory for memory, (tensor, _) in self._by_memory.items() if tensor() is None]:
            del self._by_memory[memory]

    def _address(self, tensor: Any) -> Any:
        return (self._questions.get(type(tensor)) or self._questions_of_kind(tensor)).address(tensor)

    def _questions_of_kind(self, tensor: Any) -> _Questions:
        """Return what is asked of tensors of a class and their nodes."""
        if len(self._questions) >= _KINDS:
            self._questions.clear()
        of = self.adapter.of(tensor)
        found = self._questions[type(tensor)] = _Questions(of.address, of.own_address, of.notes, of.notes_below)
        return found

    def task_started(self, task: Any) -> None:
        """Note that a backward starts, and on which line."""
        self.backwards += 1
        run = BackwardRun(self.backwards, caller())
        self._running_backwards[id(task)] = RunningBackward(run, self.adapter.of(task), self._accumulated)

    def in_backward(self, task: Any) -> RunningBackward | None:
        """Return what is known of a backward that runs, which hears of its nodes."""
        return self._running_backwards.get(id(task))

    def node_entered(self, call: Any) -> None:
        """Note that a leaf gets a gradient."""
        running = self._running_backwards.get(id(call.task))
        if running is not None:
            running.node_entered(call)

    def node_exited(self, call: Any) -> None:
        """Note that a node has run in this backward, and where it gave no gradient on."""
        running = self._running_backwards.get(id(call.task))
        if running is not None:
            running.node_exited(call)

    def task_finished(self, task: Any) -> None:
        """Forget the task."""
        running = self._running_backwards.pop(id(task), None)
        if running is not None:
            running.note_runs()

    def task_failed(self, task: Any, error: BaseException) -> None:
        """Forget the task, but for that it failed."""
        running = self._running_backwards.pop(id(task), None)
        if running is not None:
            running.run.failed = True
            running.note_runs()
        for outer in self._running_backwards.values():  # which may have freed what this one has failed at
            outer.note_runs()

    # --- what explanations ask ---

    def entry_of(self, tensor: Any) -> LedgerEntry:
        """Return what a tensor was last computed by; a new entry without inputs if that is not known."""
        known = self._known(tensor)
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
        self._log.keep(alias)
        self._made(tensor, alias)
        return alias

    def _known(self, tensor: Any) -> LedgerEntry | None:
        """Return what a tensor was last computed by, as far as the tensor itself is known, or its node."""
        found = self._by_id.get(id(tensor))
        if found is not None and found() is tensor:
            return found.entry
        root = None if self.adapter.is_leaf(tensor) is not False else self.adapter.root(tensor)
        return None if root is None else self.entry_of_node(root[0])

    def origin_of(self, loss: Any) -> LedgerEntry:
        """Return what a loss was computed by, also where it was made a leaf since: ``loss.requires_grad = True``."""
        made = self.made_in_memory(loss) if self._is_leaf(loss) else None
        return self.entry_of(loss) if made is None else made

    def entry_of_node(self, node: Any) -> LedgerEntry | None:
        """Return the operator that made a node; None of a leaf's."""
        handle = self.adapter.notes(node).get(self._made_by)
        entry = None if handle is None else self._log.entry(handle)
        return None if entry is None or entry.leaf else entry

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
        return None if maker is None else self._log.entry(maker)

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
        return self._known(tensor) is not None

    def descendants(self, start: Iterable[LedgerEntry]) -> list[LedgerEntry]:
        """Return the entries computed from `start`, oldest first."""
        return self._log.descendants(start)

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
            self._log.keep(entry)
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

    def _in_memory(self, table: dict[Any, tuple[weakref.ref[Any], Handle]], memory: Any) -> LedgerEntry | None:
        """Return the entry of a piece of memory, if it is still the same piece: an address is used again."""
        found = table.get(memory)
        if found is None:
            return None
        tensor = found[0]()
        if tensor is None or self._memory_of(tensor) != memory:
            del table[memory]
            return None
        return self._log.entry(found[1])

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
