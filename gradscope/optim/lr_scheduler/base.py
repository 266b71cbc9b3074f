"""LRScheduler: what schedulers share, from the first step to the state that is saved."""

from __future__ import annotations

import functools
import weakref
from typing import Any

from ...runtime.tensor.tensor import Tensor
from ...runtime.user_warnings import warn
from ..optimizer import Optimizer, plain_number

__all__ = ["LRScheduler", "check_optimizer", "copied", "put", "spread", "values_of"]

EPOCH_WARNING = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where possible. Please use "
    "`scheduler.step()` to step the scheduler. With an epoch, the closed form of the schedule is used where there is "
    "one, in the place of the form that can be chained."
)


class LRScheduler:
    """Base of the schedulers.

    A subclass defines :meth:`get_lr`, the learning rates of the groups at :attr:`last_epoch`; it may start from those
    that the groups have, so that several schedulers can act on one optimizer.

    Parameters
    ----------
    last_epoch : int
        The number of the last step, to go on from there: the groups then know their ``"initial_lr"``.

    Attributes
    ----------
    base_lrs : list
        Learning rates of the groups before the first step.
    last_epoch : int
        How often the scheduler has stepped; 0 at the start.

    Raises
    ------
    TypeError
        If `optimizer` is none.
    KeyError
        If a group has no ``"initial_lr"`` to go on from.

    See Also
    --------
    LambdaLR

    Examples
    --------
    >>> import gradscope as gs
    >>> optimizer = gs.optim.SGD([gs.nn.Parameter(gs.ones(1))], lr=1.0)
    >>> isinstance(gs.optim.lr_scheduler.StepLR(optimizer, 1), gs.optim.lr_scheduler.LRScheduler)
    True
    """

    _get_lr_called_within_step = False
    _is_initial = False
    _last_lr: list[Any]

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        check_optimizer(optimizer)
        self.optimizer = optimizer
        for number, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", copied(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{number}] when resuming scheduler with "
                    "last_epoch >= 0.\nLoad the optimizer's state first, or leave out last_epoch to start anew."
                )
        self.base_lrs: list[Any] = values_of(optimizer, "initial_lr")
        self.last_epoch = last_epoch
        notice_steps(optimizer)
        self._initial_step()

    def _initial_step(self) -> None:
        """Set the learning rates of the first epoch."""
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def state_dict(self) -> dict[str, Any]:
        """Return all that the scheduler knows, but for its optimizer."""
        return {key: value for key, value in vars(self).items() if key != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what :meth:`state_dict` of another scheduler returned."""
        vars(self).update(state_dict)

    def get_last_lr(self) -> list[Any]:
        """Return the learning rates that the last step has set."""
        return self._last_lr

    def get_lr(self) -> list[Any]:
        """Return the learning rates at :attr:`last_epoch`; for those in use, see :meth:`get_last_lr`."""
        if not self._get_lr_called_within_step:
            warn("To get the last learning rate computed by the scheduler, please use `get_last_lr()`.")
        return self._rates()

    def _rates(self) -> list[Any]:
        """Return the learning rates at :attr:`last_epoch`, from those that the groups have or from the base."""
        raise NotImplementedError(f"{type(self).__name__} does not define get_lr()")

    def step(self, epoch: int | None = None) -> None:
        """Set the learning rates of the next epoch; call it after the optimizer's step.

        Parameters
        ----------
        epoch : int, optional
            Deprecated: the epoch to go to.
        """
        if self._step_count == 1:
            self._warn_of_order()
        self._step_count += 1
        if epoch is not None:
            warn(EPOCH_WARNING)
        self._update_lr(epoch)

    def _warn_of_order(self) -> None:
        if not hasattr(self.optimizer.step, "_noticed"):
            warn(
                "Seems like `optimizer.step()` has been overridden after learning rate scheduler initialization. Please"
                ", make sure to call `optimizer.step()` before `lr_scheduler.step()`.",
            )
        elif not getattr(self.optimizer, "_opt_called", False):
            warn(
                "Detected call of `lr_scheduler.step()` before `optimizer.step()`. You should call them in the opposite"
                " order: `optimizer.step()` before `lr_scheduler.step()`. Failure to do this will result in skipping "
                "the first value of the learning rate schedule.",
            )

    def _update_lr(self, epoch: int | None = None) -> None:
        """Go to the next epoch, or to `epoch`, and set the learning rates there."""
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        closed = None if epoch is None else getattr(self, "_get_closed_form_lr", None)
        self._set(self._asked() if closed is None else closed())

    def _asked(self) -> list[Any]:
        """Return what :meth:`get_lr` says; only a step may ask it."""
        self._get_lr_called_within_step = True
        try:
            return self.get_lr()
        finally:
            self._get_lr_called_within_step = False

    def _set(self, lrs: list[Any]) -> None:
        for group, lr in zip(self.optimizer.param_groups, lrs, strict=True):
            put(group, "lr", lr)
        self._last_lr = self._present()

    def _present(self) -> list[Any]:
        """Return the learning rates that the groups have."""
        return values_of(self.optimizer, "lr")

    def _times(self, factor: float) -> list[Any]:
        """Return the learning rates that the groups have, times a factor."""
        return [group["lr"] * factor for group in self.optimizer.param_groups]

    def _base_times(self, factor: float) -> list[Any]:
        """Return the learning rates from before the first step, times a factor."""
        return [lr * factor for lr in self.base_lrs]


class _LRScheduler(LRScheduler):
    """The name that :class:`LRScheduler` had before PyTorch 2.0.

    See Also
    --------
    LRScheduler : the class.

    Examples
    --------
    >>> import gradscope as gs
    >>> issubclass(gs.optim.lr_scheduler._LRScheduler, gs.optim.lr_scheduler.LRScheduler)
    True
    """


def notice_steps(optimizer: Any) -> None:
    """Make an optimizer remember that it has stepped, for the warning about the order of steps."""
    bound = optimizer.step
    if hasattr(bound, "_noticed"):
        return
    function, reference = bound.__func__, weakref.ref(optimizer)

    @functools.wraps(function)
    def step(*args: Any, **kwargs: Any) -> Any:
        found: Any = reference()
        found._opt_called = True
        return function(found, *args, **kwargs)

    step._noticed = True  # type: ignore[attr-defined]
    # The optimizer's own attribute must not keep it alive: hence the weak reference.
    optimizer.step = step


def check_optimizer(optimizer: Any) -> None:
    """Raise TypeError unless it is an optimizer."""
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer\nA scheduler takes the optimizer first.")


def copied(value: Any) -> Any:
    """Return a copy of a setting that is a tensor, and any other as it is."""
    return value.clone() if isinstance(value, Tensor) else value


def values_of(optimizer: Optimizer, key: str) -> list[Any]:
    """Return a setting of all groups."""
    return [copied(group[key]) for group in optimizer.param_groups]


def put(group: dict[str, Any], key: str, value: Any) -> None:
    """Change a setting of a group: a tensor in place."""
    if isinstance(group[key], Tensor):
        group[key].fill_(plain_number(value))
    else:
        group[key] = value


def spread(name: str, optimizer: Optimizer, value: Any) -> list[Any]:
    """Return a value for each group, of one for all or a list.

    Raises
    ------
    ValueError
        If the list has another length than there are groups.
    """
    count = len(optimizer.param_groups)
    if not isinstance(value, (list, tuple)):
        return [copied(value) for _ in range(count)]
    if len(value) != count:
        raise ValueError(
            f"{name} must have the same length as optimizer.param_groups. {name} has {len(value)} values, "
            f"param_groups has {count}.\nGive one value for each group, or one number for all."
        )
    return [copied(item) for item in value]
