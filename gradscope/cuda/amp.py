"""The older names of :mod:`gradscope.amp` for CUDA; each says in a warning what to write instead."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .. import amp
from ..runtime.memory import dtype as dtypes
from ..runtime.user_warnings import warn

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]


def _warn(name: str, instead: str) -> None:
    warn(f"`gradscope.cuda.amp.{name}` is deprecated. Please use `gradscope.amp.{instead}` instead.", FutureWarning)


class autocast(amp.autocast):  # noqa: N801 - PyTorch's name
    """``gradscope.amp.autocast("cuda", ...)``."""

    def __init__(self, enabled: bool = True, dtype: Any = dtypes.float16, cache_enabled: bool = True) -> None:
        _warn("autocast(args...)", "autocast('cuda', args...)")
        super().__init__("cuda", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)


class GradScaler(amp.GradScaler):
    """``gradscope.amp.GradScaler("cuda", ...)``."""

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        _warn("GradScaler(args...)", "GradScaler('cuda', args...)")
        super().__init__("cuda", init_scale, growth_factor, backoff_factor, growth_interval, enabled)


def custom_fwd(fwd: Callable[..., Any] | None = None, *, cast_inputs: Any = None) -> Any:
    """``gradscope.amp.custom_fwd(fwd, device_type="cuda")``."""
    _warn("custom_fwd(args...)", "custom_fwd(args..., device_type='cuda')")
    return functools.partial(amp.custom_fwd, device_type="cuda", cast_inputs=cast_inputs)(fwd)


def custom_bwd(bwd: Callable[..., Any]) -> Any:
    """``gradscope.amp.custom_bwd(bwd, device_type="cuda")``."""
    _warn("custom_bwd(args...)", "custom_bwd(args..., device_type='cuda')")
    return amp.custom_bwd(bwd, device_type="cuda")
