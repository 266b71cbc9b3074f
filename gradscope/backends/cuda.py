"""CUDA, which is there where CuPy is, and switches of libraries that it is not used with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

from ..cuda import is_available as _cuda_is_available
from ..runtime import settings
from ..runtime.settings import attention_kernels

__all__ = [
    *("cudnn_sdp_enabled", "enable_cudnn_sdp", "enable_flash_sdp", "enable_math_sdp", "enable_mem_efficient_sdp"),
    *("flash_sdp_enabled", "is_built", "math_sdp_enabled", "matmul", "mem_efficient_sdp_enabled"),
    *("preferred_linalg_library", "sdp_kernel"),
]

matmul = SimpleNamespace(
    allow_tf32=False,
    allow_fp16_reduced_precision_reduction=True,
    allow_bf16_reduced_precision_reduction=True,
    allow_fp16_accumulation=False,
    fp32_precision="none",
)


def is_built() -> bool:
    """Return whether CuPy finds a device."""
    return _cuda_is_available()


def preferred_linalg_library(backend: str | None = None) -> str:
    """Return which library computes matrices' decompositions, whatever is preferred: CuPy's own choice."""
    return "default"


def flash_sdp_enabled() -> bool:
    """Return what :func:`enable_flash_sdp` has set."""
    return attention_kernels["flash"]


def enable_flash_sdp(enabled: bool) -> None:
    """Keep whether flash attention may be taken."""
    attention_kernels["flash"] = bool(enabled)


def mem_efficient_sdp_enabled() -> bool:
    """Return what :func:`enable_mem_efficient_sdp` has set."""
    return attention_kernels["mem_efficient"]


def enable_mem_efficient_sdp(enabled: bool) -> None:
    """Keep whether memory-efficient attention may be taken."""
    attention_kernels["mem_efficient"] = bool(enabled)


def math_sdp_enabled() -> bool:
    """Return what :func:`enable_math_sdp` has set."""
    return attention_kernels["math"]


def enable_math_sdp(enabled: bool) -> None:
    """Keep whether attention by its formula may be taken."""
    attention_kernels["math"] = bool(enabled)


def cudnn_sdp_enabled() -> bool:
    """Return what :func:`enable_cudnn_sdp` has set."""
    return attention_kernels["cudnn"]


def enable_cudnn_sdp(enabled: bool) -> None:
    """Keep whether cuDNN's attention may be taken."""
    attention_kernels["cudnn"] = bool(enabled)


@contextmanager
def sdp_kernel(
    enable_flash: bool = True, enable_math: bool = True, enable_mem_efficient: bool = True, enable_cudnn: bool = True
) -> Iterator[None]:
    """Say which kernels of attention may be taken inside of a block; the older form of ``nn.attention.sdpa_kernel``."""
    with settings.attention(
        flash=enable_flash, math=enable_math, mem_efficient=enable_mem_efficient, cudnn=enable_cudnn
    ):
        yield
