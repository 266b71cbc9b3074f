"""Schedules that cycle the learning rate, and the momentum against it.

References
----------
L. Smith, "Cyclical learning rates for training neural networks", WACV 2017.
L. Smith, N. Topin, "Super-convergence: very fast training of neural networks using large learning rates",
arXiv:1708.07120.
"""

from __future__ import annotations

import math
import types
from collections.abc import Callable
from typing import Any

from ..optimizer import Optimizer
from .base import LRScheduler, check_optimizer, put, spread

__all__ = ["CyclicLR", "OneCycleLR"]


class _MomentumScheduler(LRScheduler):
    """Changes the momentum of the groups too: ``"momentum"``, or the first of ``"betas"``."""

    use_beta1: bool

    def _start_momentum(self, base: Any, largest: Any, last_epoch: int) -> tuple[list[Any], list[Any]]:
        """Check that there is a momentum; let it start at its largest."""
        defaults = self.optimizer.defaults
        if "momentum" not in defaults and "betas" not in defaults:
            raise ValueError(
                "optimizer must support momentum or beta1 with `cycle_momentum` option enabled\n"
                f"{type(self.optimizer).__name__} has none: set cycle_momentum=False."
            )
        self.use_beta1 = "betas" in defaults
        bases = spread("base_momentum", self.optimizer, base)
        tops = spread("max_momentum", self.optimizer, largest)
        if last_epoch == -1:
            for group, low, high in zip(self.optimizer.param_groups, bases, tops, strict=True):
                self._put_momentum(group, high)
                group["max_momentum"], group["base_momentum"] = high, low
        return bases, tops

    def _put_momentum(self, group: dict[str, Any], value: Any) -> None:
        if self.use_beta1:
            group["betas"] = (value, *group["betas"][1:])
        else:
            group["momentum"] = value


