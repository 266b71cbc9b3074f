"""Scopes of a frame, and what an editor can unfold in them: tensors by slices, for as long as the program stands."""

from __future__ import annotations

import ast
import contextlib
import itertools
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from ..debugging.prompt.plain_text import inside_lines, number
from ..debugging.session.session_errors import SessionError
from ..output.number_format import format_shape
from ..records.records import NodeRecord, SavedRecord, SessionState, TensorSummary
from ..wire.client import RemoteDebugger
from .stack import Frame

__all__ = ["VariableReferences", "is_harmless"]

_PAGE = 1000
_GRADIENT = re.compile(r"(?P<group>grads|produced)\[(?P<slot>\d+)\]")

Shown = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Unfolding:
    """What is inside of a variable or a scope: its parts, as of a slice, and how one of them is changed."""

    parts: Callable[[int, int], list[Shown]]
    change: Callable[[str, str], Shown] | None = None


class VariableReferences:
    """The variables of a program that is paused, by the numbers that the editor knows them by.

    Parameters
    ----------
    numbers : iterator of int
        Where numbers come from, which those of several programs share; from 1 on by default.
    """

    def __init__(self, numbers: Iterator[int] | None = None) -> None:
        self._known: dict[int, _Unfolding] = {}
        self._numbers = itertools.count(1) if numbers is None else numbers

    def __contains__(self, reference: int) -> bool:
        return reference in self._known

    def forget(self) -> None:
        """Forget all numbers: the program stands elsewhere."""
        self._known = {}

    def scopes(self, debugger: RemoteDebugger, frame: Frame) -> list[Shown]:
        """Return the scopes of a frame."""
        found = self._node_scopes(debugger, frame.node) if frame.node >= 0 else {}
        if frame.innermost:
            found["Locals"] = _Unfolding(
                lambda start, stop: self._locals(debugger)[start:stop],
                lambda name, value: self._assign(debugger, name, value),
            )
        return [
            {"name": name, "variablesReference": self._add(inside), "expensive": False}
            for name, inside in found.items()
        ]

    def _node_scopes(self, debugger: RemoteDebugger, index: int) -> dict[str, _Unfolding]:
        node, here = debugger.inspect(index), index == debugger.current
        where = "" if here else f"at_node({index})."

        found = {
            "Gradients in": self._gradient_scope(debugger, node, where, "grads"),
            "Gradients out": self._gradient_scope(debugger, node, where, "produced"),
            "Saved tensors": _Unfolding(_listed([self._saved(debugger, where, one) for one in node.saved])),
            **({"Compiled": _Unfolding(_listed(_compiled(node)))} if node.inside else {}),
            "Module": _Unfolding(_listed(_about(node))),
        }
        if here and debugger.watches:
            watches = [_plain(watch.expression, watch.text) for watch in debugger.watches]
            found["Watches"] = _Unfolding(_listed(watches))
        return found

    def unfold(self, reference: int, start: int, count: int) -> list[Shown]:
        """Return what is inside of a variable; `count` is 0 for all of it, of which there are a thousand at most.

        Raises
        ------
        ValueError
            If there is no such variable any more.
        """
        parts = self._of(reference).parts(start, start + (count or _PAGE + 1))
        return parts if count or len(parts) <= _PAGE else [*parts[:_PAGE], _plain("...", f"{_PAGE} are shown")]

    def change(self, reference: int, name: str, value: str) -> Shown:
        """Set a variable inside of another to the value of an expression; return what is shown of it then.

        Raises
        ------
        ValueError
            If it cannot be set.
        """
        change = self._of(reference).change
        if change is None:
            raise ValueError(f"{name} cannot be set: a gradient of the current node and a variable of the program can")
        return change(name, value)

    def of_expression(self, debugger: RemoteDebugger, expression: str) -> Shown:
        """Return what an editor shows of the value of an expression."""
        text = debugger.evaluate_text(expression)
        shape = None
        if is_harmless(expression):  # it is asked a second time
            with contextlib.suppress(TypeError, ValueError, RuntimeError, SessionError):
                shape = debugger.elements(expression, 0, 0).shape
        return {"result": text, **self._inside(debugger, expression, shape)}

    def _of(self, reference: int) -> _Unfolding:
        found = self._known.get(reference)
        if found is None:
            raise ValueError("this variable is of an earlier stop")
        return found

    def _add(self, inside: _Unfolding) -> int:
        number = next(self._numbers)
        self._known[number] = inside
        return number

    # --- what is shown ---

    def _gradient_scope(self, debugger: RemoteDebugger, node: NodeRecord, where: str, group: str) -> _Unfolding:
        """Return a node's gradients of a group; of the current one, for which `where` is empty, they can be set."""

        def change(name: str, value: str) -> Shown:
            debugger.set_grad(_check_gradient(debugger, name), value)
            changed = self._gradients(debugger, debugger.inspect(node.index), where, group)
            return next(shown for shown in changed if shown["name"] == name)

        return _Unfolding(_listed(self._gradients(debugger, node, where, group)), None if where else change)

    def _gradients(self, debugger: RemoteDebugger, node: NodeRecord, where: str, group: str) -> list[Shown]:
        shown = []
        for slot, summary in enumerate((node.grad_outputs if group == "grads" else node.grad_inputs) or ()):
            name = f"{group}[{slot}]"
            expression = f"{where}{name}"
            if summary is None:
                shown.append(_plain(name, "None"))
                continue
            kind = {"type": f"{summary.dtype}{list(summary.shape)}"}
            inside = self._inside(debugger, expression, summary.shape)
            shown.append({"name": name, "value": _in_short(summary), **kind, **inside})
        return shown

    def _saved(self, debugger: RemoteDebugger, where: str, saved: SavedRecord) -> Shown:
        kind = f"{saved.dtype}{list(saved.shape or ())}"
        versions = f"version {saved.saved_version}" if saved.saved_version is not None else "no version"
        if saved.current_version not in (None, saved.saved_version):
            versions += f", now {saved.current_version}"
        numbers = f"  {_in_short(saved.summary)}" if saved.summary is not None else ""
        shape = saved.shape if saved.state != "released" else None
        inside = self._inside(debugger, f"{where}saved[{saved.name!r}]", shape)
        return {"name": saved.name, "value": f"{saved.state}, {versions}{numbers}", "type": kind, **inside}

    def _locals(self, debugger: RemoteDebugger) -> list[Shown]:
        return [
            {"name": v.name, "value": v.text, "type": v.kind, **self._inside(debugger, v.name, v.shape)}
            for v in debugger.variables()
        ]

    def _assign(self, debugger: RemoteDebugger, name: str, value: str) -> Shown:
        debugger.execute(f"{name} = ({value})")
        shown = next((one for one in self._locals(debugger) if one["name"] == name), None)
        return shown or _plain(name, debugger.evaluate_text(name))

    def _inside(
        self, debugger: RemoteDebugger, expression: str, shape: tuple[int, ...] | None, first: int = 0
    ) -> Shown:
        """Return the fields that let a tensor be unfolded; `first` is the place of its first element in the whole."""
        if not shape or not math.prod(shape):
            return {"variablesReference": 0}

        def parts(start: int, stop: int) -> list[Shown]:
            places = range(*slice(start, stop).indices(shape[0]))
            if len(shape) == 1:
                page = debugger.elements(expression, first + places.start, first + max(places.start, places.stop))
                return [_plain(f"[{place}]", str(value)) for place, value in zip(places, page.values)]
            size = math.prod(shape[1:])
            return [self._slice(debugger, expression, shape[1:], place, first + place * size) for place in places]

        def change(name: str, value: str) -> Shown:
            return _plain(name, _set_element(debugger, expression, first, name, value))

        unfolding = _Unfolding(parts, change if len(shape) == 1 and _GRADIENT.fullmatch(expression) else None)
        whole = {"evaluateName": expression} if not first else {}
        return {"variablesReference": self._add(unfolding), "indexedVariables": shape[0], **whole}

    def _slice(
        self, debugger: RemoteDebugger, expression: str, shape: tuple[int, ...], place: int, first: int
    ) -> Shown:
        return {"name": f"[{place}]", "value": f"{list(shape)}", **self._inside(debugger, expression, shape, first)}


