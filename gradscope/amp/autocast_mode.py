"""The block in which autocast is on, its settings, and Functions inside it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy

from ..runtime.autocast import settings
from ..runtime.memory import device as devices
from ..runtime.memory import dtype as dtypes
from ..runtime.tensor.tensor import Tensor
from ..runtime.user_warnings import warn

__all__ = [
    "autocast",
    "autocast_decrement_nesting",
    "autocast_increment_nesting",
    "clear_autocast_cache",
    "custom_bwd",
    "custom_fwd",
    "get_autocast_dtype",
    "is_autocast_available",
    "is_autocast_cache_enabled",
    "is_autocast_enabled",
    "set_autocast_cache_enabled",
    "set_autocast_dtype",
    "set_autocast_enabled",
]

# --- settings ---------------------------------------------------------------------------------------------------------


def _kind(device_type: str) -> str:
    return devices.device(device_type).type


def is_autocast_available(device_type: str) -> bool:
    """Return whether there is autocast for a device type: for each that this runtime knows.

    See Also
    --------
    amp.autocast

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.amp.is_autocast_available("cpu")
    True
    """
    return _kind(device_type) == device_type


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Return whether autocast is on for a device type, on this thread.

    Raises
    ------
    RuntimeError
        If there is no such device type.

    See Also
    --------
    set_autocast_enabled, amp.autocast

    Examples
    --------
    >>> import gradscope as gs
    >>> with gs.autocast("cpu"):
    ...     gs.is_autocast_enabled("cpu"), gs.is_autocast_enabled("cuda")
    (True, False)
    >>> gs.is_autocast_enabled("cpu")
    False
    """
    return settings.is_enabled(_kind(device_type))


def set_autocast_enabled(device_type: str, enabled: bool) -> None:
    """Switch autocast on or off for a device type, on this thread.

    Raises
    ------
    RuntimeError
        If there is no such device type.

    See Also
    --------
    gradscope.amp.autocast : switches it for a block.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.set_autocast_enabled("cpu", True)
    >>> (gs.ones(2, 2) @ gs.ones(2, 2)).dtype
    gradscope.bfloat16
    >>> gs.set_autocast_enabled("cpu", False)
    """
    kind = _kind(device_type)
    settings.set_enabled(kind, bool(enabled))


def get_autocast_dtype(device_type: str) -> dtypes.dtype:
    """Return the lower precision of autocast for a device type: on the CPU bfloat16, elsewhere float16, unless set.

    Raises
    ------
    RuntimeError
        If there is no such device type.

    See Also
    --------
    gradscope.amp.autocast : its argument `dtype` goes before this.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.get_autocast_dtype("cpu"), gs.get_autocast_dtype("cuda")
    (gradscope.bfloat16, gradscope.float16)
    """
    return settings.dtype_of(_kind(device_type))


def set_autocast_dtype(device_type: str, dtype: dtypes.dtype) -> None:
    """Set the lower precision of autocast for a device type, on this thread.

    Raises
    ------
    RuntimeError
        If there is no such device type.

    See Also
    --------
    get_autocast_dtype, amp.autocast

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.set_autocast_dtype("cpu", gs.float16)
    >>> with gs.autocast("cpu"):
    ...     (gs.ones(2, 2) @ gs.ones(2, 2)).dtype
    gradscope.float16
    >>> gs.set_autocast_dtype("cpu", gs.bfloat16)
    """
    settings.set_dtype(_kind(device_type), dtypes.to_dtype(dtype))


