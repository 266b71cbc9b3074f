"""The base of all explanations: frozen data with a sentence, a table, a dictionary and, where it helps, a picture."""

from __future__ import annotations

import dataclasses
import enum
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..adapters import Adapter, adapter_for
from ..output.number_format import format_shape
from ..output.rich_tables import table
from ..output.terminal_text import json_text
from ..records.naming import named_tensors, unusable
from ..records.records import Location
from ..source.call_sites import place
from .plots import svg_of

if TYPE_CHECKING:
    from rich.table import Table

__all__ = [
    "Explanation",
    "adapter_of",
    "adapter_of_loss",
    "at",
    "describe",
    "element_bytes",
    "parameters_of",
    "plain",
    "storage_bytes",
]


class Explanation:
    """Base of the explanations.

    ``str(explanation)`` is the text to read, which a prompt shows too; a notebook shows a table with the text below it,
    and a plot where there is one and Matplotlib is installed. :meth:`table` is the same as a Rich table,
    :meth:`to_dict` and :meth:`to_json` are the same for machines.
    """

    def __repr__(self) -> str:
        return str(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as numbers, text, lists and dictionaries.

        Returns
        -------
        dict
            ``kind`` is the name of the class, ``text`` what ``str()`` gives.
        """
        return {"kind": type(self).__name__, "text": str(self), **plain(self)}

    def to_json(self) -> str:
        """Return :meth:`to_dict` as a JSON object; NaN and infinities are written as strings."""
        return json_text(self.to_dict(), indent=2)

    def table(self) -> Table:
        """Return the explanation as a Rich table."""
        return table(self._title(), self._columns(), self._rows())

    def _repr_html_(self) -> str:
        # A page is made when a notebook asks for it.
        from ..output import notebook_html as html

        rows = [[str(cell) for cell in row] for row in self._rows()]
        table = html.table(self._columns(), rows, caption=self._title()) if rows else ""
        plot = getattr(self, "plot", None)
        drawn = svg_of(plot) if rows and plot is not None else b""
        picture = html.embedded_picture(drawn, self._title()) if drawn else ""
        return html.page(table, picture, html.note(str(self)))

    # --- what a table is made of ---

    def _title(self) -> str:
        return type(self).__name__

    def _columns(self) -> Sequence[str]:
        return ("", "")

    def _rows(self) -> Iterable[Sequence[str]]:
        return ((line,) for line in str(self).splitlines())


def plain(value: Any) -> Any:
    """Return a record as numbers, text, lists and dictionaries.

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

    Raises
    ------
    TypeError
        If no known framework owns `value`.
    """
    return adapter_for(value) if adapter is None and value is not None else adapter or adapter_for()


def adapter_of_loss(asked: str, loss: Any, adapter: Adapter | None = None) -> Adapter:
    """Return the adapter that answers for a loss.

    Parameters
    ----------
    asked : str
        The function that it was passed to.
    adapter : Adapter, optional
        The caller's choice, which wins.

    Raises
    ------
    TypeError
        If `loss` is no tensor: a module has no graph, what it computes has.
    """
    found = adapter_of(loss, adapter)
    if loss is None or not found.is_tensor(loss):
        raise TypeError(
            f"{asked}() takes a loss, a tensor that was computed, got {type(loss).__name__}\n"
            f"Pass what the model computed: gi.{asked}(model(inputs).sum())."
        )
    return found


def parameters_of(params: Any, loss: Any, adapter: Adapter | None = None) -> tuple[Adapter, list[tuple[str, Any]]]:
    """Return the adapter that answers for parameters, and their names and tensors.

    Parameters
    ----------
    params : Module, mapping of str to Tensor, or iterable of (str, Tensor) or Tensor
        A tensor without a name is called by its place: ``[0]``.
    loss : Tensor or None
        Tells the framework, where there are no parameters.
    adapter : Adapter, optional
        The caller's choice, which wins.

    Raises
    ------
    TypeError
        If `params` is none of these.
    """
    sample = params
    if not hasattr(params, "named_parameters") and not hasattr(params, "grad_fn"):
        if not isinstance(params, Iterable):
            raise unusable(params)
        params = list(params.items()) if isinstance(params, Mapping) else list(params)
        sample = next((item[-1] if isinstance(item, tuple) and item else item for item in params), loss)
    try:
        adapter = adapter_of(sample, adapter)
    except TypeError:
        raise unusable(sample) from None
    return adapter, named_tensors(adapter, params)


def element_bytes(tensor: Any) -> int:
    """Return the size of the elements of a tensor."""
    return int(tensor.numel()) * int(tensor.element_size())


def storage_bytes(tensor: Any) -> int:
    """Return the size of the memory that a tensor looks at, which may be more than its elements."""
    try:
        return int(tensor.untyped_storage().nbytes())
    except (RuntimeError, NotImplementedError):  # a sparse tensor, or one without memory
        return element_bytes(tensor)


def describe(name: str, shape: tuple[int, ...] | None, what: str = "a tensor") -> str:
    """Return how a tensor is called in a sentence."""
    return f"`{name}`" if name else f"{what} of shape {format_shape(shape)}"


def at(location: Location | None, told: Location | None = None) -> str:
    """Return `` at train.py:31 (x.detach())``, or an empty string where the line is not known.

    Parameters
    ----------
    told : Location, optional
        What the same sentence has named before: a line is not written out twice.

    Examples
    --------
    >>> line = Location("train.py", 31, "main", "x.detach()")
    >>> at(line), at(line, line), at(None)
    (' at train.py:31 (x.detach())', ' in the same line', '')
    """
    if location is None:
        return ""
    if told is not None and (told.filename, told.lineno) == (location.filename, location.lineno):
        return " in the same line"
    source = f" ({location.source})" if location.source else ""
    return f" at {place(location)}{source}"
