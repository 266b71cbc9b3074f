"""Pruning: a parameter times a mask, computed before each forward of its module.

The parameter is kept as ``<name>_orig``, the mask is the buffer ``<name>_mask``, and the attribute `name` is the
product, so that gradients reach what is not masked.

References
----------
S. Han, J. Pool, J. Tran, W. Dally, "Learning both weights and connections for efficient neural networks", NIPS 2015.
"""

from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any

from ...runtime.ops.families import PUBLIC
from ...runtime.ops.random.random import rand, rand_like
from ...runtime.tensor.creation import ones_like, zeros_like
from ...runtime.tensor.tensor import Tensor
from ..modules.module import Module
from .convert_parameters import parameters_to_vector

__all__ = [
    "BasePruningMethod",
    "CustomFromMask",
    "Identity",
    "L1Unstructured",
    "LnStructured",
    "PruningContainer",
    "RandomStructured",
    "RandomUnstructured",
    "custom_from_mask",
    "global_unstructured",
    "identity",
    "is_pruned",
    "l1_unstructured",
    "ln_structured",
    "random_structured",
    "random_unstructured",
    "remove",
]


class BasePruningMethod(ABC):
    """A way to choose what is masked; a subclass defines :meth:`compute_mask` and ``PRUNING_TYPE``.

    ``PRUNING_TYPE`` says what a second pruning chooses among: ``"unstructured"``, the elements that are left;
    ``"structured"``, the channels that are; ``"global"``, all.

    See Also
    --------
    custom_from_mask, PruningContainer

    Examples
    --------
    >>> import gradscope as gs
    >>> from gradscope.nn.utils import prune
    >>> class KeepPositive(prune.BasePruningMethod):
    ...     PRUNING_TYPE = "unstructured"
    ...
    ...     def compute_mask(self, t, default_mask):
    ...         return default_mask * (t > 0)
    >>> layer = gs.nn.Linear(2, 1, bias=False)
    >>> layer.weight = gs.nn.Parameter(gs.tensor([[1.0, -1.0]]))
    >>> _ = KeepPositive.apply(layer, "weight")
    >>> layer.weight_mask
    tensor([[1., 0.]])
    """

    PRUNING_TYPE: str
    _tensor_name: str

    def __call__(self, module: Module, inputs: Any) -> None:
        """Compute the tensor: the hook before the module's forward."""
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return the mask for a tensor, zeros where `default_mask` has them."""

    def apply_mask(self, module: Module) -> Tensor:
        """Return the parameter times the mask."""
        original = getattr(module, self._tensor_name + "_orig")
        return getattr(module, self._tensor_name + "_mask").to(dtype=original.dtype) * original

    @classmethod
    def apply(
        cls, module: Module, name: str, *args: Any, importance_scores: Tensor | None = None, **kwargs: Any
    ) -> Any:
        """Prune a parameter, and before each forward of its module; return the method.

        Parameters
        ----------
        *args, **kwargs
            Of the method.
        importance_scores : Tensor, optional
            What decides in the place of the parameter, of its shape.
        """
        before = _hook_of(module, name)
        method: BasePruningMethod = cls(*args, **kwargs)
        method._tensor_name = name
        tensor = getattr(module, name)
        scores = _scores(tensor, importance_scores, f"parameter {name} of {module}")
        if before is None:
            mask = method.compute_mask(scores, default_mask=ones_like(tensor.detach()))
            del module._parameters[name]
            module.register_parameter(name + "_orig", tensor)
        else:
            key, hook = before
            method = _joined(hook, method)
            mask = method.compute_mask(scores, default_mask=getattr(module, name + "_mask").detach().clone())
            del module._forward_pre_hooks[key]
        module.register_buffer(name + "_mask", mask)
        setattr(module, name, method.apply_mask(module))
        module.register_forward_pre_hook(method)
        return method

    def prune(self, t: Tensor, default_mask: Tensor | None = None, importance_scores: Tensor | None = None) -> Tensor:
        """Return a tensor times the mask that the method computes for it."""
        scores = _scores(t, importance_scores, "tensor t")
        mask = ones_like(t.detach()) if default_mask is None else default_mask
        return t * self.compute_mask(scores, default_mask=mask)

    def remove(self, module: Module) -> None:
        """Make the masked tensor the parameter."""
        name = self._tensor_name
        pruned = self.apply_mask(module)
        parameter: Any = module._parameters[name + "_orig"]
        delattr(module, name)
        parameter.data = pruned.data
        del module._parameters[name + "_orig"], module._buffers[name + "_mask"]
        setattr(module, name, parameter)


def _scores(tensor: Tensor, given: Tensor | None, what: str) -> Tensor:
    if given is None:
        return tensor.detach()
    if given.shape != tensor.shape:
        raise AssertionError(
            f"importance_scores should have the same shape as {what}, got {given.shape} vs {tensor.shape}"
        )
    return given


def _hook_of(module: Module, name: str) -> tuple[Any, BasePruningMethod] | None:
    """Return key and method of what prunes a parameter."""
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
            return key, hook
    return None


def _joined(hook: BasePruningMethod, method: BasePruningMethod) -> BasePruningMethod:
    container = PruningContainer(*hook) if isinstance(hook, PruningContainer) else PruningContainer(hook)
    container._tensor_name = hook._tensor_name
    container.add_pruning_method(method)
    return container


class PruningContainer(BasePruningMethod):
    """Several prunings of one parameter, one after the other.

    See Also
    --------
    BasePruningMethod

    Examples
    --------
    >>> import gradscope as gs
    >>> from gradscope.nn.utils import prune
    >>> layer = prune.l1_unstructured(prune.l1_unstructured(gs.nn.Linear(4, 2), "weight", 2), "weight", 3)
    >>> (hook,) = layer._forward_pre_hooks.values()
    >>> isinstance(hook, prune.PruningContainer), len(hook), int(layer.weight_mask.sum())
    (True, 2, 3)
    """

    def __init__(self, *args: BasePruningMethod) -> None:
        self._pruning_methods: tuple[BasePruningMethod, ...] = ()
        if args:
            self._tensor_name = args[0]._tensor_name
        for method in args:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: BasePruningMethod) -> None:
        """Add one.

        Raises
        ------
        TypeError
            If it is none.
        ValueError
            If it is for another parameter.
        """
        if not isinstance(method, BasePruningMethod):
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if self._tensor_name != method._tensor_name:
            raise ValueError(
                f"Can only add pruning methods acting on the parameter named '{self._tensor_name}' to PruningContainer "
                f"{self}. Found '{method._tensor_name}'"
            )
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Iterator[BasePruningMethod]:
        return iter(self._pruning_methods)

    def __getitem__(self, idx: int) -> Any:
        return self._pruning_methods[idx]

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return the mask of the last method, which chooses among what the others have left."""
        method = self._pruning_methods[-1]
        left = _left(method, t, default_mask)
        mask: Any = default_mask.to(dtype=t.dtype, copy=True)
        mask[left] = method.compute_mask(t[left], default_mask=default_mask[left]).to(dtype=mask.dtype)
        return mask


