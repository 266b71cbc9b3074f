"""Modules that take the number of their inputs from the first batch they see."""

from __future__ import annotations

from typing import Any

from ...runtime.memory import dtype as dtypes
from ...runtime.modes import no_grad
from ...runtime.tensor.creation import tensor
from ..parameter import UninitializedBuffer, UninitializedParameter, is_lazy
from .batchnorm import BatchNorm1d, BatchNorm2d, BatchNorm3d, NormBase
from .conv import Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from .instancenorm import InstanceNorm1d, InstanceNorm2d, InstanceNorm3d
from .linear import Linear
from .module import Module

__all__ = [
    "LazyBatchNorm1d",
    "LazyBatchNorm2d",
    "LazyBatchNorm3d",
    "LazyConv1d",
    "LazyConv2d",
    "LazyConv3d",
    "LazyConvTranspose1d",
    "LazyConvTranspose2d",
    "LazyConvTranspose3d",
    "LazyInstanceNorm1d",
    "LazyInstanceNorm2d",
    "LazyInstanceNorm3d",
    "LazyLinear",
]


class LazyModuleMixin(Module):
    """Base that makes a module lazy: put it before the module's class.

    A subclass makes its parameters :class:`UninitializedParameter`, gives them their shapes in
    ``initialize_parameters(*args)``, which is called with the arguments of the first call, and may name in
    ``cls_to_become`` the class that it is from then on.
    """

    cls_to_become: type[Module] | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._initialize_hook = self.register_forward_pre_hook(self._infer_parameters, with_kwargs=True)

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Give the parameters their shapes, known from the arguments of the first call; a subclass defines it."""
        raise NotImplementedError(f"initialize_parameters is not implemented for {type(self).__name__}")

    def has_uninitialized_params(self) -> bool:
        """Whether a parameter or buffer of the module itself is still without a shape."""
        return any(is_lazy(p) for p in (*self._parameters.values(), *self._buffers.values()))

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *rest: Any) -> None:
        for name, waiting in (*self._parameters.items(), *self._buffers.items()):
            value = state_dict.get(prefix + name)
            if value is None or is_lazy(value):
                continue
            if isinstance(waiting, (UninitializedParameter, UninitializedBuffer)):
                waiting.materialize(value.shape)
        super()._load_from_state_dict(state_dict, prefix, *rest)

    @staticmethod
    def _infer_parameters(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Initialize the module before its first call, and make it an ordinary one."""
        module.initialize_parameters(*args, **kwargs)
        if module.has_uninitialized_params():
            raise RuntimeError(f"module {module._get_name()} has not been fully initialized")
        module._initialize_hook.remove()
        del module._initialize_hook
        if module.cls_to_become is not None:
            module.__class__ = module.cls_to_become

    def _materialize(self, **shapes: Any) -> None:
        """Give those of the named parameters that wait for one their shape."""
        for name, shape in shapes.items():
            waiting = getattr(self, name)
            if isinstance(waiting, (UninitializedParameter, UninitializedBuffer)):
                waiting.materialize(shape)


# --- linear -----------------------------------------------------------------------------------------------------------


class LazyLinear(LazyModuleMixin, Linear):
    """A :class:`Linear` that takes `in_features` from its first input.

    See Also
    --------
    Linear

    Examples
    --------
    >>> import gradscope as gs
    >>> layer = gs.nn.LazyLinear(3)
    >>> layer(gs.ones(2, 5)).shape, layer
    (gradscope.Size([2, 3]), Linear(in_features=5, out_features=3, bias=True))
    """

    cls_to_become = Linear

    def __init__(self, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None) -> None:
        super().__init__(0, 0, False)
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_features = out_features
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """Draw weight and bias anew, if they are there."""
        if not self.has_uninitialized_params() and self.in_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Any) -> None:
        """Take the number of features from the input."""
        fresh = self.has_uninitialized_params()
        self.in_features = input.shape[-1]
        if fresh:
            with no_grad():
                self._materialize(weight=(self.out_features, self.in_features), bias=(self.out_features,))
                self.reset_parameters()


# --- convolutions -----------------------------------------------------------------------------------------------------


