"""Switches of cuDNN, which is not used."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from .switches import is_available, put, version

__all__ = [
    "allow_tf32",
    "benchmark",
    "benchmark_limit",
    "deterministic",
    "enabled",
    "flags",
    "fp32_precision",
    "is_acceptable",
    "is_available",
    "version",
]

enabled: bool = True
benchmark: bool = False
benchmark_limit: int | None = 10
deterministic: bool = False
allow_tf32: bool = True
fp32_precision: str = "none"


def is_acceptable(tensor: Any) -> bool:
    """Return whether the library would take a tensor: False."""
    return False


def flags(
    enabled: bool = False,
    benchmark: bool = False,
    benchmark_limit: int | None = 10,
    deterministic: bool = False,
    allow_tf32: bool = True,
    fp32_precision: str = "none",
) -> AbstractContextManager[None]:
    """Set all switches for the length of a block; what is not named is set to its default, as in PyTorch."""
    return put(
        __name__,
        enabled=enabled,
        benchmark=benchmark,
        benchmark_limit=benchmark_limit,
        deterministic=deterministic,
        allow_tf32=allow_tf32,
        fp32_precision=fp32_precision,
    )