def _left(method: Any, t: Tensor, mask: Tensor) -> Any:
    """Return the index of what a method chooses among."""
    if method.PRUNING_TYPE == "unstructured":
        return mask == 1
    index: list[Any] = [slice(None)] * t.dim()
    if method.PRUNING_TYPE == "structured":
        if not hasattr(method, "dim"):
            raise AttributeError(
                'Pruning methods of PRUNING_TYPE "structured" need to have the attribute `dim` defined.'
            )
        dim = method.dim + t.dim() if method.dim < 0 else method.dim
        if dim < 0:
            raise IndexError(f"Index is out of bounds for tensor with dimensions {t.dim()}")
        index[dim] = mask.sum(dim=[d for d in range(t.dim()) if d != dim]) != 0
    elif method.PRUNING_TYPE != "global":
        raise ValueError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}\nIt is unstructured, structured or global.")
    return tuple(index)


# --- how much ---------------------------------------------------------------------------------------------------------


def _checked(amount: Any) -> Any:
    """Return an amount: a share of the elements, or their number."""
    if not isinstance(amount, numbers.Real):
        raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
    if float(amount) < 0 or (not isinstance(amount, numbers.Integral) and float(amount) > 1.0):
        raise ValueError(f"amount={amount} should either be a float in the range [0, 1] or a non-negative integer")
    return amount


