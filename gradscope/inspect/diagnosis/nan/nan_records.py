"""Records of NaN and Inf: their producers, the steps that passed them on, and the whole."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ...output.number_format import count, format_shape
from ...records.records import Location
from ...source.call_sites import place
from ..explanation import Explanation, at

__all__ = ["Producer", "NanOrigin", "NanStep"]

_SHOWN = 6


@dataclass(frozen=True)
class NanStep:
    """An operator or node that passed a bad value on."""

    name: str
    module: str
    location: Location | None

    def __str__(self) -> str:
        return f"{self.name} ({place(self.location)})" if self.location is not None else self.name


@dataclass(frozen=True)
class Producer:
    """An operator or node out of which NaN or Inf came although none had gone in.

    Attributes
    ----------
    direction : str
        ``'forward'`` or ``'backward'``.
    value : str
        ``'NaN'`` or ``'Inf'``.
    name : str
        The operator (forward) or node (backward).
    location : Location or None
        The user's line of the operator; for a node, the line that made it.
    text : str
        Why.
    help : str
        What to do.
    element : tuple of int
        Index of the first bad element.
    operands : tuple of (str, float)
        What that element was computed from.
    bad, numel : int
        How many elements are bad, of how many.
    chain : tuple of NanStep
        Who passed it on, up to where it was noticed.
    backwards : int
        How many backward passes had begun by then, since somebody counts; 0 also where nobody does.
    hidden : bool
        Whether it has no gradient, and the last operator that got something of it let nothing out.
    inherited : bool or None
        Whether a node has it from a saved tensor, which had it in the forward pass already; None where that is not
        known, and the node need not have made it.
    """

    direction: str
    value: str
    name: str
    module: str
    location: Location | None
    text: str
    help: str
    element: tuple[int, ...]
    operands: tuple[tuple[str, float], ...]
    bad: int
    numel: int
    shape: tuple[int, ...]
    chain: tuple[NanStep, ...] = ()
    backwards: int = 0
    hidden: bool = False
    inherited: bool | None = False

    @property
    def harmless(self) -> bool:
        """Whether it is an infinity of a constant that leads nowhere: as a table that is computed whole, to be cut."""
        return self.hidden and self.value == "Inf" and self.direction == "forward"

    def __str__(self) -> str:
        lines = [self._head(), self.text]
        given = ", ".join(f"{name} = {value + 0.0:.6g}" for name, value in self.operands)
        where = f"element {list(self.element)} of {format_shape(self.shape)}" if self.shape else "its only element"
        lines.append(f"{where}{f': {given}' if given else ''} ({self.bad:,} of {count(self.numel, 'element')} bad)")
        if self.backwards > (self.direction == "backward"):
            number = self.backwards + (self.direction == "forward")
            lines.append(f"first seen {'before' if self.direction == 'forward' else 'in'} backward {number}")
        if self.chain:
            lines.append(f"passed on by {_chain_text(self.chain)}")
        if self.help:
            lines.append(self.help)
        return "\n  ".join(lines)

    def _head(self) -> str:
        inside = f" in `{self.module}`" if self.module else ""
        whose = f"{self.name}{inside}{at(self.location)}"
        if self.inherited is None:
            return f"{self.value} comes out of {whose}"
        what = "of the forward pass is handed on" if self.inherited else f"is produced in {self.direction}"
        return f"{self.value} {what} by {whose}"


def _chain_text(chain: Sequence[NanStep]) -> str:
    if len(chain) <= _SHOWN:
        return " -> ".join(map(str, chain))
    half = _SHOWN // 2
    return " -> ".join([*map(str, chain[:half]), f"... {len(chain) - 2 * half} more ...", *map(str, chain[-half:])])


@dataclass(frozen=True, repr=False)
class NanOrigin(Explanation):
    """Where NaN and Inf come from.

    Attributes
    ----------
    producers : tuple of Producer
        The first is the one to mend; NaN before Inf, forward before backward, in the order in which they happened.
    passed_on : int
        How many operators and nodes only passed bad values on.
    masked : tuple of NanStep
        Who got bad values and let none out (``nan_to_num``, ``where``): the loss looks clean, the gradient need not be.
    parameters : tuple of str
        The parameters that a bad gradient reached, as a sentence names them.
    rejected : bool
        Whether the program has asked whether such values are finite, or how large they are, and went on without them,
        as a line search or a sampler does.

    See Also
    --------
    nan_origin

    Examples
    --------
    >>> import gradscope as gs
    >>> import gradscope.inspect as gi
    >>> x = gs.zeros(1, requires_grad=True)
    >>> origin = gi.nan_origin((x / x).sum())
    >>> [producer.value for producer in origin.producers]
    ['Inf']
    """

    producers: tuple[Producer, ...]
    passed_on: int = 0
    masked: tuple[NanStep, ...] = ()
    parameters: tuple[str, ...] = ()
    rejected: bool = False

    @property
    def first(self) -> Producer | None:
        """The one to mend."""
        return self.producers[0] if self.producers else None

    def __bool__(self) -> bool:
        return bool(self.producers)

    def __str__(self) -> str:
        if not self.producers:
            return "No NaN and no Inf was produced."
        lines = [str(self.producers[0])]
        for other in self.producers[1:]:
            lines.append(f"also: {other.value} in {other.direction} by {other.name}{at(other.location)}: {other.text}")
        for step in self.masked:
            lines.append(f"hidden by {step}: bad values went in and none came out; their gradients may still be bad")
        if self.parameters:
            lines.append(f"bad gradients reached {', '.join(self.parameters)}")
        return "\n".join(lines)

    def _title(self) -> str:
        return "Where NaN and Inf come from"

    def _columns(self) -> Sequence[str]:
        return ("", "value", "produced by", "line", "why", "operands", "#bad")

    def _rows(self) -> Iterable[Sequence[str]]:
        for producer in self.producers:
            operands = ", ".join(f"{name} = {value + 0.0:.6g}" for name, value in producer.operands)
            name = f"{producer.module}: {producer.name}" if producer.module else producer.name
            bad = f"{producer.bad}/{producer.numel}"
            yield (producer.direction, producer.value, name, place(producer.location), producer.text, operands, bad)
