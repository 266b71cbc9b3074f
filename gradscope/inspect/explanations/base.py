"""What all explanations are: frozen data with a sentence, a table, a dictionary and, where it helps, a picture."""

from __future__ import annotations

import dataclasses
import enum
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..adapters import Adapter, adapter_for
from ..records import Location
from ..statistics import format_shape
from .lines import place

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["Explanation", "adapter_of", "count", "format_bytes", "named_tensors", "plain"]


class Explanation:
    """Base of the explanations.

    ``str(explanation)`` is the text to read, :meth:`table` the same as a Rich table, :meth:`to_dict` and
    :meth:`to_json` the same for machines.
    """

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as numbers, text, lists and dictionaries.

        Returns
        -------
        dict
            ``kind`` is the name of the class, ``text`` what ``str()`` gives.
        """
        return {"kind": type(self).__name__, "text": str(self), **plain(self)}

    def to_json(self) -> str:
        """Return :meth:`to_dict` as a JSON object; NaN and infinities are written as strings.

        Returns
        -------
        str
        """
        return json.dumps(self.to_dict(), indent=2, allow_nan=False)

    def table(self) -> Table:
        """Return the explanation as a Rich table.

        Returns
        -------
        rich.table.Table
        """
        from .tables import table

        return table(self._title(), self._columns(), self._rows())

    # --- what a table is made of ---

    def _title(self) -> str:
        return type(self).__name__

    def _columns(self) -> Sequence[str]:
        return ("", "")

    def _rows(self) -> Iterable[Sequence[str]]:
        return ((line,) for line in str(self).splitlines())


def plain(value: Any) -> Any:
    """Return a record as numbers, text, lists and dictionaries.

    Parameters
    ----------
    value : object

    Returns
    -------
    object

    Examples
    --------
    >>> plain(Location("train.py", 3, "main", "y = x.log()"))
    {'filename': 'train.py', 'line': 3, 'function': 'main', 'source': 'y = x.log()'}
    >>> plain((1, float("nan")))
    [1, 'nan']
    """
    if isinstance(value, Location):
        return {
            "filename": value.filename,
            "line": value.lineno,
            "function": value.function,
            "source": value.source,
        }
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = ((f.name, getattr(value, f.name)) for f in dataclasses.fields(value))
        return {name: plain(item) for name, item in fields if not name.startswith("_")}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item) for item in value]
    return value


def adapter_of(value: Any, adapter: Adapter | None = None) -> Adapter:
    """Return the adapter that answers for a tensor or a module.

    Parameters
    ----------
    value : Tensor, Module or None
        None gives one that answers for all frameworks.
    adapter : Adapter, optional
        The caller's choice, which wins.

    Returns
    -------
    Adapter

    Raises
    ------
    TypeError
        If no known framework owns `value`.
    """
    return adapter_for(value) if adapter is None and value is not None else adapter or adapter_for()


def named_tensors(adapter: Adapter, params: Any) -> list[tuple[str, Any]]:
    """Return the (name, tensor) pairs that a module, a mapping, pairs, or one tensor stand for.

    Parameters
    ----------
    adapter : Adapter
    params : Module, mapping of str to Tensor, iterable of (str, Tensor) or of Tensor, Tensor, or None

    Returns
    -------
    list of (str, Tensor)
    """
    if params is None:
        return []
    if adapter.is_tensor(params):
        return [("", params)]
    if hasattr(params, "named_parameters"):
        return list(adapter.named_parameters(params))
    items = list(params.items()) if isinstance(params, Mapping) else list(params)
    pairs = [item if isinstance(item, tuple) else (f"[{i}]", item) for i, item in enumerate(items)]
    for name, tensor in pairs:
        if not (isinstance(name, str) and adapter.is_tensor(tensor)):
            raise TypeError(
                f"expected parameters, got an item of {type(tensor).__name__}\n"
                "Pass a module, a mapping of names to tensors, or tensors."
            )
    return pairs


def count(number: int, one: str, several: str = "") -> str:
    """Return a number with its noun.

    Parameters
    ----------
    number : int
    one, several : str
        `several` defaults to `one` with an s.

    Returns
    -------
    str

    Examples
    --------
    >>> count(1, "node"), count(2, "node")
    ('1 node', '2 nodes')
    """
    return f"{number:,} {one if number == 1 else several or one + 's'}"


def format_bytes(number: int) -> str:
    """Return a size for people.

    Parameters
    ----------
    number : int

    Returns
    -------
    str

    Examples
    --------
    >>> format_bytes(512), format_bytes(1536), format_bytes(3 * 2**30)
    ('512 B', '1.5 KiB', '3.0 GiB')
    """
    size, unit = float(number), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if size < 1024:
            break
        size, unit = size / 1024, larger
    return f"{number} B" if unit == "B" else f"{size:.1f} {unit}"


def storage_bytes(tensor: Any) -> int:
    """Return the size of the memory that a tensor looks at, which may be more than its elements."""
    try:
        return int(tensor.untyped_storage().nbytes())
    except (RuntimeError, NotImplementedError):  # sparse, or without memory
        return int(tensor.numel()) * int(tensor.element_size())


def describe(name: str, shape: tuple[int, ...] | None, what: str = "a tensor") -> str:
    """Return how a tensor is called in a sentence."""
    return f"`{name}`" if name else f"{what} of shape {format_shape(shape)}"


def at(location: Location | None) -> str:
    """Return `` at train.py:31 (x.detach())``, or an empty string where the line is not known."""
    if location is None:
        return ""
    source = f" ({location.source})" if location.source else ""
    return f" at {place(location)}{source}"