def _number(amount: Any, count: int) -> int:
    """Return how many of `count` are masked."""
    number = int(amount) if isinstance(amount, numbers.Integral) else round(amount * count)
    if number > count:
        raise ValueError(f"amount={amount} should be smaller than the number of parameters to prune={count}")
    return number


def _channels(t: Tensor, dim: int) -> int:
    """Return how many channels a tensor has."""
    if t.dim() <= 1:
        raise ValueError(
            "Structured pruning can only be applied to multidimensional tensors. Found tensor of shape "
            f"{t.shape} with {t.dim()} dims"
        )
    if dim >= t.dim():
        raise IndexError(f"Invalid index {dim} for tensor of size {t.shape}")
    return t.shape[dim]


# --- the methods ------------------------------------------------------------------------------------------------------


class Identity(BasePruningMethod):
    """Mask nothing: for the parametrisation alone.

    See Also
    --------
    identity : prunes a module's parameter by it.

    Examples
    --------
    >>> import gradscope as gs
    >>> from gradscope.nn.utils import prune
    >>> layer = prune.identity(gs.nn.Linear(2, 1), "weight")
    >>> layer.weight_mask, prune.is_pruned(layer)
    (tensor([[1., 1.]]), True)
    """

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return the mask that is there."""
        return default_mask


class _Unstructured(BasePruningMethod):
    """Mask the elements with the smallest scores.

    Parameters
    ----------
    amount : int or float
        How many elements, or which share of them.
    """

    PRUNING_TYPE = "unstructured"

    def __init__(self, amount: Any) -> None:
        self.amount = _checked(amount)

    def _ranks(self, t: Tensor) -> Tensor:
        raise NotImplementedError

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        mask = default_mask.clone()
        count = _number(self.amount, t.numel())
        if count:
            smallest = self._ranks(t).reshape(-1).topk(count, largest=False).indices
            mask.view(-1)[smallest] = 0
        return mask


class RandomUnstructured(_Unstructured):
    """Mask elements at random.

    Parameters
    ----------
    amount : int or float
        How many elements, or which share of them.

    See Also
    --------
    random_unstructured

    Examples
    --------
    >>> import gradscope as gs
    >>> layer = gs.nn.Linear(4, 2)
    >>> _ = gs.nn.utils.prune.RandomUnstructured.apply(layer, "weight", amount=3)
    >>> int((layer.weight == 0).sum())
    3
    """

    def _ranks(self, t: Tensor) -> Tensor:
        return rand_like(t)


class L1Unstructured(_Unstructured):
    """Mask the elements with the smallest absolute values.

    Parameters
    ----------
    amount : int or float
        How many elements, or which share of them.

    See Also
    --------
    l1_unstructured

    Examples
    --------
    >>> import gradscope as gs
    >>> layer = gs.nn.Linear(4, 2)
    >>> _ = gs.nn.utils.prune.L1Unstructured.apply(layer, "weight", amount=3)
    >>> int((layer.weight == 0).sum())
    3
    """

    def _ranks(self, t: Tensor) -> Tensor:
        return t.abs()


class _Structured(BasePruningMethod):
    """Mask the channels with the smallest scores."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: Any, dim: int = -1) -> None:
        self.amount, self.dim = _checked(amount), dim

    def _ranks(self, t: Tensor, count: int) -> Tensor:
        raise NotImplementedError

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        channels = _channels(t, self.dim)
        count = _number(self.amount, channels)
        if not count:
            return default_mask
        mask: Any = zeros_like(t)
        index: list[Any] = [slice(None)] * t.dim()
        index[self.dim] = self._ranks(t, channels).topk(channels - count).indices
        mask[tuple(index)] = 1
        return mask * default_mask.to(dtype=mask.dtype)


class RandomStructured(_Structured):
    """Mask channels at random.

    Parameters
    ----------
    amount : int or float
        How many channels, or which share of them.
    dim : int
        The dimension of the channels.

    See Also
    --------
    random_structured : prunes a module's parameter by it.

    Examples
    --------
    >>> import gradscope as gs
    >>> from gradscope.nn.utils import prune
    >>> int((prune.RandomStructured(1, dim=0).prune(gs.ones(2, 3)) == 0).sum())
    3
    """

    def _ranks(self, t: Tensor, count: int) -> Tensor:
        return rand(count, device=t.device)


