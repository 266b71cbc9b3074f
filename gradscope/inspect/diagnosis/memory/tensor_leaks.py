"""Tensors that outlive the code that made them: what keeps each, by the way from a variable, or by its cycle."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ...adapters import Adapter
from ...adapters.guarded_observer import GuardedObserver
from ...output.number_format import count, format_bytes, format_shape
from ...records.object_search import living
from ...records.records import Location
from ...source.call_sites import place
from ..explanation import Explanation, adapter_of, at, element_bytes
from .reference_paths import SECONDS, Roots, cycle_of

__all__ = ["Leak", "Leaks", "leaks"]

_SHOWN = 10
_LOOKED_INTO = 50


@dataclass(frozen=True)
class Leak:
    """A tensor that is still alive.

    Attributes
    ----------
    kind : str
        ``'variable'`` (reachable), ``'cycle'`` (only the garbage collector can free it) or ``'hidden'`` (held from
        where Python cannot see: C++).
    path : str
        The way from a variable, or the types on the cycle.
    made : Location or None
        Where an operator made it.
    count : int
        How many tensors are kept in the same way.
    """

    shape: tuple[int, ...]
    dtype: str
    nbytes: int
    kind: str
    path: str
    made: Location | None
    count: int = 1

    def __str__(self) -> str:
        times = f"{self.count} x " if self.count > 1 else ""
        how = {"variable": "kept by", "cycle": "in a reference cycle:", "hidden": "kept by"}[self.kind]
        return f"{times}{self.dtype} {format_shape(self.shape)}{at(self.made)}: {how} {self.path}"


@dataclass(frozen=True, repr=False)
class Leaks(Explanation):
    """The tensors that were made in a block and outlive it.

    Attributes
    ----------
    kept : tuple of Leak
        Largest first.
    unexplained : int
        How many more there are, none larger than these, of which nobody knows what keeps them: they were too many, or
        the search took too long.

    See Also
    --------
    leaks : watches a block, and has them as its result.

    Examples
    --------
    >>> import gradscope as gs
    >>> import gradscope.inspect as gi
    >>> history = []
    >>> with gi.leaks() as watch:
    ...     history.append(gs.ones(4))
    >>> [leak.nbytes for leak in watch.result.kept]
    [16]
    """

    kept: tuple[Leak, ...]
    unexplained: int = 0

    @property
    def total(self) -> int:
        """Bytes of the tensors in `kept`."""
        return sum(leak.nbytes * leak.count for leak in self.kept)

    @property
    def cycles(self) -> tuple[Leak, ...]:
        """The tensors that only the garbage collector can free."""
        return tuple(leak for leak in self.kept if leak.kind == "cycle")

    def __bool__(self) -> bool:
        return bool(self.kept or self.unexplained)

    def __str__(self) -> str:
        if not self:
            return "Every tensor that was made is gone."
        if not self.kept:
            return f"{count(self.unexplained, 'tensor')} still alive; what keeps them was not found in {SECONDS:g} s."
        number = sum(leak.count for leak in self.kept)
        lines = [f"{count(number, 'tensor')} still alive, {format_bytes(self.total)}:"]
        lines += [f"  {leak}" for leak in self.kept[:_SHOWN]]
        if len(self.kept) > _SHOWN:
            lines.append(f"  and {len(self.kept) - _SHOWN} more groups")
        if self.unexplained:
            lines.append(f"  and {count(self.unexplained, 'more tensor')}, none larger, not looked into")
        if self.cycles:
            lines.append("  A hook or ctx attribute that refers to its own output makes a cycle: save_for_backward(),")
            lines.append("  or a weak reference, avoids it.")
        return "\n".join(lines)

    def _title(self) -> str:
        return f"Tensors still alive: {format_bytes(self.total)}"

    def _columns(self) -> Sequence[str]:
        return ("#count", "shape", "dtype", "#bytes", "kept", "by", "made at")

    def _rows(self) -> Iterable[Sequence[str]]:
        for e in self.kept:
            size = f"{e.nbytes * e.count:,}"
            yield (str(e.count), format_shape(e.shape), e.dtype, size, e.kind, e.path, place(e.made))


class leaks(GuardedObserver):  # noqa: N801 - a context manager, called like a function
    """Context manager: say which tensors made in the block outlive it, and what keeps them.

    The garbage collector is held back inside the block, so that cycles show.

    Parameters
    ----------
    adapter : Adapter, optional
        Of one framework only; all by default.

    Attributes
    ----------
    result : Leaks
        Set when the block has ended.

    See Also
    --------
    growth

    Examples
    --------
    >>> import gradscope as gs
    >>> import gradscope.inspect as gi
    >>> class Cache:
    ...     pass
    >>> with gi.leaks() as watch:
    ...     cache = Cache()
    ...     cache.tensor = gs.ones(4)
    ...     cache.itself = cache
    ...     del cache
    >>> [leak.kind for leak in watch.result.kept]
    ['cycle']
    """

    def __init__(self, *, adapter: Adapter | None = None) -> None:
        self.adapter = adapter_of(None, adapter)
        self.result = Leaks(())
        self._lines: dict[int, tuple[weakref.ref[Any], Location | None]] = {}
        self._before: set[int] = set()
        self._observation: Any = None
        self._was_on = True

    def operator_ran(self, call: Any) -> None:
        """Note on which line a tensor is made."""
        for tensor in call.outputs:
            key, table = id(tensor), self._lines
            table[key] = (weakref.ref(tensor, partial(_forget, table, key)), call.location)

    def __enter__(self) -> leaks:
        gc.collect()
        self._before = {id(tensor) for tensor in living(self.adapter.tensor_classes())}
        self._was_on = gc.isenabled()
        gc.disable()
        self._observation = self.adapter.observe(self, forward=False, backward=False, operators=True)
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self._observation.close()
        try:
            self.result = self._look()
        except Exception as own:
            self.fail(own)
        finally:
            self._lines.clear()
            if self._was_on:
                gc.enable()

    def _look(self) -> Leaks:
        made = [tensor for tensor in living(self.adapter.tensor_classes()) if id(tensor) not in self._before]
        alive = [tensor for tensor in made if _is_whole(tensor)]
        alive.sort(key=element_bytes, reverse=True)
        roots = Roots()
        found: dict[Any, Leak] = {}
        explained = 0
        for tensor in alive[:_LOOKED_INTO]:
            leak = None if roots.cut else self._leak(tensor, roots, (made, alive))
            if leak is None:
                break
            explained += 1
            key = (leak.shape, leak.dtype, leak.kind, leak.path.partition("[")[0], leak.made)
            known = found.get(key)
            found[key] = leak if known is None else replace(known, count=known.count + 1)
        return Leaks(tuple(found.values()), len(alive) - explained)

    def _leak(self, tensor: Any, roots: Roots, ours: Sequence[list[Any]]) -> Leak | None:
        """Return what keeps a tensor; None where the time was over before it was found."""
        spec = self.adapter.spec(tensor)
        line = self._lines.get(id(tensor))
        reference, around = roots.search(tensor, ignore=ours)
        # Without a variable the tensor is in a cycle, or one of its referrers is.
        cycle = "" if reference is not None else next(filter(None, map(cycle_of, (tensor, *around))), "")
        if reference is not None:
            kind, path = "variable", str(reference)
        elif cycle:
            kind, path = "cycle", cycle
        elif roots.cut:
            return None
        else:
            kind, path = "hidden", "something that Python cannot see (a C++ graph)"
        return Leak(spec.shape, spec.dtype, element_bytes(tensor), kind, path, None if line is None else line[1])


def _forget(table: dict[int, Any], key: int, reference: Any) -> None:
    table.pop(key, None)


def _is_whole(tensor: Any) -> bool:
    """Whether all attributes are set: another thread may just be making it."""
    try:
        element_bytes(tensor)
    except AttributeError:
        return False
    return True