class CyclicLR(_MomentumScheduler):
    """The learning rate goes up and down between two bounds, in lines; the momentum goes down and up.

    Parameters
    ----------
    base_lr, max_lr : float or list of float
        The bounds; one for all groups, or one for each.
    step_size_up, step_size_down : int
        Steps on the way up and down; as many down as up by default.
    mode : str
        ``"triangular"``; ``"triangular2"``, each cycle half as high as the one before; ``"exp_range"``, lower by
        `gamma` each step.
    gamma : float
        Of ``"exp_range"``.
    scale_fn : callable, optional
        The height of a cycle, in the place of `mode`.
    scale_mode : str
        What `scale_fn` is called with: ``"cycle"`` (from 1), or the number of the step for ``"iterations"``.
    cycle_momentum : bool
        Whether the momentum is changed.
    base_momentum, max_momentum : float or list of float
        Bounds of the momentum.
    last_epoch : int
        See :class:`LRScheduler`.

    See Also
    --------
    OneCycleLR

    Examples
    --------
    >>> import gradscope as gs
    >>> optimizer = gs.optim.SGD([gs.nn.Parameter(gs.ones(1))], lr=1.0, momentum=0.9)
    >>> scheduler = gs.optim.lr_scheduler.CyclicLR(optimizer, base_lr=0.1, max_lr=1.0)
    >>> scheduler.get_last_lr()
    [0.1]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | list[float],
        max_lr: float | list[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.8,
        max_momentum: float | list[float] = 0.9,
        last_epoch: int = -1,
    ) -> None:
        check_optimizer(optimizer)
        self.optimizer = optimizer
        base_lrs = spread("base_lr", optimizer, base_lr)
        if last_epoch == -1:
            for lr, group in zip(base_lrs, optimizer.param_groups, strict=True):
                put(group, "lr", lr)
        self.max_lrs = spread("max_lr", optimizer, max_lr)
        up = float(step_size_up)
        self.total_size = up + (up if step_size_down is None else float(step_size_down))
        self.step_ratio = up / self.total_size
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError(
                f"mode is invalid and scale_fn is None\nmode={mode!r} is none of 'triangular', 'triangular2' and "
                "'exp_range'."
            )
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom: Any = scale_fn
        self.scale_mode = scale_mode if scale_fn is not None else "iterations" if mode == "exp_range" else "cycle"
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.base_momentums, self.max_momentums = self._start_momentum(base_momentum, max_momentum, last_epoch)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def scale_fn(self, x: float) -> float:
        """Return the height of a cycle (or of a step), as a share of the first one's."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        if self.mode == "triangular2":
            return 0.5 ** (x - 1)
        if self.mode == "exp_range":
            return self.gamma**x
        return 1.0

    def _rates(self) -> list[Any]:
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        height = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        position = cycle if self.scale_mode == "cycle" else self.last_epoch
        # A function with a state of its own is asked as often as PyTorch asks it: once for each group.
        rates = [
            low + (high - low) * height * self.scale_fn(position)
            for low, high in zip(self.base_lrs, self.max_lrs, strict=True)
        ]
        if self.cycle_momentum:
            bounds = zip(self.optimizer.param_groups, self.base_momentums, self.max_momentums, strict=True)
            for group, low, high in bounds:
                self._put_momentum(group, high - (high - low) * height * self.scale_fn(position))
        return rates

    def state_dict(self) -> dict[str, Any]:
        """Return all that the scheduler knows, but for its optimizer and a function that scales."""
        function = self._scale_fn_custom
        kept = None if function is None or isinstance(function, types.FunctionType) else vars(function).copy()
        return super().state_dict() | {"_scale_fn_custom": kept}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what :meth:`state_dict` of another scheduler returned; the function that scales stays."""
        function = self._scale_fn_custom
        super().load_state_dict(state_dict)
        self._scale_fn_custom = function
        if state_dict["_scale_fn_custom"] is not None:
            vars(function).update(state_dict["_scale_fn_custom"])


class OneCycleLR(_MomentumScheduler):
    """One cycle: the learning rate goes up, down to where it was, and far below; the momentum goes down and up.

    Parameters
    ----------
    max_lr : float or list of float
        The highest learning rate; one for all groups, or one for each.
    total_steps : int, optional
        Steps of the cycle; by default `epochs` times `steps_per_epoch`.
    epochs, steps_per_epoch : int, optional
        In the place of `total_steps`.
    pct_start : float
        The share of the steps on the way up.
    anneal_strategy : str
        ``"cos"`` or ``"linear"``.
    cycle_momentum : bool
        Whether the momentum is changed.
    base_momentum, max_momentum : float or list of float
        Bounds of the momentum.
    div_factor : float
        The learning rate starts at ``max_lr / div_factor``.
    final_div_factor : float
        It ends at that divided by `final_div_factor`.
    three_phase : bool
        Come down to where it started in as many steps as it went up, and only then go further.
    last_epoch : int
        See :class:`LRScheduler`.

    See Also
    --------
    CyclicLR

    Examples
    --------
    >>> import gradscope as gs
    >>> optimizer = gs.optim.SGD([gs.nn.Parameter(gs.ones(1))], lr=1.0, momentum=0.9)
    >>> scheduler = gs.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1.0, total_steps=10)
    >>> round(scheduler.get_last_lr()[0], 4)
    0.04
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | list[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.85,
        max_momentum: float | list[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        check_optimizer(optimizer)
        self.optimizer = optimizer
        self.total_steps = _total_steps(total_steps, epochs, steps_per_epoch)
        if pct_start < 0 or pct_start > 1 or not isinstance(pct_start, float):
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}\nIt is a share of steps.")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}\nIt is the shape of "
                "the ways up and down."
            )
        self._schedule_phases = _phases(self.total_steps, pct_start, three_phase)
        self._anneal_func_type = anneal_strategy
        highest = spread("max_lr", optimizer, max_lr)
        if last_epoch == -1:
            for top, group in zip(highest, optimizer.param_groups, strict=True):
                group["initial_lr"] = top / div_factor
                group["max_lr"] = top
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._start_momentum(base_momentum, max_momentum, last_epoch)
        super().__init__(optimizer, last_epoch)

    def _rates(self) -> list[Any]:
        if self.last_epoch > self.total_steps:
            raise ValueError(
                f"Tried to step {self.last_epoch} times. The specified number of total steps is {self.total_steps}\n"
                "Step the scheduler once a batch, and make the cycle as long as the training."
            )
        start, phase = 0.0, self._schedule_phases[0]
        for following in self._schedule_phases[1:]:
            if self.last_epoch <= phase["end_step"]:
                break
            start, phase = phase["end_step"], following
        share = (self.last_epoch - start) / (phase["end_step"] - start)
        groups = self.optimizer.param_groups
        if self.cycle_momentum:
            for group in groups:
                self._put_momentum(
                    group, self._between(group[phase["start_momentum"]], group[phase["end_momentum"]], share)
                )
        return [self._between(group[phase["start_lr"]], group[phase["end_lr"]], share) for group in groups]

    def _between(self, start: Any, end: Any, share: float) -> Any:
        if self._anneal_func_type == "linear":
            return (end - start) * share + start
        return end + (start - end) / 2.0 * (math.cos(math.pi * share) + 1)


def _total_steps(total: Any, epochs: Any, steps_per_epoch: Any) -> int:
    if total is None and (epochs is None or steps_per_epoch is None):
        raise ValueError(
            "You must define either total_steps OR (epochs AND steps_per_epoch)\nThe cycle has to know its length."
        )
    counts = {"epochs": epochs, "steps_per_epoch": steps_per_epoch} if total is None else {"total_steps": total}
    for name, count in counts.items():
        if not isinstance(count, int) or count <= 0:
            raise ValueError(
                f"Expected positive integer {name}, but got {count}\nThe cycle is a whole number of steps."
            )
    return math.prod(counts.values())


def _phases(steps: int, share: float, three: bool) -> list[dict[str, Any]]:
    """Return the phases of a cycle: where each ends, and the settings of the groups that it goes between."""

    def phase(end: float, lrs: tuple[str, str], momenta: tuple[str, str]) -> dict[str, Any]:
        return {
            "end_step": end,
            "start_lr": f"{lrs[0]}_lr",
            "end_lr": f"{lrs[1]}_lr",
            "start_momentum": f"{momenta[0]}_momentum",
            "end_momentum": f"{momenta[1]}_momentum",
        }

    up = phase(float(share * steps) - 1, ("initial", "max"), ("max", "base"))
    if not three:
        return [up, phase(steps - 1, ("max", "min"), ("base", "max"))]
    down = phase(float(2 * share * steps) - 2, ("max", "initial"), ("base", "max"))
    return [up, down, phase(steps - 1, ("initial", "min"), ("max", "max"))]
