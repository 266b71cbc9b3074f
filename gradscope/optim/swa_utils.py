"""Averages of weights: stochastic weight averaging, and exponential moving averages.

References
----------
P. Izmailov et al., "Averaging weights leads to wider optima and better generalization", UAI 2018.
B. Polyak, A. Juditsky, "Acceleration of stochastic approximation by averaging", SIAM J. Control Optim. 30, 1992.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable
from itertools import chain
from typing import Any

from ..nn.modules.batchnorm import _BatchNorm
from ..nn.modules.module import Module
from ..runtime.memory.dtype import int64
from ..runtime.modes import no_grad
from ..runtime.tensor.creation import tensor
from ..runtime.tensor.tensor import Tensor
from .lr_scheduler.base import LRScheduler, spread
from .optimizer import Optimizer, plain_number

__all__ = [
    "SWALR",
    "AveragedModel",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]

Average = Callable[[Tensor, Tensor, Any], Tensor]
MultiAverage = Callable[[list[Tensor], list[Tensor], Any], None]


def get_ema_avg_fn(decay: float = 0.999) -> Average:
    """Return the function of an exponential moving average.

    Parameters
    ----------
    decay : float
        What remains of the average at each update, from 0 to 1.

    Returns
    -------
    callable
        ``(averaged, current, number of updates) -> averaged``.

    See Also
    --------
    get_ema_multi_avg_fn

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.optim.swa_utils.get_ema_avg_fn(0.9)(gs.tensor([1.0]), gs.tensor([2.0]), 1)
    tensor([1.1000])
    """
    _check_decay(decay)

    @no_grad()
    def ema_update(ema_param: Tensor, current_param: Tensor, num_averaged: Any) -> Tensor:
        return decay * ema_param + (1 - decay) * current_param

    return ema_update


def get_swa_avg_fn() -> Average:
    """Return the function of an average in which all updates count alike.

    Returns
    -------
    callable
        ``(averaged, current, number of updates) -> averaged``.

    See Also
    --------
    get_swa_multi_avg_fn

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.optim.swa_utils.get_swa_avg_fn()(gs.tensor([1.0]), gs.tensor([2.0]), gs.tensor(1))
    tensor([1.5000])
    """

    @no_grad()
    def swa_update(averaged_param: Tensor, current_param: Tensor, num_averaged: Any) -> Tensor:
        return averaged_param + (current_param - averaged_param) / (num_averaged + 1)

    return swa_update


def get_ema_multi_avg_fn(decay: float = 0.999) -> MultiAverage:
    """Return the function of exponential moving averages of a list of tensors, in place.

    Parameters
    ----------
    decay : float
        What remains of the average at each update, from 0 to 1.

    Returns
    -------
    callable
        ``(averaged, current, number of updates) -> None``.

    See Also
    --------
    get_ema_avg_fn : of one tensor.

    Examples
    --------
    >>> import gradscope as gs
    >>> averaged = [gs.tensor([0.0])]
    >>> gs.optim.swa_utils.get_ema_multi_avg_fn(0.75)(averaged, [gs.tensor([4.0])], 1)
    >>> averaged
    [tensor([1.])]
    """
    _check_decay(decay)

    @no_grad()
    def ema_update(ema_param_list: list[Tensor], current_param_list: list[Tensor], num_averaged: Any) -> None:
        for averaged, current in zip(ema_param_list, current_param_list, strict=True):
            if _can_move(averaged):
                averaged.lerp_(current, 1 - decay)
            else:
                averaged.copy_(averaged * decay + current * (1 - decay))

    return ema_update


def get_swa_multi_avg_fn() -> MultiAverage:
    """Return the function of averages of a list of tensors in which all updates count alike, in place.

    Returns
    -------
    callable
        ``(averaged, current, number of updates) -> None``.

    See Also
    --------
    get_swa_avg_fn : of one tensor.

    Examples
    --------
    >>> import gradscope as gs
    >>> averaged = [gs.tensor([0.0])]
    >>> gs.optim.swa_utils.get_swa_multi_avg_fn()(averaged, [gs.tensor([4.0])], 3)
    >>> averaged
    [tensor([1.])]
    """

    @no_grad()
    def swa_update(averaged_param_list: list[Tensor], current_param_list: list[Tensor], num_averaged: Any) -> None:
        share = 1 / (plain_number(num_averaged) + 1)
        for averaged, current in zip(averaged_param_list, current_param_list, strict=True):
            if _can_move(averaged):
                averaged.lerp_(current, share)
            else:
                averaged.copy_(averaged + (current - averaged) * share)

    return swa_update


def _can_move(averaged: Tensor) -> bool:
    return averaged.is_floating_point() or averaged.is_complex()


def _check_decay(decay: float) -> None:
    if decay < 0.0 or decay > 1.0:
        raise ValueError(
            f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.\n"
            "It is the share of the average that remains at each update."
        )


class AveragedModel(Module):
    """A copy of a model that holds averages of its parameters.

    Call :meth:`update_parameters` after each step (or epoch) of the model; the first call copies.

    Parameters
    ----------
    model : Module
        The model.
    device : device, optional
        Where the averages are kept.
    avg_fn : callable, optional
        The average of one parameter, see :func:`get_swa_avg_fn` (the default) and :func:`get_ema_avg_fn`.
    multi_avg_fn : callable, optional
        The averages of all parameters of a device and dtype at once, see :func:`get_ema_multi_avg_fn`.
    use_buffers : bool
        Average the buffers too; by default they are those of the model.

    See Also
    --------
    SWALR, update_bn

    Examples
    --------
    >>> import gradscope as gs
    >>> from gradscope.optim.swa_utils import AveragedModel
    >>> model = gs.nn.Linear(1, 1, bias=False)
    >>> average = AveragedModel(model)
    >>> for value in (1.0, 2.0, 6.0):
    ...     _ = gs.nn.init.constant_(model.weight, value)
    ...     average.update_parameters(model)
    >>> average.module.weight.item()
    3.0
    """

    n_averaged: Tensor

    def __init__(
        self,
        model: Module,
        device: Any = None,
        avg_fn: Average | None = None,
        multi_avg_fn: MultiAverage | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided\nLeave out the other.")
        self.module = copy.deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", tensor(0, dtype=int64, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run the averaged model."""
        return self.module(*args, **kwargs)

    @no_grad()
    def update_parameters(self, model: Module) -> None:
        """Take the parameters of a model into the averages."""
        mine, theirs = (self._tensors(module) for module in (self.module, model))
        pairs = [
            (averaged.detach(), current.detach().to(averaged.device))
            for averaged, current in zip(mine, theirs, strict=False)
        ]
        if self.n_averaged == 0:
            for averaged, current in pairs:
                averaged.copy_(current)
        else:
            self._average(pairs)
        if not self.use_buffers:
            for kept, buffer in zip(self.module.buffers(), model.buffers(), strict=True):
                kept.detach().copy_(buffer.detach().to(kept.device))
        self.n_averaged += 1

    def _tensors(self, module: Module) -> Iterable[Tensor]:
        return chain(module.parameters(), module.buffers()) if self.use_buffers else module.parameters()

    def _average(self, pairs: list[tuple[Tensor, Tensor]]) -> None:
        if self.avg_fn is not None:
            for averaged, current in pairs:
                averaged.copy_(self.avg_fn(averaged, current, self.n_averaged.to(averaged.device)))
            return
        alike: dict[Any, list[tuple[Tensor, Tensor]]] = {}
        for pair in pairs:
            alike.setdefault((pair[0].device, pair[0].dtype), []).append(pair)
        average = self.multi_avg_fn or get_swa_multi_avg_fn()
        for (device, _), members in alike.items():
            averaged_list, current_list = ([pair[i] for pair in members] for i in (0, 1))
            average(averaged_list, current_list, self.n_averaged.to(device))