def is_autocast_cache_enabled() -> bool:
    """Return whether a weight is cast once a block.

    See Also
    --------
    set_autocast_cache_enabled, amp.autocast

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.is_autocast_cache_enabled()
    True
    >>> with gs.autocast("cpu", cache_enabled=False):
    ...     gs.is_autocast_cache_enabled()
    False
    """
    return settings.cache_enabled


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Set whether a weight is cast once a block.

    See Also
    --------
    gradscope.amp.autocast : takes it as ``cache_enabled`` for one block.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.set_autocast_cache_enabled(False)
    >>> gs.is_autocast_cache_enabled()
    False
    >>> gs.set_autocast_cache_enabled(True)
    """
    settings.cache_enabled = bool(enabled)


def clear_autocast_cache() -> None:
    """Forget the weights that were cast.

    See Also
    --------
    gradscope.set_autocast_cache_enabled : keep none to begin with.

    Examples
    --------
    >>> import gradscope as gs
    >>> layer = gs.nn.Linear(2, 2)
    >>> with gs.autocast("cpu"):
    ...     before = layer(gs.ones(1, 2))
    ...     gs.clear_autocast_cache()
    ...     after = layer(gs.ones(1, 2))
    >>> before.dtype, gs.equal(before, after)
    (gradscope.bfloat16, True)
    """
    settings.cache.clear()


def autocast_increment_nesting() -> int:
    """Enter a block by hand; return how many there are.

    See Also
    --------
    gradscope.amp.autocast : does this, and leaves the block at its end.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.autocast_increment_nesting(), gs.autocast_increment_nesting()
    (1, 2)
    >>> gs.autocast_decrement_nesting(), gs.autocast_decrement_nesting()
    (1, 0)
    """
    settings.nesting += 1
    return settings.nesting


def autocast_decrement_nesting() -> int:
    """Leave a block by hand; return how many are left.

    See Also
    --------
    gradscope.amp.autocast : does both, at the end of a block too that raises.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.autocast_increment_nesting(), gs.autocast_decrement_nesting()
    (1, 0)
    """
    settings.nesting -= 1
    return settings.nesting


# --- the block --------------------------------------------------------------------------------------------------------


class autocast:  # noqa: N801 - PyTorch's name
    """Context manager and decorator: operators choose their precision.

    Products and convolutions run in `dtype`, what needs range or accuracy (losses, norms, powers) in float32, the rest
    in the dtype of its operands; the tables are PyTorch's. Leave the block before ``backward()``.

    Parameters
    ----------
    device_type : str
        ``"cpu"`` or ``"cuda"``: operators on tensors of other devices are as without it.
    dtype : dtype, optional
        The lower precision: bfloat16 or float16; on CUDA float16.
    enabled : bool
        False switches autocast off inside.
    cache_enabled : bool, optional
        Cast each weight once a block (the default).

    Raises
    ------
    RuntimeError
        If there is no such device type, or it has no such dtype.

    See Also
    --------
    amp.GradScaler, is_autocast_available

    Examples
    --------
    >>> import gradscope as gs
    >>> a = gs.ones(2, 2)
    >>> with gs.autocast("cpu", dtype=gs.float16):
    ...     (a @ a).dtype, gs.nn.functional.mse_loss(a @ a, a).dtype
    (gradscope.float16, gradscope.float32)
    """

    def __init__(
        self, device_type: str, dtype: Any = None, enabled: bool = True, cache_enabled: bool | None = None
    ) -> None:
        _check_device_type(device_type)
        if not is_autocast_available(device_type):
            raise RuntimeError(
                f"User specified an unsupported autocast device_type '{device_type}'\nWrite it without an index."
            )
        self.device = device_type
        self._cache_enabled = settings.cache_enabled if cache_enabled is None else cache_enabled
        self._enabled = bool(enabled) and _is_there(device_type)
        self.fast_dtype = self._chosen(dtype)
        self._before: list[tuple[bool, Any, bool]] = []

    def _chosen(self, dtype: Any) -> Any:
        """Return the lower precision; without one that fits, autocast is off, and there is a warning."""
        if dtype is None:
            return settings.dtype_of(self.device)
        chosen = dtypes.to_dtype(dtype)
        if self._enabled and chosen is dtypes.bfloat16 and self.device != "cpu":
            raise RuntimeError(
                "Current CUDA Device does not support bfloat16. Please switch dtype to float16.\n"
                "gradscope has bfloat16 on the CPU only."
            )
        if self._enabled and chosen not in (dtypes.bfloat16, dtypes.float16):
            name = self.device.upper()
            warn(
                f"In {name} autocast, but the target dtype is not supported. Disabling autocast.\n"
                f"{name} Autocast only supports dtypes of {dtypes.bfloat16}, {dtypes.float16} currently.",
            )
            self._enabled = False
        return chosen

    def __enter__(self) -> autocast:
        kind = self.device
        self._before.append((settings.is_enabled(kind), settings.dtype_of(kind), settings.cache_enabled))
        settings.nesting += 1
        self._set(self._enabled, self.fast_dtype, self._cache_enabled)
        return self

    def __exit__(self, *exc_info: object) -> None:
        settings.leave()
        self._set(*self._before.pop())

    def _set(self, enabled: bool, dtype: Any, cache_enabled: bool) -> None:
        settings.dtypes[self.device] = dtype
        settings.set_enabled(self.device, enabled)
        settings.cache_enabled = cache_enabled

    def __call__(self, func: Callable[..., Any]) -> Callable[..., Any]:
        """Decorate a function: it runs inside."""
        if not callable(func):
            raise TypeError(
                f"autocast()(func) requires a callable, but got {type(func).__name__}. Did you mean to use autocast as "
                "a context manager? For example:\n    with gradscope.autocast(device_type=...):\n"
                "        output = model(input)"
            )

        @functools.wraps(func)
        def decorated(*args: Any, **kwargs: Any) -> Any:
            with self:
                return func(*args, **kwargs)

        return decorated


def _check_device_type(device_type: Any) -> None:
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`\nWrite 'cpu' or 'cuda'.")


def _is_there(device_type: str) -> bool:
    if device_type != "cuda" or devices.cuda_is_available():
        return True
    warn("CUDA is not available. Disabling autocast.")
    return False


# --- Functions --------------------------------------------------------------------------------------------------------


def _cast(value: Any, device_type: str, dtype: Any) -> Any:
    """Return tensors in `dtype`, in containers too; other devices, float64 and what is no float stay as they are."""
    if isinstance(value, Tensor):
        fits = value.is_floating_point() and value.device.type == device_type and value.dtype is not dtypes.float64
        return value.to(dtype) if fits else value
    if isinstance(value, (str, bytes, numpy.ndarray)):
        return value
    if isinstance(value, Mapping):
        return {_cast(k, device_type, dtype): _cast(v, device_type, dtype) for k, v in value.items()}
    if isinstance(value, Iterable):
        items = (_cast(item, device_type, dtype) for item in value)
        return type(value)(items) if isinstance(value, (list, tuple)) else items
    return value


def custom_fwd(fwd: Callable[..., Any] | None = None, *, device_type: str, cast_inputs: Any = None) -> Any:
    """Decorate the forward of a :class:`gradscope.autograd.Function` that is called under autocast.

    Parameters
    ----------
    cast_inputs : dtype, optional
        Under autocast, cast the tensors of floating point among the arguments to it, and switch autocast off in the
        forward. Without it the forward runs as its surroundings do.

    See Also
    --------
    custom_bwd : for the backward of the same Function.

    Examples
    --------
    >>> import gradscope as gs
    >>> class Cube(gs.autograd.Function):
    ...     @staticmethod
    ...     @gs.amp.custom_fwd(device_type="cpu", cast_inputs=gs.float32)
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x**3
    ...
    ...     @staticmethod
    ...     @gs.amp.custom_bwd(device_type="cpu")
    ...     def backward(ctx, grad):
    ...         (x,) = ctx.saved_tensors
    ...         return 3 * x**2 * grad
    >>> x = gs.tensor([0.1], dtype=gs.bfloat16, requires_grad=True)
    >>> with gs.autocast("cpu"):
    ...     y = Cube.apply(x)
    >>> y.dtype
    gradscope.float32
    """
    _check_device_type(device_type)
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def decorated(*args: Any, **kwargs: Any) -> Any:
        ctx, enabled = args[0], is_autocast_enabled(device_type)
        ctx._dtype = settings.dtype_of(device_type)
        ctx._fwd_used_autocast = enabled and cast_inputs is None
        if cast_inputs is None or not enabled:
            return fwd(*args, **kwargs)
        with autocast(device_type, enabled=False):
            rest = _cast(args[1:], device_type, cast_inputs)
            return fwd(ctx, *rest, **_cast(kwargs, device_type, cast_inputs))

    return decorated


def custom_bwd(bwd: Callable[..., Any] | None = None, *, device_type: str) -> Any:
    """Decorate the backward of a Function whose forward has :func:`custom_fwd`: autocast is as it was there.

    See Also
    --------
    custom_fwd : for the forward of the same Function.

    Examples
    --------
    >>> import gradscope as gs
    >>> class Product(gs.autograd.Function):
    ...     @staticmethod
    ...     @gs.amp.custom_fwd(device_type="cpu")
    ...     def forward(ctx, a, b):
    ...         ctx.save_for_backward(a, b)
    ...         return a @ b
    ...
    ...     @staticmethod
    ...     @gs.amp.custom_bwd(device_type="cpu")
    ...     def backward(ctx, grad):
    ...         a, b = ctx.saved_tensors
    ...         print(gs.is_autocast_enabled("cpu"))
    ...         return grad @ b.T, a.T @ grad
    >>> x = gs.ones(2, 2, requires_grad=True)
    >>> with gs.autocast("cpu"):
    ...     y = Product.apply(x, x)
    >>> y.sum().backward()
    True
    """
    _check_device_type(device_type)
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def decorated(*args: Any, **kwargs: Any) -> Any:
        ctx = args[0]
        with autocast(device_type, dtype=ctx._dtype, enabled=ctx._fwd_used_autocast):
            return bwd(*args, **kwargs)

    return decorated