def is_harmless(expression: str) -> bool:
    """Whether an expression only looks: it calls nothing.

    Examples
    --------
    >>> is_harmless("model.weight.grad[0]"), is_harmless("queue.pop()"), is_harmless("x = 1")
    (True, False, False)
    """
    try:
        tree = ast.parse(expression.strip(), mode="eval")
    except (SyntaxError, ValueError):
        return False
    return not any(isinstance(node, (ast.Call, ast.NamedExpr, ast.Await)) for node in ast.walk(tree))


def _listed(shown: list[Shown]) -> Callable[[int, int], list[Shown]]:
    return lambda start, stop: shown[start:stop]


def _in_short(summary: TensorSummary) -> str:
    """Return a tensor as a narrow column shows it: the shape, what is wrong with it, and the norm come first."""
    bad = [f"{name} {many}" for name, many in (("nans", summary.nans), ("infs", summary.infs)) if many]
    norm = [f"norm {number(summary.norm)}"] if summary.has_values else []
    return "  ".join([format_shape(summary.shape), *bad, *norm, summary.preview])


def _plain(name: str, value: str) -> Shown:
    return {"name": name, "value": value, "variablesReference": 0}


def _about(node: NodeRecord) -> list[Shown]:
    facts = {"module": node.module, "parameter": node.parameter, "operator": node.operator, "state": node.state}
    return [_plain(name, value) for name, value in facts.items() if value]


def _compiled(node: NodeRecord) -> list[Shown]:
    """Return what is inside of a region that torch.compile has compiled, in the order of its backward."""
    return [_plain(f"[{place}]", text) for place, text in enumerate(inside_lines(node.inside))]


def _check_gradient(debugger: RemoteDebugger, name: str) -> int:
    """Return which gradient a name means, one that can be set where the program stands."""
    group = "produced" if debugger.state is SessionState.PAUSED_AFTER else "grads"
    found = _GRADIENT.fullmatch(name)
    if found is None or found["group"] != group:
        raise ValueError(f"{name} cannot be set here: before a node its grads can, after it what it has produced")
    return int(found["slot"])


def _set_element(debugger: RemoteDebugger, gradient: str, first: int, name: str, value: str) -> str:
    slot, place = _check_gradient(debugger, gradient), first + int(name.strip("[]"))
    debugger.set_grad(slot, f"(lambda all: np.put(all, {place}, ({value})) or all)(np.array({gradient}))")
    return str(debugger.elements(gradient, place, place + 1).values[0])
