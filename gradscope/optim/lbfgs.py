"""L-BFGS, with a line search for the strong Wolfe conditions.

References
----------
D. Liu, J. Nocedal, "On the limited memory BFGS method for large scale optimization", Math. Programming 45, 1989.
J. Nocedal, S. Wright, "Numerical optimization", 2nd edition, 2006, algorithms 7.4, 3.5 and 3.6, equation 3.59.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..runtime.memory import device as devices
from ..runtime.modes import no_grad
from ..runtime.ops.declaration.registry import OPERATORS
from ..runtime.ops.families import PUBLIC
from ..runtime.tensor.tensor import Tensor
from .optimizer import Optimizer, check_settings, plain_number

__all__ = ["LBFGS"]

CURVATURE = 1e-10
"""Least product of a step and the change of the gradient over it, for the pair to be remembered."""


class LBFGS(Optimizer):
    """L-BFGS: Newton's direction, with the inverse Hessian estimated from the last steps.

    ``step(closure)`` makes several iterations; the closure computes the loss and its gradients anew for each of them.

    Parameters
    ----------
    params : iterable
        Parameters, in one group.
    lr : float
        Length of the step, or where the line search starts.
    max_iter : int
        Iterations in a call of ``step``.
    max_eval : int, optional
        Evaluations of the closure in a call of ``step``; by default ``max_iter * 5 // 4``.
    tolerance_grad : float
        Stop when no element of the gradient is larger.
    tolerance_change : float
        Stop when the loss, or all parameters, change by less.
    history_size : int
        How many steps are remembered.
    line_search_fn : str, optional
        ``"strong_wolfe"`` or none.

    See Also
    --------
    SGD

    Examples
    --------
    >>> import gradscope as gs
    >>> w = gs.tensor([3.0], requires_grad=True)
    >>> optimizer = gs.optim.LBFGS([w], line_search_fn="strong_wolfe")
    >>> def closure():
    ...     optimizer.zero_grad()
    ...     loss = ((w - 1) ** 2).sum()
    ...     loss.backward()
    ...     return loss
    >>> optimizer.step(closure).item()
    4.0
    >>> w
    tensor([1.], requires_grad=True)
    """

    def __init__(
        self,
        params: Any,
        lr: Any = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        check_settings(lr=lr)
        super().__init__(
            params,
            {
                "lr": lr,
                "max_iter": max_iter,
                "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
                "tolerance_grad": tolerance_grad,
                "tolerance_change": tolerance_change,
                "history_size": history_size,
                "line_search_fn": line_search_fn,
            },
        )
        if len(self.param_groups) != 1:
            raise ValueError(
                "LBFGS doesn't support per-parameter options (parameter groups)\n"
                "Give it all parameters in one list, or make an optimizer for each group."
            )

    def step(self, closure: Callable[[], Any]) -> Any:  # type: ignore[override]
        """Make up to ``max_iter`` iterations; return the loss from before the first.

        Parameters
        ----------
        closure : callable
            Clears the gradients, computes the loss, calls ``backward()`` and returns the loss.
        """
        with no_grad():
            return self._iterate(closure)

    def _iterate(self, closure: Callable[[], Any]) -> Any:
        (group,) = self.param_groups
        # The state is that of all parameters together; the first one holds it.
        state = self.state[group["params"][0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        first_loss = self._evaluate(closure)
        point = Point(0.0, float(first_loss), self._gradient(), 0.0)
        evaluations = 1
        state["func_evals"] += 1
        if largest(point.gradient) <= group["tolerance_grad"]:
            return first_loss
        for iteration in range(1, group["max_iter"] + 1):
            state["n_iter"] += 1
            direction = self._direction(state, point.gradient, group["history_size"])
            before = point.loss
            state["d"], state["prev_flat_grad"], state["prev_loss"] = direction, point.gradient, before
            state["t"] = first_length(state["n_iter"], point.gradient, plain_number(group["lr"]))
            point = Point(0.0, before, point.gradient, dot(point.gradient, direction))
            if point.slope > -group["tolerance_change"]:
                break
            point, spent = self._move(
                closure, point, direction, state["t"], group["max_eval"] - evaluations, iteration == group["max_iter"]
            )
            state["t"] = point.length
            evaluations += spent
            state["func_evals"] += spent
            if (
                iteration == group["max_iter"]
                or evaluations >= group["max_eval"]
                or largest(point.gradient) <= group["tolerance_grad"]
                or largest(direction) * abs(point.length) <= group["tolerance_change"]
                or abs(point.loss - before) < group["tolerance_change"]
            ):
                break
        return first_loss

    def _direction(self, state: dict[str, Any], gradient: Tensor, history_size: int) -> Tensor:
        """Remember the last step and return the direction to go in (algorithm 7.4)."""
        if state["n_iter"] == 1:
            state["old_dirs"], state["old_stps"], state["ro"], state["H_diag"] = [], [], [], 1
            return -gradient
        changes, steps, weights = state["old_dirs"], state["old_stps"], state["ro"]
        change, step = gradient - state["prev_flat_grad"], state["d"] * state["t"]
        curvature = change.dot(step)
        if curvature.item() > CURVATURE:
            if len(changes) == history_size:
                for memory in (changes, steps, weights):
                    memory.pop(0)
            changes.append(change)
            steps.append(step)
            weights.append(1.0 / curvature)
            state["H_diag"] = curvature / change.dot(change)
        shares = state.setdefault("al", [None] * history_size)
        found = -gradient
        for i in range(len(changes) - 1, -1, -1):
            shares[i] = steps[i].dot(found) * weights[i]
            found.addcmul_(changes[i], shares[i], value=-1)
        found *= state["H_diag"]
        for i in range(len(changes)):
            found.addcmul_(steps[i], shares[i] - changes[i].dot(found) * weights[i])
        return found

    def _move(
        self,
        closure: Callable[[], Any],
        start: Point,
        direction: Tensor,
        length: float,
        evaluations: int,
        last: bool,
    ) -> tuple[Point, int]:
        """Move the parameters along the direction; return where they stand and how often the closure was called."""
        (group,) = self.param_groups
        if group["line_search_fn"] is None:
            self._add(direction, length)
            if last:
                # No iteration follows that would need the loss and the gradient here.
                return Point(length, start.loss, start.gradient, start.slope), 0
            loss = float(self._evaluate(closure))
            return Point(length, loss, self._gradient(), 0.0), 1
        if group["line_search_fn"] != "strong_wolfe":
            raise RuntimeError(f"only 'strong_wolfe' is supported\nline_search_fn is {group['line_search_fn']!r}.")
        values = [parameter._array.copy() for parameter in group["params"]]

        def evaluate(trial: float) -> Point:
            self._add(direction, trial)
            loss = float(self._evaluate(closure))
            gradient = self._gradient()
            self._restore(values)
            return Point(trial, loss, gradient, dot(gradient, direction))

        search = StrongWolfe(evaluate, start, largest(direction), group["tolerance_change"], evaluations)
        found = search.run(length)
        self._add(direction, found.length)
        return found, search.evaluations

    def _gradient(self) -> Tensor:
        """Return the gradients of all parameters in one row; complex ones as pairs."""
        rows = []
        for parameter in self.param_groups[0]["params"]:
            grad = parameter.grad
            array = devices.array_module(parameter._array).zeros_like(parameter._array) if grad is None else grad._array
            rows.append(Tensor._wrap(pairs(array).reshape(-1)))
        return PUBLIC["cat"](rows)

    def _add(self, direction: Tensor, length: float) -> None:
        """Add a multiple of the direction to the parameters."""
        row, start = direction._array, 0
        for parameter in self.param_groups[0]["params"]:
            array = pairs(parameter._array)
            piece = row[start : start + array.size].reshape(array.shape)
            start += array.size
            for _, p, d, w in self._array_blocks(1, array, piece):
                devices.array_module(p).multiply(d, length, out=w)
                p += w
            parameter._bump("LBFGS.step")

    def _restore(self, values: list[Any]) -> None:
        for parameter, value in zip(self.param_groups[0]["params"], values, strict=True):
            parameter._array[...] = value
            parameter._bump("LBFGS.step")


@dataclass(slots=True)
class Point:
    """A place along the direction: how far, the loss, the gradient, and the loss's slope in the direction."""

    length: float
    loss: float
    gradient: Tensor
    slope: float


