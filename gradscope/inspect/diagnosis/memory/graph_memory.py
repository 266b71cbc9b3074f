"""The memory of a graph: the saved tensors, by module, operator and line, each piece of memory counted once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...adapters import Adapter
from ...output.number_format import count, format_bytes, format_shape
from ...records.execution_order import walk
from ...records.module_tracking import Tracker
from ...records.naming import Names, name_graph
from ...records.records import Location, operator_name
from ...source.call_sites import place
from ..explanation import Explanation, adapter_of_loss, storage_bytes
from ..no_gradient.dataflow import DataflowObserver
from ..no_gradient.dataflow_ledger import Ledger, recorder_for
from ..plots import bars

__all__ = ["MemoryGroup", "MemoryReport", "SavedMemory", "memory", "memory_of"]


@dataclass(frozen=True)
class SavedMemory:
    """One piece of memory that the graph keeps alive.

    Attributes
    ----------
    nbytes : int
        Of the whole piece: a view keeps all of it.
    kind : str
        ``'activation'``, ``'parameter'``, ``'input'`` (made by no operator) or ``'packed'`` (by a saved-tensor hook,
        which hides where it is).
    name : str
        Of a parameter; else under which name it was saved first.
    node, operator, module : str
        Who saved it first in the forward pass.
    saved_by : int
        How many saved tensors share it.
    """

    nbytes: int
    kind: str
    name: str
    shape: tuple[int, ...]
    dtype: str
    node: str
    operator: str
    module: str
    location: Location | None
    saved_by: int = 1


@dataclass(frozen=True)
class MemoryGroup:
    """Memory that has something in common."""

    label: str
    nbytes: int
    pieces: int


@dataclass(frozen=True, repr=False)
class MemoryReport(Explanation):
    """The memory that a graph holds.

    Attributes
    ----------
    pieces : tuple of SavedMemory
        Largest first.
    nodes : int
        How many nodes the graph has.
    released : int
        How many saved tensors a backward has let go of already.

    See Also
    --------
    memory : makes it.

    Examples
    --------
    >>> import gradscope as gs
    >>> import gradscope.inspect as gi
    >>> w = gs.ones(1000, requires_grad=True)
    >>> report = gi.memory(w.exp().sum())
    >>> report.total, report.nodes, [piece.nbytes for piece in report.pieces]
    (4000, 3, [4000])
    """

    pieces: tuple[SavedMemory, ...]
    nodes: int
    released: int

    @property
    def total(self) -> int:
        """Bytes of all pieces."""
        return sum(piece.nbytes for piece in self.pieces)

    @property
    def activations(self) -> int:
        """Bytes that are there only for backward: what no parameter and no input is."""
        return sum(piece.nbytes for piece in self.pieces if piece.kind in ("activation", "packed"))

    def of_kind(self, kind: str) -> int:
        """Return the bytes of one kind.

        Parameters
        ----------
        kind : str
            ``'activation'``, ``'parameter'``, ``'input'`` or ``'packed'``.
        """
        return sum(piece.nbytes for piece in self.pieces if piece.kind == kind)

    def by_module(self) -> tuple[MemoryGroup, ...]:
        """Return the memory that is there for backward only, by module, largest first."""
        # Modules are recorded wherever lines are.
        return self._grouped(
            lambda piece: piece.module or ("(module not known)" if piece.location is None else "(outside of modules)")
        )

    def by_operator(self) -> tuple[MemoryGroup, ...]:
        """Return the same by operator."""
        return self._grouped(lambda piece: piece.operator)

    def by_line(self) -> tuple[MemoryGroup, ...]:
        """Return the same by line of the program."""
        return self._grouped(lambda piece: place(piece.location))

    def _grouped(self, label: Any) -> tuple[MemoryGroup, ...]:
        groups: dict[str, list[int]] = {}
        for piece in self.pieces:
            if piece.kind in ("activation", "packed"):
                groups.setdefault(label(piece), []).append(piece.nbytes)
        found = [MemoryGroup(name, sum(sizes), len(sizes)) for name, sizes in groups.items()]
        return tuple(sorted(found, key=lambda group: -group.nbytes))

    def __str__(self) -> str:
        kinds = [f"{format_bytes(self.activations)} of activations"]
        kinds += [f"{format_bytes(self.of_kind(k))} of {k}s" for k in ("parameter", "input") if self.of_kind(k)]
        lines = [f"{count(self.nodes, 'node')} hold {format_bytes(self.total)}: {', '.join(kinds)}"]
        for piece in self.pieces[:5]:
            where = f" at {place(piece.location)}" if piece.location is not None else ""
            inside = f" in `{piece.module}`" if piece.module else ""
            what = f"`{piece.name}` {piece.dtype} {format_shape(piece.shape)}"
            lines.append(f"  {format_bytes(piece.nbytes):>10}  {piece.kind:<10} {what} by {piece.node}{inside}{where}")
        if len(self.pieces) > 5:
            lines.append(f"  and {len(self.pieces) - 5} more")
        if self.released:
            lines.append(f"  {count(self.released, 'saved tensor')} already released by a backward pass")
        return "\n".join(lines)

    def plot(self, by: str = "module", ax: Any = None) -> Any:
        """Draw the memory by module, operator or line.

        Parameters
        ----------
        by : {'module', 'operator', 'line'}

        Raises
        ------
        ImportError
            If Matplotlib (the extra ``plots``) is not installed.
        ValueError
            If `by` is another word.
        """
        ways = {"module": self.by_module, "operator": self.by_operator, "line": self.by_line}
        if by not in ways:
            raise ValueError(f"by must be one of {', '.join(map(repr, ways))}, got {by!r}\nThe default is 'module'.")
        groups = ways[by]()
        sizes = [group.nbytes / 2**20 for group in groups]
        return bars([g.label for g in groups], sizes, title=f"Saved for backward, by {by}", xlabel="MiB", ax=ax)

    def _title(self) -> str:
        return f"Saved for backward: {format_bytes(self.total)}"

    def _columns(self) -> Sequence[str]:
        return ("#bytes", "kind", "name", "shape", "dtype", "saved by", "module", "line")

    def _rows(self) -> Iterable[Sequence[str]]:
        for p in self.pieces:
            size = f"{p.nbytes:,}"
            yield (size, p.kind, p.name, format_shape(p.shape), p.dtype, p.node, p.module, place(p.location))


def memory(
    loss: Any, *, params: Any = None, ledger: Ledger | None = None, adapter: Adapter | None = None
) -> MemoryReport:
    """Say what the graph of a loss holds in memory until its backward has run.

    Parameters
    ----------
    params : Module, mapping of str to Tensor, or iterable of (str, Tensor), optional
        Gives names, as for :func:`graph`; leaves of the graph count as parameters in any case.
    ledger : Ledger, optional
        Tells inputs apart from activations, and gives modules and lines; by default the one that is open or was last.

    Raises
    ------
    TypeError
        If `loss` is no tensor.
    RuntimeError
        If the loss has no graph.

    See Also
    --------
    growth : What grows from iteration to iteration.
    leaks : Tensors that are kept, and by whom.

    Examples
    --------
    >>> import gradscope as gs
    >>> import gradscope.inspect as gi
    >>> w = gs.ones(1000, requires_grad=True)
    >>> report = gi.memory((w * w).exp().sum())
    >>> report.total, report.of_kind("parameter"), [(g.label, g.nbytes) for g in report.by_operator()]
    (8000, 4000, [('Exp', 4000)])
    """
    adapter = adapter_of_loss("memory", loss, adapter)
    root = adapter.root(loss)
    if root is None:
        raise RuntimeError("the loss does not require grad, so it holds no graph\nIt was computed under no_grad?")
    return memory_of(adapter, [root[0]], params, recorder_for(ledger))


def memory_of(adapter: Adapter, roots: Sequence[Any], params: Any, recorder: DataflowObserver | None) -> MemoryReport:
    """Return what the graph below some nodes holds in memory.

    Parameters
    ----------
    params : object
        What gives names.
    """
    links = walk(adapter, roots)
    names = name_graph(adapter, links, params, tracker=recorder)
    known = _KnownMemory(adapter, names, recorder)
    tracker = Tracker(adapter)
    tracker.add_users(names.modules)
    found: dict[Any, SavedMemory] = {}
    released = 0
    # The walk takes the forward's order, so that memory is counted for the node that saved it first.
    for link in sorted(links.values(), key=lambda link: link.sequence_nr):
        views = adapter.saved(link.node)
        kept = [view for view in views if not view.released]
        released += len(views) - len(kept)
        if not kept:
            continue
        where = (adapter.node_name(link.node), tracker.module_of(link.node), adapter.location(link.node))
        for view in kept:
            key, piece = known.piece(view, where)
            if key in found:
                found[key] = replace(found[key], saved_by=found[key].saved_by + 1)
            elif piece.nbytes:
                found[key] = piece
    pieces = sorted(found.values(), key=lambda piece: -piece.nbytes)
    return MemoryReport(tuple(pieces), len(links), released)


class _KnownMemory:
    """The names and lines that are known of memory that the graph may hold."""

    def __init__(self, adapter: Adapter, names: Names, recorder: DataflowObserver | None) -> None:
        self._adapter = adapter
        self._recorder = recorder
        self._parameters = {adapter.memory_key(tensor): name for name, tensor in names.tensors}

    def piece(self, view: Any, where: tuple[str, str, Location | None]) -> tuple[Any, SavedMemory]:
        """Return the identity of the memory of a saved tensor, and what is known of it."""
        node, module, location = where
        facts: dict[str, Any] = {"node": node, "operator": operator_name(node), "module": module, "location": location}
        shape, dtype = tuple(view.shape or ()), str(view.dtype).rpartition(".")[2]
        if view.saved_version is None:
            return (id(view), node, view.name, location), SavedMemory(
                view.nbytes, "packed", view.name, shape, dtype, **facts
            )
        tensor = view.data
        key = self._adapter.memory_key(tensor)
        kind, name = "activation", view.name
        if key in self._parameters:
            kind, name = "parameter", self._parameters[key] or view.name
        elif self._recorder is not None and self._recorder.is_input(tensor):
            kind = "input"
        return key, SavedMemory(storage_bytes(tensor), kind, name, shape, dtype, **facts)
