"""Schedules that multiply the learning rate by a factor of the epoch."""

from __future__ import annotations

import types
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from ..optimizer import Optimizer
from .base import LRScheduler

__all__ = [
    "ConstantLR",
    "ExponentialLR",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "PolynomialLR",
    "StepLR",
]

Factor = Callable[[int], float]


class LambdaLR(LRScheduler):
    """The learning rate is that of the start times a function of the epoch.

    Parameters
    ----------
    lr_lambda : callable or list of callable
        Of the epoch; one for all groups, or one for each.
    last_epoch : int
        See :class:`LRScheduler`.

    Notes
    -----
    The state holds the attributes of callable objects, and nothing of functions.

    See Also
    --------
    MultiplicativeLR

    Examples
    --------
    >>> import gradscope as gs
    >>> optimizer = gs.optim.SGD([gs.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = gs.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 0.5**epoch)
    >>> optimizer.step()
    >>> scheduler.step()
    >>> scheduler.get_last_lr()
    [0.5]
    """

    def __init__(self, optimizer: Optimizer, lr_lambda: Factor | list[Factor], last_epoch: int = -1) -> None:
        self.optimizer = optimizer
        count = len(optimizer.param_groups)
        if not isinstance(lr_lambda, (list, tuple)):
            lr_lambda = [lr_lambda] * count
        elif len(lr_lambda) != count:
            raise ValueError(
                f"Expected {count} lr_lambdas, but got {len(lr_lambda)}\nThere is one for each group, or one for all."
            )
        self.lr_lambdas: list[Any] = list(lr_lambda)
        super().__init__(optimizer, last_epoch)

    def state_dict(self) -> dict[str, Any]:
        """Return all that the scheduler knows, but for its optimizer and its functions."""
        saved = [None if isinstance(f, types.FunctionType) else vars(f).copy() for f in self.lr_lambdas]
        return super().state_dict() | {"lr_lambdas": saved}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what :meth:`state_dict` of another scheduler returned; the functions stay."""
        functions = self.lr_lambdas
        super().load_state_dict(state_dict)
        self.lr_lambdas = functions
        for function, saved in zip(functions, state_dict["lr_lambdas"], strict=True):
            if saved is not None:
                vars(function).update(saved)

    def _rates(self) -> list[Any]:
        return [lr * factor(self.last_epoch) for factor, lr in zip(self.lr_lambdas, self.base_lrs, strict=True)]


class MultiplicativeLR(LambdaLR):
    """Each step multiplies the learning rate by a function of the epoch.

    Parameters
    ----------
    optimizer, lr_lambda, last_epoch
        As for :class:`LambdaLR`.

    See Also
    --------
    LambdaLR

    Examples
    --------
    >>> import gradscope as gs
    >>> optimizer = gs.optim.SGD([gs.nn.Parameter(gs.ones(1))], lr=1.0)
    >>> scheduler = gs.optim.lr_scheduler.MultiplicativeLR(optimizer, lambda epoch: 0.5)
    >>> optimizer.step()
    >>> scheduler.step()
    >>> scheduler.get_last_lr()
    [0.5]
    """

    def __init__(self, optimizer: Optimizer, lr_lambda: Factor | list[Factor], last_epoch: int = -1) -> None:
        for function in lr_lambda if isinstance(lr_lambda, (list, tuple)) else [lr_lambda]:
            if not callable(function):
                raise TypeError(
                    f"lr_lambda should be a function, but got {type(function).__name__}\nIt takes the epoch and returns"
                    " a factor."
                )
        super().__init__(optimizer, lr_lambda, last_epoch)

    def _rates(self) -> list[Any]:
        if self._is_initial:
            return self._present()
        groups = self.optimizer.param_groups
        return [group["lr"] * factor(self.last_epoch) for factor, group in zip(self.lr_lambdas, groups, strict=True)]


class StepLR(LRScheduler):
    """The learning rate falls by a factor every so many epochs.

    Parameters
    ----------
    step_size : int
        Epochs from one fall to the next.
    gamma : float
        The factor.
    last_epoch : int
        See :class:`LRScheduler`.

    See Also
    --------
    MultiStepLR, ExponentialLR

    Examples
    --------
    >>> import gradscope as gs
    >>> optimizer = gs.optim.SGD([gs.nn.Parameter(gs.ones(1))], lr=1.0)
    >>> scheduler = gs.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)
    >>> optimizer.step()
    >>> scheduler.step()
    >>> scheduler.get_last_lr()
    [0.5]
    """

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _rates(self) -> list[Any]:
        if self.last_epoch == 0 or self.last_epoch % self.step_size:
            return self._present()
        return self._times(self.gamma)

    def _get_closed_form_lr(self) -> list[Any]:
        return self._base_times(self.gamma ** (self.last_epoch // self.step_size))


class MultiStepLR(LRScheduler):
    """The learning rate falls by a factor at each of some epochs.

    Parameters
    ----------
    milestones : iterable of int
        The epochs; one that comes twice counts twice.
    gamma : float
        The factor.
    last_epoch : int
        See :class:`LRScheduler`.

    See Also
    --------
    StepLR

    Examples
    --------
    >>> import gradscope as gs
    >>> optimizer = gs.optim.SGD([gs.nn.Parameter(gs.ones(1))], lr=1.0)
    >>> scheduler = gs.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[1], gamma=0.5)
    >>> optimizer.step()
    >>> scheduler.step()
    >>> scheduler.get_last_lr()
    [0.5]
    """

    def __init__(
        self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.milestones = Counter(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _rates(self) -> list[Any]:
        if self.last_epoch not in self.milestones:
            return self._present()
        return self._times(self.gamma ** self.milestones[self.last_epoch])

    def _get_closed_form_lr(self) -> list[Any]:
        passed = bisect_right(sorted(self.milestones.elements()), self.last_epoch)
        return self._base_times(self.gamma**passed)


class ConstantLR(LRScheduler):
    """The learning rate is lower by a factor until some epoch.

    Parameters
    ----------
    factor : float
        Between 0 and 1.
    total_iters : int
        The epoch from which the full learning rate holds.
    last_epoch : int
        See :class:`LRScheduler`.

    See Also
    --------
    LinearLR

    Examples
    --------
    >>> import gradscope as gs
    >>> optimizer = gs.optim.SGD([gs.nn.Parameter(gs.ones(1))], lr=1.0)
    >>> scheduler = gs.optim.lr_scheduler.ConstantLR(optimizer, factor=0.5, total_iters=2)
    >>> scheduler.get_last_lr()
    [0.5]
    """

    def __init__(
        self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5, last_epoch: int = -1
    ) -> None:
        if factor > 1.0 or factor < 0:
            raise ValueError(f"Constant multiplicative factor expected to be between 0 and 1.\nIt is {factor}.")
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def _rates(self) -> list[Any]:
        if self.last_epoch == 0:
            return self._times(self.factor)
        if self.last_epoch != self.total_iters:
            return self._present()
        return self._times(1.0 / self.factor)

    def _get_closed_form_lr(self) -> list[Any]:
        return self._base_times(1 if self.last_epoch >= self.total_iters else self.factor)


class LinearLR(LRScheduler):
    """The factor of the learning rate goes in a line from one value to another.

    Parameters
    ----------
    start_factor, end_factor : float
        The factors at the start and from epoch `total_iters` on.
    total_iters : int
        Epochs from one to the other.
    last_epoch : int
        See :class:`LRScheduler`.

    See Also
    --------
    ConstantLR, PolynomialLR

    Examples
    --------
    >>> import gradscope as gs
    >>> optimizer = gs.optim.SGD([gs.nn.Parameter(gs.ones(1))], lr=1.0)
    >>> scheduler = gs.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.5, total_iters=2)
    >>> optimizer.step()
    >>> scheduler.step()
    >>> scheduler.get_last_lr()
    [0.75]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if start_factor > 1.0 or start_factor <= 0:
            raise ValueError(
                "Starting multiplicative factor expected to be greater than 0 and less or equal to 1.\n"
                f"It is {start_factor}."
            )
        if end_factor > 1.0 or end_factor < 0:
            raise ValueError(f"Ending multiplicative factor expected to be between 0 and 1.\nIt is {end_factor}.")
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def _rates(self) -> list[Any]:
        if self.last_epoch == 0:
            return self._times(self.start_factor)
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._present()
        rise = self.end_factor - self.start_factor
        before = self.total_iters * self.start_factor + (self.last_epoch - 1) * rise
        return self._times(1.0 + rise / before)

    def _get_closed_form_lr(self) -> list[Any]:
        rise = self.end_factor - self.start_factor
        return self._base_times(self.start_factor + rise * min(self.total_iters, self.last_epoch) / self.total_iters)