class LnStructured(_Structured):
    """Mask the channels with the smallest norms.

    Parameters
    ----------
    amount : int or float
        How many channels, or which share of them.
    n : int, float, inf, -inf, "fro" or "nuc"
        The order of the norm.
    dim : int
        The dimension of the channels.

    See Also
    --------
    ln_structured : prunes a module's parameter by it.

    Examples
    --------
    >>> import gradscope as gs
    >>> from gradscope.nn.utils import prune
    >>> prune.LnStructured(1, n=2, dim=0).prune(gs.tensor([[3.0, 4.0], [1.0, 1.0]]))
    tensor([[3., 4.],
            [0., 0.]])
    """

    def __init__(self, amount: Any, n: Any, dim: int = -1) -> None:
        super().__init__(amount, dim)
        self.n = n

    def _ranks(self, t: Tensor, count: int) -> Tensor:
        others = [d for d in range(t.dim()) if d != self.dim % t.dim()]
        return PUBLIC["norm"](t, p=self.n, dim=others)


class CustomFromMask(BasePruningMethod):
    """Mask by a given mask.

    Parameters
    ----------
    mask : Tensor
        Of the parameter's shape: 0 where it is masked.

    See Also
    --------
    custom_from_mask : prunes a module's parameter by it.

    Examples
    --------
    >>> import gradscope as gs
    >>> from gradscope.nn.utils import prune
    >>> prune.CustomFromMask(gs.tensor([1.0, 0.0])).prune(gs.tensor([3.0, 4.0]))
    tensor([3., 0.])
    """

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor) -> None:
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return the product of the two masks."""
        if default_mask.shape != self.mask.shape:
            raise AssertionError(
                f"default_mask shape {default_mask.shape} must match self.mask shape {self.mask.shape}"
            )
        return default_mask * self.mask.to(dtype=default_mask.dtype)


# --- as functions -----------------------------------------------------------------------------------------------------


def identity(module: Module, name: str) -> Module:
    """Mask nothing of a parameter; return the module.

    See Also
    --------
    custom_from_mask

    Examples
    --------
    >>> import gradscope as gs
    >>> layer = gs.nn.utils.prune.identity(gs.nn.Linear(2, 1), "weight")
    >>> gs.nn.utils.prune.is_pruned(layer)
    True
    """
    Identity.apply(module, name)
    return module


def random_unstructured(module: Module, name: str, amount: Any) -> Module:
    """Mask elements of a parameter at random, by number or share; return the module.

    See Also
    --------
    l1_unstructured, random_structured

    Examples
    --------
    >>> import gradscope as gs
    >>> layer = gs.nn.utils.prune.random_unstructured(gs.nn.Linear(4, 2), "weight", amount=3)
    >>> int((layer.weight == 0).sum())
    3
    """
    RandomUnstructured.apply(module, name, amount=amount)
    return module


def l1_unstructured(module: Module, name: str, amount: Any, importance_scores: Tensor | None = None) -> Module:
    """Mask the elements of a parameter with the smallest absolute values (or scores); return the module.

    See Also
    --------
    ln_structured, global_unstructured, remove

    Examples
    --------
    >>> import gradscope as gs
    >>> from gradscope.nn.utils import prune
    >>> layer = prune.l1_unstructured(gs.nn.Linear(4, 2), "weight", amount=0.75)
    >>> int((layer.weight != 0).sum()), sorted(name for name, _ in layer.named_parameters())
    (2, ['bias', 'weight_orig'])
    """
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


def random_structured(module: Module, name: str, amount: Any, dim: int) -> Module:
    """Mask channels of a parameter at random, by number or share; return the module.

    See Also
    --------
    ln_structured, random_unstructured

    Examples
    --------
    >>> import gradscope as gs
    >>> layer = gs.nn.utils.prune.random_structured(gs.nn.Linear(4, 2), "weight", amount=1, dim=0)
    >>> int((layer.weight == 0).sum())
    4
    """
    RandomStructured.apply(module, name, amount=amount, dim=dim)
    return module


def ln_structured(
    module: Module, name: str, amount: Any, n: Any, dim: int, importance_scores: Tensor | None = None
) -> Module:
    """Mask the channels of a parameter with the smallest norms of order `n`; return the module.

    See Also
    --------
    l1_unstructured, random_structured

    Examples
    --------
    >>> import gradscope as gs
    >>> layer = gs.nn.utils.prune.ln_structured(gs.nn.Linear(4, 2), "weight", amount=1, n=2, dim=0)
    >>> int((layer.weight == 0).sum())
    4
    """
    LnStructured.apply(module, name, amount=amount, n=n, dim=dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module: Module, name: str, mask: Tensor) -> Module:
    """Mask a parameter by a given mask; return the module.

    See Also
    --------
    identity, remove

    Examples
    --------
    >>> import gradscope as gs
    >>> layer = gs.nn.utils.prune.custom_from_mask(gs.nn.Linear(2, 1), "weight", gs.tensor([[1.0, 0.0]]))
    >>> int((layer.weight == 0).sum())
    1
    """
    CustomFromMask.apply(module, name, mask=mask)
    return module


def global_unstructured(
    parameters: Any, pruning_method: Any, importance_scores: dict[Any, Tensor] | None = None, **kwargs: Any
) -> None:
    """Mask several parameters as if they were one.

    Parameters
    ----------
    parameters : iterable of (Module, str)
        Each parameter as its module and its name there.
    pruning_method : class
        One that chooses single elements.
    importance_scores : dict, optional
        What decides in the place of a parameter, by (module, name).
    **kwargs
        Of the method.

    Raises
    ------
    TypeError
        If an argument is of the wrong type.

    See Also
    --------
    l1_unstructured

    Examples
    --------
    >>> import gradscope as gs
    >>> layer = gs.nn.Linear(4, 2)
    >>> gs.nn.utils.prune.global_unstructured([(layer, "weight")], gs.nn.utils.prune.L1Unstructured, amount=3)
    >>> int((layer.weight == 0).sum())
    3
    """
    if not isinstance(parameters, Iterable):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    places, scores = list(parameters), {} if importance_scores is None else importance_scores
    if not isinstance(scores, dict):
        raise TypeError("global_unstructured(): importance_scores must be of type dict")
    method = pruning_method(**kwargs)
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. Found method '
            f"{pruning_method} of type {method.PRUNING_TYPE}"
        )
    tensors = [getattr(module, name).detach() for module, name in places]
    ranked = parameters_to_vector([scores.get(place, t) for place, t in zip(places, tensors, strict=True)])
    masks = [getattr(module, name + "_mask", ones_like(t)) for (module, name), t in zip(places, tensors, strict=True)]
    method._tensor_name = "temp"
    found = PruningContainer(method).compute_mask(ranked, parameters_to_vector(masks))
    start = 0
    for (module, name), tensor in zip(places, tensors, strict=True):
        custom_from_mask(module, name, mask=found[start : start + tensor.numel()].view_as(tensor))
        start += tensor.numel()


def remove(module: Module, name: str) -> Module:
    """Make a masked tensor the parameter again; return the module.

    Raises
    ------
    ValueError
        If it is not pruned.

    See Also
    --------
    is_pruned

    Examples
    --------
    >>> import gradscope as gs
    >>> layer = gs.nn.utils.prune.l1_unstructured(gs.nn.Linear(4, 2), "weight", amount=3)
    >>> gs.nn.utils.prune.is_pruned(gs.nn.utils.prune.remove(layer, "weight"))
    False
    """
    found = _hook_of(module, name)
    if found is None:
        raise ValueError(f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed")
    key, hook = found
    hook.remove(module)
    del module._forward_pre_hooks[key]
    return module


def is_pruned(module: Module) -> bool:
    """Return whether a parameter of a module, or of one in it, is pruned.

    See Also
    --------
    remove

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.utils.prune.is_pruned(gs.nn.Linear(2, 1))
    False
    """
    hooks = (hook for part in module.modules() for hook in part._forward_pre_hooks.values())
    return any(isinstance(hook, BasePruningMethod) for hook in hooks)
