"""The schedule that looks at a metric."""

from __future__ import annotations

import math
from typing import Any

from ...runtime.user_warnings import warn
from ..optimizer import Optimizer
from .base import EPOCH_WARNING, LRScheduler, check_optimizer, put

__all__ = ["ReduceLROnPlateau"]


class ReduceLROnPlateau(LRScheduler):
    """The learning rate falls when a metric has stopped improving.

    Parameters
    ----------
    mode : str
        Whether the metric should become small (``"min"``) or large (``"max"``).
    factor : float
        Factor of the learning rate, below 1.
    patience : int
        So many epochs without improvement are waited for.
    threshold : float
        What counts as improvement.
    threshold_mode : str
        Whether `threshold` is a share of the best value (``"rel"``) or a difference (``"abs"``).
    cooldown : int
        Epochs after a fall in which nothing is counted.
    min_lr : float or list of float
        The lowest learning rate; one for all groups, or one for each.
    eps : float
        A smaller change of the learning rate is not made.

    See Also
    --------
    StepLR

    Examples
    --------
    >>> import gradscope as gs
    >>> optimizer = gs.optim.SGD([gs.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = gs.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=1)
    >>> for loss in (3.0, 2.0, 2.0, 2.0):
    ...     scheduler.step(loss)
    >>> scheduler.get_last_lr()
    [0.1]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: float | list[float] = 0,
        eps: float = 1e-8,
    ) -> None:
        if factor >= 1.0:
            raise ValueError(f"Factor should be < 1.0.\nIt is {factor}: the learning rate would not fall.")
        check_optimizer(optimizer)
        count = len(optimizer.param_groups)
        listed = isinstance(min_lr, (list, tuple))
        if isinstance(min_lr, (list, tuple)) and len(min_lr) != count:
            raise ValueError(f"expected {count} min_lrs, got {len(min_lr)}\nThere is one for each group.")
        if mode not in ("min", "max"):
            raise ValueError(f"mode {mode} is unknown!\nIt is 'min' or 'max'.")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError(f"threshold mode {threshold_mode} is unknown!\nIt is 'rel' or 'abs'.")
        self.factor = factor
        self.optimizer = optimizer
        self.default_min_lr = None if listed else min_lr
        self.min_lrs: list[Any] = list(min_lr) if isinstance(min_lr, (list, tuple)) else [min_lr] * count
        self.patience = patience
        self.cooldown = cooldown
        self.eps = eps
        self.last_epoch = 0
        self._last_lr = self._present()
        self.mode = mode
        self.threshold = threshold
        self.threshold_mode = threshold_mode
        self.mode_worse = math.inf if mode == "min" else -math.inf
        self._reset()

    def _reset(self) -> None:
        """Forget what was seen."""
        self.best = self.mode_worse
        self.cooldown_counter = 0
        self.num_bad_epochs = 0

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]
        """Look at the metric of an epoch.

        Parameters
        ----------
        metrics : float
            The metric, as a number or a tensor of one element.
        epoch : int, optional
            Deprecated: the number of the epoch.
        """
        value = float(metrics)
        if epoch is not None:
            warn(EPOCH_WARNING)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self._is_better(value, self.best):
            self.best, self.num_bad_epochs = value, 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce_lr()
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        self._last_lr = self._present()

    def _reduce_lr(self) -> None:
        groups = self.optimizer.param_groups
        if len(groups) != len(self.min_lrs):
            if self.default_min_lr is None:
                raise RuntimeError(
                    f"The number of param groups in the `optimizer` ({len(groups)}) differs from when "
                    f"`ReduceLROnPlateau` was initialized ({len(self.min_lrs)}), usually due to a new param group being"
                    " added to the optimizer. Please modify the `min_lrs` field to match the length of the `optimizer` "
                    "param groups.\nAppend one value for each new group to scheduler.min_lrs."
                )
            self.min_lrs = [self.default_min_lr] * len(groups)
        for group, lowest in zip(groups, self.min_lrs, strict=True):
            old = float(group["lr"])
            new = max(old * self.factor, lowest)
            if old - new > self.eps:
                put(group, "lr", new)

    @property
    def in_cooldown(self) -> bool:
        """Whether bad epochs are not counted now."""
        return self.cooldown_counter > 0

    def _is_better(self, value: float, best: float) -> bool:
        sign = 1 if self.mode == "max" else -1
        if self.threshold_mode == "rel":
            bound = best * (1.0 + sign * self.threshold)
        else:
            bound = best + sign * self.threshold
        return value > bound if self.mode == "max" else value < bound

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what :meth:`state_dict` of another scheduler returned."""
        super().load_state_dict(state_dict)
        self.mode_worse = math.inf if self.mode == "min" else -math.inf