class ExponentialLR(LRScheduler):
    """The learning rate falls by a factor every epoch.

    Parameters
    ----------
    gamma : float
        The factor.
    last_epoch : int
        See :class:`LRScheduler`.

    See Also
    --------
    StepLR

    Examples
    --------
    >>> import gradscope as gs
    >>> optimizer = gs.optim.SGD([gs.nn.Parameter(gs.ones(1))], lr=1.0)
    >>> scheduler = gs.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
    >>> optimizer.step()
    >>> scheduler.step()
    >>> scheduler.get_last_lr()
    [0.5]
    """

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _rates(self) -> list[Any]:
        return self._present() if self._is_initial else self._times(self.gamma)

    def _get_closed_form_lr(self) -> list[Any]:
        return self._base_times(self.gamma**self.last_epoch)


class PolynomialLR(LRScheduler):
    """The learning rate falls to 0 as a power of the epochs that are left.

    Parameters
    ----------
    total_iters : int
        The epoch at which it is 0.
    power : float
        The power.
    last_epoch : int
        See :class:`LRScheduler`.

    See Also
    --------
    LinearLR

    Examples
    --------
    >>> import gradscope as gs
    >>> optimizer = gs.optim.SGD([gs.nn.Parameter(gs.ones(1))], lr=1.0)
    >>> scheduler = gs.optim.lr_scheduler.PolynomialLR(optimizer, total_iters=4)
    >>> optimizer.step()
    >>> scheduler.step()
    >>> scheduler.get_last_lr()
    [0.75]
    """

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1) -> None:
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer, last_epoch)

    def _rates(self) -> list[Any]:
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._present()
        left, before = (1.0 - epoch / self.total_iters for epoch in (self.last_epoch, self.last_epoch - 1))
        return self._times((left / before) ** self.power)

    def _get_closed_form_lr(self) -> list[Any]:
        return self._base_times((1.0 - min(self.total_iters, self.last_epoch) / self.total_iters) ** self.power)