class StrongWolfe:
    """A search for a point where the loss has fallen enough and its slope is flat enough (algorithms 3.5 and 3.6).

    Parameters
    ----------
    evaluate : callable
        Returns the :class:`Point` at a length.
    start : Point
        Where the search starts, at length 0.
    size : float
        Largest element of the direction.
    tolerance : float
        The search ends when the parameters would move by less.
    limit : int
        How often to go on after the first evaluation.
    """

    DECREASE = 1e-4
    FLATNESS = 0.9

    def __init__(
        self, evaluate: Callable[[float], Point], start: Point, size: float, tolerance: float, limit: int
    ) -> None:
        self._evaluate = evaluate
        self._start = start
        self._size = size
        self._tolerance = tolerance
        self._limit = limit
        self.evaluations = 0

    def run(self, length: float) -> Point:
        """Return the point that was found; it is the lowest one where none satisfies both conditions."""
        bracket = self._bracket(length)
        if len(bracket) == 1:
            return bracket[0]
        return self._zoom(*bracket)

    def _look(self, length: float) -> Point:
        self.evaluations += 1
        return self._evaluate(length)

    def _too_high(self, point: Point) -> bool:
        start = self._start
        return point.loss > start.loss + self.DECREASE * point.length * start.slope

    def _flat(self, point: Point) -> bool:
        return abs(point.slope) <= -self.FLATNESS * self._start.slope

    @property
    def _steps(self) -> int:
        return self.evaluations - 1

    def _bracket(self, length: float) -> tuple[Point, ...]:
        """Go on until a point satisfies the conditions, or two enclose such a point."""
        previous, point = self._start, self._look(length)
        while self._steps < self._limit:
            if self._too_high(point) or (self._steps > 1 and point.loss >= previous.loss):
                return previous, point
            if self._flat(point):
                return (point,)
            if point.slope >= 0:
                return previous, point
            least = point.length + 0.01 * (point.length - previous.length)
            length = interpolate(previous, point, least, point.length * 10)
            previous, point = point, self._look(length)
        return self._start, point

    def _zoom(self, one: Point, other: Point) -> Point:
        """Narrow the bracket down; return its lower end."""
        ends = [one, other]
        low = 0 if one.loss <= other.loss else 1
        stuck = False
        while self._steps < self._limit:
            left, right = sorted(end.length for end in ends)
            if (right - left) * self._size < self._tolerance:
                break
            length = interpolate(ends[0], ends[1], left, right)
            margin = 0.1 * (right - left)
            at_the_edge = min(right - length, length - left) < margin
            if at_the_edge and (stuck or length >= right or length <= left):
                length = right - margin if abs(length - right) < abs(length - left) else left + margin
                at_the_edge = False
            stuck = at_the_edge
            point = self._look(length)
            if self._too_high(point) or point.loss >= ends[low].loss:
                ends[1 - low] = point
                low = 0 if ends[0].loss <= ends[1].loss else 1
                continue
            if self._flat(point):
                return point
            if point.slope * (ends[1 - low].length - ends[low].length) >= 0:
                ends[1 - low] = ends[low]
            ends[low] = point
        return ends[low]