class _LazyConvolution(LazyModuleMixin):
    """Base of lazy convolutions."""

    spatial: int
    transposed: bool
    groups: int
    kernel_size: tuple[int, ...]

    def __init__(
        self, out_channels: int, *args: Any, bias: bool = True, device: Any = None, dtype: Any = None, **kwargs: Any
    ) -> None:
        super().__init__(0, 0, *args, bias=False, **kwargs)
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_channels = out_channels
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """Draw weight and bias anew, if they are there."""
        if not self.has_uninitialized_params() and self.in_channels != 0:
            super().reset_parameters()  # type: ignore[misc]

    def initialize_parameters(self, input: Any) -> None:
        """Take the number of channels from the input."""
        count = self.spatial
        if input.dim() not in (count + 1, count + 2):
            raise RuntimeError(
                f"Expected {count + 1}D (unbatched) or {count + 2}D (batched) input to {type(self).__name__}, but got "
                f"input of size: {input.shape}"
            )
        fresh = self.has_uninitialized_params()
        self.in_channels = input.shape[-count - 1]
        if self.in_channels % self.groups:
            raise ValueError("in_channels must be divisible by groups")
        if fresh:
            first, second = self.out_channels, self.in_channels
            if self.transposed:
                first, second = second, first
            with no_grad():
                shape = (first, second // self.groups, *self.kernel_size)
                self._materialize(weight=shape, bias=(self.out_channels,))
                self.reset_parameters()


class _LazyForward(_LazyConvolution):
    def __init__(
        self,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        settings = {"dilation": dilation, "groups": groups, "padding_mode": padding_mode}
        super().__init__(out_channels, kernel_size, stride, padding, bias=bias, device=device, dtype=dtype, **settings)


class _LazyTransposed(_LazyConvolution):
    def __init__(
        self,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        settings = {"output_padding": output_padding, "dilation": dilation, "groups": groups}
        settings["padding_mode"] = padding_mode
        super().__init__(out_channels, kernel_size, stride, padding, bias=bias, device=device, dtype=dtype, **settings)


class LazyConv1d(_LazyForward, Conv1d):  # type: ignore[misc]
    """A :class:`Conv1d` that takes `in_channels` from its first input.

    See Also
    --------
    Conv1d

    Examples
    --------
    >>> import gradscope as gs
    >>> layer = gs.nn.LazyConv1d(4, kernel_size=3)
    >>> _ = layer(gs.randn(1, 2, 10))
    >>> layer.in_channels
    2
    """

    cls_to_become = Conv1d


class LazyConv2d(_LazyForward, Conv2d):  # type: ignore[misc]
    """A :class:`Conv2d` that takes `in_channels` from its first input; the other parameters are the same.

    See Also
    --------
    Conv2d

    Examples
    --------
    >>> import gradscope as gs
    >>> layer = gs.nn.LazyConv2d(4, kernel_size=3)
    >>> _ = layer(gs.randn(1, 2, 8, 8))
    >>> layer.in_channels
    2
    """

    cls_to_become = Conv2d


class LazyConv3d(_LazyForward, Conv3d):  # type: ignore[misc]
    """A :class:`Conv3d` that takes `in_channels` from its first input.

    See Also
    --------
    Conv3d

    Examples
    --------
    >>> import gradscope as gs
    >>> layer = gs.nn.LazyConv3d(4, kernel_size=3)
    >>> _ = layer(gs.randn(1, 2, 4, 4, 4))
    >>> layer.in_channels
    2
    """

    cls_to_become = Conv3d


class LazyConvTranspose1d(_LazyTransposed, ConvTranspose1d):  # type: ignore[misc]
    """A :class:`ConvTranspose1d` that takes `in_channels` from its first input.

    See Also
    --------
    ConvTranspose1d

    Examples
    --------
    >>> import gradscope as gs
    >>> layer = gs.nn.LazyConvTranspose1d(4, kernel_size=3)
    >>> _ = layer(gs.randn(1, 2, 5))
    >>> layer.in_channels
    2
    """

    cls_to_become = ConvTranspose1d


class LazyConvTranspose2d(_LazyTransposed, ConvTranspose2d):  # type: ignore[misc]
    """A :class:`ConvTranspose2d` that takes `in_channels` from its first input.

    See Also
    --------
    ConvTranspose2d

    Examples
    --------
    >>> import gradscope as gs
    >>> layer = gs.nn.LazyConvTranspose2d(4, kernel_size=3)
    >>> _ = layer(gs.randn(1, 2, 4, 4))
    >>> layer.in_channels
    2
    """

    cls_to_become = ConvTranspose2d


class LazyConvTranspose3d(_LazyTransposed, ConvTranspose3d):  # type: ignore[misc]
    """A :class:`ConvTranspose3d` that takes `in_channels` from its first input.

    See Also
    --------
    ConvTranspose3d

    Examples
    --------
    >>> import gradscope as gs
    >>> layer = gs.nn.LazyConvTranspose3d(4, kernel_size=3)
    >>> _ = layer(gs.randn(1, 2, 3, 3, 3))
    >>> layer.in_channels
    2
    """

    cls_to_become = ConvTranspose3d


# --- norms ------------------------------------------------------------------------------------------------------------


class _LazyNorm(LazyModuleMixin, NormBase):
    """Base of lazy normalisations."""

    def __init__(
        self,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(0, eps, momentum, False, False)
        self.affine = affine
        self.track_running_stats = track_running_stats
        if affine:
            self.weight = UninitializedParameter(device=device, dtype=dtype)
            if bias:
                self.bias = UninitializedParameter(device=device, dtype=dtype)
        if track_running_stats:
            self.running_mean = UninitializedBuffer(device=device, dtype=dtype)
            self.running_var = UninitializedBuffer(device=device, dtype=dtype)
            self.num_batches_tracked = tensor(0, dtype=dtypes.int64, device=device)

    def reset_parameters(self) -> None:
        """Put scale, shift and statistics back to where they start, if they are there."""
        if not self.has_uninitialized_params() and self.num_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Any) -> None:
        """Take the number of channels from the input."""
        fresh = self.has_uninitialized_params()
        self.num_features = input.shape[1]
        if fresh:
            shape = (self.num_features,)
            self._materialize(weight=shape, bias=shape, running_mean=shape, running_var=shape)
            self.reset_parameters()


class LazyBatchNorm1d(_LazyNorm, BatchNorm1d):
    """A :class:`BatchNorm1d` that takes `num_features` from its first input.

    See Also
    --------
    BatchNorm1d

    Examples
    --------
    >>> import gradscope as gs
    >>> layer = gs.nn.LazyBatchNorm1d()
    >>> _ = layer(gs.randn(4, 5))
    >>> layer.num_features
    5
    """

    cls_to_become = BatchNorm1d


class LazyBatchNorm2d(_LazyNorm, BatchNorm2d):
    """A :class:`BatchNorm2d` that takes `num_features` from its first input; the other parameters are the same.

    See Also
    --------
    BatchNorm2d

    Examples
    --------
    >>> import gradscope as gs
    >>> layer = gs.nn.LazyBatchNorm2d()
    >>> _ = layer(gs.randn(2, 5, 3, 3))
    >>> layer.num_features
    5
    """

    cls_to_become = BatchNorm2d


class LazyBatchNorm3d(_LazyNorm, BatchNorm3d):
    """A :class:`BatchNorm3d` that takes `num_features` from its first input.

    See Also
    --------
    BatchNorm3d

    Examples
    --------
    >>> import gradscope as gs
    >>> layer = gs.nn.LazyBatchNorm3d()
    >>> _ = layer(gs.randn(2, 5, 2, 2, 2))
    >>> layer.num_features
    5
    """

    cls_to_become = BatchNorm3d


class LazyInstanceNorm1d(_LazyNorm, InstanceNorm1d):
    """An :class:`InstanceNorm1d` that takes `num_features` from its first input.

    See Also
    --------
    InstanceNorm1d

    Examples
    --------
    >>> import gradscope as gs
    >>> layer = gs.nn.LazyInstanceNorm1d()
    >>> _ = layer(gs.randn(2, 5, 4))
    >>> layer.num_features
    5
    """

    cls_to_become = InstanceNorm1d


class LazyInstanceNorm2d(_LazyNorm, InstanceNorm2d):
    """An :class:`InstanceNorm2d` that takes `num_features` from its first input; the other parameters are the same.

    See Also
    --------
    InstanceNorm2d

    Examples
    --------
    >>> import gradscope as gs
    >>> layer = gs.nn.LazyInstanceNorm2d()
    >>> _ = layer(gs.randn(2, 5, 3, 3))
    >>> layer.num_features
    5
    """

    cls_to_become = InstanceNorm2d


class LazyInstanceNorm3d(_LazyNorm, InstanceNorm3d):
    """An :class:`InstanceNorm3d` that takes `num_features` from its first input.

    See Also
    --------
    InstanceNorm3d

    Examples
    --------
    >>> import gradscope as gs
    >>> layer = gs.nn.LazyInstanceNorm3d()
    >>> _ = layer(gs.randn(2, 5, 2, 2, 2))
    >>> layer.num_features
    5
    """

    cls_to_become = InstanceNorm3d
