"""Switches of oneDNN, which is not used."""

from __future__ import annotations

from contextlib import AbstractContextManager

from .switches import is_available, put

__all__ = ["allow_tf32", "deterministic", "enabled", "flags", "fp32_precision", "is_available"]

enabled: bool = True
deterministic: bool = False
allow_tf32: bool = True
fp32_precision: str = "none"


def flags(
    enabled: bool = False, deterministic: bool = False, allow_tf32: bool = True, fp32_precision: str = "none"
) -> AbstractContextManager[None]:
    """Set all switches for the length of a block; what is not named is set to its default, as in PyTorch."""
    return put(
        __name__,
        enabled=enabled,
        deterministic=deterministic,
        allow_tf32=allow_tf32,
        fp32_precision=fp32_precision,
    )
