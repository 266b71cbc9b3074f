"""D360: A step of the program's own gives a name another tensor, and the parameter stays as it is."""

from __future__ import annotations

import ast
import functools
import weakref
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from ....output.number_format import count
from ....records.records import Location
from ...examination import named
from ...explanation import at
from ...program_facts import EXAMINATION, Fact, WatchedProgram
from ...rule_registry import Found, Rule
from ...watch import Watch

__all__ = ["ReboundParameter"]

_UPDATING = {"add", "sub"}


class LostStep(NamedTuple):
    """A line that computes steps and applies none.

    Attributes
    ----------
    name : str
        Of the variable that gets them.
    times : int
        How often the line ran again for a parameter that had a new gradient by then, and the same numbers.
    concerns : tuple of str
        The paths of the parameters.
    """

    location: Location
    name: str
    times: int
    concerns: tuple[str, ...]


@dataclass(eq=False)
class _StillParameter:
    leaf: weakref.ref[Any]
    location: Location
    name: str
    version: int
    backward: Any
    times: int = 0
    path: str = ""

    @property
    def has_moved(self) -> bool:
        """Whether it has other numbers by now, as far as it is still there."""
        leaf = self.leaf()
        return leaf is not None and leaf._version != self.version


class LostSteps(Watch):
    """Follows the parameters for which a line such as ``p = p - lr * p.grad`` has run."""

    operators_heard = frozenset(_UPDATING)
    operators_of_steps = False

    def __init__(self, program: WatchedProgram) -> None:
        self._least = program.limits.cleared
        self._names = program.watch_of(EXAMINATION).names
        self._adapter = program.adapter
        self._recorder = program.ledger.recorder
        self._still: dict[int, _StillParameter] = {}

    def operator_ran(self, call: Any) -> None:
        """Look at a sum or a difference."""
        if call.location is None:
            return
        name = _rebound_in(call.location.source)
        if not name:
            return
        for tensor in call.inputs:
            if self._adapter.is_tensor(tensor) and tensor.requires_grad and self._adapter.is_leaf(tensor):
                self._note(tensor, call.location, name)

    def _note(self, leaf: Any, location: Location, name: str) -> None:
        known, backward = self._still.get(id(leaf)), self._recorder.accumulated(leaf)
        if known is None or known.leaf() is not leaf or known.has_moved:
            self._still[id(leaf)] = _StillParameter(weakref.ref(leaf), location, name, leaf._version, backward)
        elif backward is not known.backward:
            known.backward = backward
            known.times += 1
            known.path = known.path or self._names.paths().get(id(leaf), "")

    @property
    def found(self) -> tuple[LostStep, ...]:
        """The lines, for parameters that have not changed since."""
        groups: dict[tuple[Location, str], list[_StillParameter]] = {}
        for still in self._still.values():
            if still.times >= self._least and not still.has_moved:
                groups.setdefault((still.location, still.name), []).append(still)
        return tuple(
            LostStep(location, name, max(still.times for still in group), tuple(filter(None, (s.path for s in group))))
            for (location, name), group in groups.items()
        )


@functools.cache
def _rebound_in(source: str) -> str:
    """Return the variable to which a line assigns itself and its gradient, added or subtracted; empty if there is none.

    Examples
    --------
    >>> [_rebound_in(line) for line in ("p = p - lr * p.grad", "p -= lr * p.grad", "q = p - lr * p.grad", "for p in")]
    ['p', '', '', '']
    """
    if ".grad" not in source:
        return ""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return ""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.BinOp) and len(node.targets) == 1:
            name = node.targets[0].id if isinstance(node.targets[0], ast.Name) else ""
            terms = (node.value.left, node.value.right)
            if any(isinstance(term, ast.Name) and term.id == name for term in terms) and _reads_grad(node.value, name):
                return name
    return ""


def _reads_grad(value: ast.AST, name: str) -> bool:
    return any(
        isinstance(part, ast.Attribute)
        and part.attr == "grad"
        and isinstance(part.value, ast.Name)
        and part.value.id == name
        for part in ast.walk(value)
    )


LOST_STEPS = Fact("lost steps", LostSteps, lambda watch: watch.found, forward=True, backward=True, operators=True)


class ReboundParameter(Rule):
    """A step of the program's own gives a name another tensor, and the parameter stays as it is."""

    code = "D360"
    title = "a step that gives a name another tensor"
    severity = "silent-wrong"
    certainty = "likely"
    needs = (LOST_STEPS,)
    kind = "updates"
    explains = ("D308", "D310")
    what = """
        `p = p - lr * p.grad` computes the parameter after the step and calls that `p`; the model goes on with the one
        it has. An update writes into the parameter, under no_grad(): `p -= lr * p.grad`.
        """
    bad = """
        model = gs.nn.Linear(3, 1)
        for _ in range(4):
            model.zero_grad()
            (model(gs.randn(8, 3)) - 1).square().mean().backward()
            with gs.no_grad():
                for p in model.parameters():
                    p = p - 0.1 * p.grad
        """
    good = """
        model = gs.nn.Linear(3, 1)
        for _ in range(4):
            model.zero_grad()
            (model(gs.randn(8, 3)) - 1).square().mean().backward()
            with gs.no_grad():
                for p in model.parameters():
                    p -= 0.1 * p.grad
        """
    topic = "not-learning"

    def judge(self, found: Iterable[LostStep]) -> Iterator[Found]:
        """Yield what is found, and where."""
        for one in found:
            whose = named(one.concerns) or "the parameter"
            text = (
                f"the step{at(one.location)} binds the name `{one.name}` to another tensor: {whose} kept the numbers "
                f"that they had, through {count(one.times, 'further gradient')}\n"
                f"  Write into the parameter, under no_grad(): {one.name} -= ..., or let an optimizer do it."
            )
            yield Found(text, one.location, one.concerns)