def interpolate(one: Point, other: Point, low: float, high: float) -> float:
    """Return where the cubic through two points with their slopes is least, within bounds (equation 3.59)."""
    left, right = (one, other) if one.length <= other.length else (other, one)
    width = right.length - left.length
    if width == 0:
        return (low + high) / 2
    mean = left.slope + right.slope - 3 * (left.loss - right.loss) / (left.length - right.length)
    square = mean * mean - left.slope * right.slope
    if not square >= 0:
        return (low + high) / 2
    root = square**0.5
    bend = right.slope - left.slope + 2 * root
    if bend == 0:
        return (low + high) / 2
    return min(max(right.length - width * (right.slope + root - mean) / bend, low), high)


def first_length(iteration: int, gradient: Tensor, lr: float) -> float:
    """Return the length to try first: of the first step, it is not longer than a sum of sizes of 1 would be."""
    if iteration > 1:
        return lr
    total = gradient.abs().sum().item()
    return min(1.0, 1.0 / total) * lr if total else lr


def dot(a: Tensor, b: Tensor) -> float:
    """Return a dot product as a number; the algorithm has to see it."""
    return a.dot(b).item()


def largest(row: Tensor) -> float:
    """Return the largest size of an element."""
    return row.abs().max().item()


def pairs(array: Any) -> Any:
    """Return an array, complex numbers as pairs in the same memory."""
    if array.dtype.kind != "c":
        return array
    return OPERATORS["view_as_real"].run_forward(devices.array_module(array), array)
