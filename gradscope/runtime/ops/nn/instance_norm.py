"""Normalisation of batches and of instances, in the order of arguments that the top of PyTorch has."""

from __future__ import annotations

from ...tensor.tensor import Tensor
from ..declaration.registry import OPERATORS, public
from . import normalization


@public(method=False)
def batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool = False,
) -> Tensor:
    """Normalise each channel of the batch; ``nn.functional.batch_norm`` with its arguments in another order.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.batch_norm(gs.tensor([[0.0], [2.0]]), None, None, None, None, True, 0.1, 1e-5, False)
    tensor([[-1.0000],
            [ 1.0000]])
    """
    return normalization.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)


@public(method=False)
def instance_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    use_input_stats: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool = False,
) -> Tensor:
    """Normalise each channel of each example; ``nn.functional.instance_norm`` with its arguments in another order.

    It is the normalisation of a batch of one example, that has as many channels as all examples together.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.instance_norm(gs.tensor([[[0.0, 2.0]]]), None, None, None, None, True, 0.1, 1e-5, False)
    tensor([[[-1.0000,  1.0000]]])
    """
    if not use_input_stats and (running_mean is None or running_var is None):
        raise RuntimeError("Expected running_mean and running_var to be defined when use_input_stats is false")
    shape = tuple(input.shape)
    if len(shape) < 2:
        raise RuntimeError(f"instance_norm expects an input of at least 2 dimensions, got shape {list(shape)}")
    batch, channels = shape[:2]
    repeated = [None if v is None else v.repeat(batch) for v in (weight, bias, running_mean, running_var)]
    one = input.contiguous().view(1, batch * channels, *shape[2:])
    result = OPERATORS["native_batch_norm"].function(one, *repeated, use_input_stats, momentum, eps)
    if use_input_stats:
        for statistic, values in ((running_mean, repeated[2]), (running_var, repeated[3])):
            if statistic is not None and values is not None:
                statistic.detach().copy_(values.detach().view(batch, channels).mean(0))
    return result.view(shape)
