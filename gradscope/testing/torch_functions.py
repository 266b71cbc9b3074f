"""Functions of PyTorch tensors as functions of gradscope's, so that one check serves both."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy

from ..autograd.function import Function
from ..autograd.numerical_jacobian import as_tuple
from ..runtime.tensor.creation import from_numpy
from ..runtime.tensor.tensor import Tensor

__all__ = ["as_native", "is_foreign"]


def is_foreign(value: Any) -> bool:
    """Return whether a value is a tensor of PyTorch that requires grad."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor) and value.requires_grad


def as_native(function: Callable[..., Any], inputs: Sequence[Any]) -> tuple[Callable[..., Any], list[Any]]:
    """Return a function that takes gradscope's tensors and calls `function` with PyTorch's, and its inputs.

    It can be differentiated as often as `function` can. Inputs that do not require grad are handed on as they are.
    """
    places = [place for place, value in enumerate(inputs) if is_foreign(value)]
    devices = [inputs[place].device for place in places]

    def of_the_differentiated(*given: Any) -> Any:
        arguments = list(inputs)
        for place, value, device in zip(places, given, devices, strict=True):
            arguments[place] = value.to(device)
        return function(*arguments)

    bridge = _bridge(of_the_differentiated)

    def native(*arguments: Any) -> Any:
        return bridge.apply(*(arguments[place] for place in places))

    leaves = {place: from_numpy(_host(inputs[place])).requires_grad_() for place in places}
    return native, [leaves.get(place, value) for place, value in enumerate(inputs)]


def _host(tensor: Any) -> Any:
    """Return a copy of a PyTorch tensor's values."""
    return numpy.array(tensor.detach().cpu().resolve_conj().resolve_neg().numpy())


def _bridge(function: Callable[..., Any]) -> type[Function]:
    """Return the Function whose forward is `function`, of PyTorch tensors that require grad, and whose backward is its.

    The backward is a bridge again, over the product of a vector with the Jacobian: so it can itself be differentiated.
    """
    torch = sys.modules["torch"]

    def product(count: int, graded: Sequence[int]) -> Callable[..., Any]:
        def of_inputs_and_gradients(*given: Any) -> Any:
            # A backward may write into what it is given, which a leaf refuses.
            values, grads = given[:count], [grad.clone() for grad in given[count:]]
            results = as_tuple(function(*values))
            chosen = [results[nr] for nr in graded]
            found = torch.autograd.grad(chosen, values, grads, create_graph=True, allow_unused=True)
            return tuple(torch.zeros_like(v) if g is None else g for v, g in zip(values, found, strict=True))

        return of_inputs_and_gradients

    class Bridge(Function):
        """A function of PyTorch tensors."""

        @staticmethod
        def forward(ctx: Any, *values: Tensor) -> Any:
            ctx.save_for_backward(*values)
            given = [torch.from_numpy(numpy.array(value.detach().numpy())).requires_grad_() for value in values]
            with torch.enable_grad():
                results = function(*given)
            outputs = [from_numpy(_host(result)) for result in as_tuple(results)]
            ctx.graded = [nr for nr, result in enumerate(as_tuple(results)) if result.requires_grad]
            ctx.mark_non_differentiable(*(output for nr, output in enumerate(outputs) if nr not in ctx.graded))
            return tuple(outputs) if isinstance(results, (tuple, list)) else outputs[0]

        @staticmethod
        def backward(ctx: Any, *grads: Tensor) -> Any:
            values = ctx.saved_tensors
            return _bridge(product(len(values), ctx.graded)).apply(*values, *(grads[nr] for nr in ctx.graded))

    return Bridge