@no_grad()
def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Compute the running statistics of a model's batch normalizations anew, over all that a loader gives.

    Parameters
    ----------
    loader : iterable
        Of inputs, or of tuples or lists that begin with one.
    model : Module
        The model.
    device : device, optional
        Where the inputs are moved to.

    See Also
    --------
    AveragedModel

    Examples
    --------
    >>> import gradscope as gs
    >>> model = gs.nn.Sequential(gs.nn.BatchNorm1d(1))
    >>> gs.optim.swa_utils.update_bn([gs.tensor([[1.0], [3.0]])], model)
    >>> model[0].running_mean
    tensor([2.])
    """
    momenta = {}
    for module in model.modules():
        if isinstance(module, _BatchNorm):
            module.reset_running_stats()
            momenta[module] = module.momentum
    if not momenta:
        return
    was_training = model.training
    model.train()
    for module in momenta:
        # Without a momentum all batches count alike.
        module.momentum = None
    for batch in loader:
        inputs = batch[0] if isinstance(batch, (list, tuple)) else batch
        model(inputs if device is None else inputs.to(device))
    for module, momentum in momenta.items():
        module.momentum = momentum
    model.train(was_training)


class SWALR(LRScheduler):
    """The learning rate goes to a constant, at which weights are averaged.

    Parameters
    ----------
    swa_lr : float or list of float
        The constant; one for all groups, or one for each.
    anneal_epochs : int
        Epochs of the way there.
    anneal_strategy : str
        ``"cos"`` or ``"linear"``.
    last_epoch : int
        See :class:`~gradscope.optim.lr_scheduler.LRScheduler`.

    See Also
    --------
    AveragedModel

    Examples
    --------
    >>> import gradscope as gs
    >>> optimizer = gs.optim.SGD([gs.nn.Parameter(gs.ones(1))], lr=1.0)
    >>> scheduler = gs.optim.swa_utils.SWALR(optimizer, swa_lr=0.1, anneal_epochs=1)
    >>> optimizer.step()
    >>> scheduler.step()
    >>> scheduler.get_last_lr()
    [0.1]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: float | list[float],
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        for lr, group in zip(spread("swa_lr", optimizer, swa_lr), optimizer.param_groups, strict=True):
            group["swa_lr"] = lr
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}\nIt is the shape of "
                "the way to the constant."
            )
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(
                f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}\nWith 0, the constant holds at "
                "once."
            )
        self._anneal_strategy = anneal_strategy
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def _share(self, step: int) -> float:
        """Return how much of the way is behind at a step."""
        t = max(0.0, min(1.0, step / max(1, self.anneal_epochs)))
        return t if self._anneal_strategy == "linear" else (1 - math.cos(math.pi * t)) / 2

    def _rates(self) -> list[Any]:
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = self._share(step - 1), self._share(step)
        found = []
        for group in self.optimizer.param_groups:
            lr, goal = group["lr"], group["swa_lr"]
            # Its former value follows from the present one, because other schedulers may have moved it.
            start = goal if before == 1 else (lr - before * goal) / (1 - before)
            found.append(goal * now + start * (1 - now))
        return found
