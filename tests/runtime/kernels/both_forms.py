"""Runs of one function with the kernels that Numba compiled, and with NumPy's forms."""

from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

import pytest

from gradscope.runtime.kernels import forms, loading

__all__ = ["both", "numpy_alone"]


@contextmanager
def numpy_alone():
    """Inside, no kernel is compiled."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loading, "compiled", lambda family: None)
        patch.setattr(forms, "_loop", lambda name: None)
        yield


def both(family: str, function: Callable[..., Any], *arguments: Any) -> tuple[Any, Any]:
    """Return what a function gives with the compiled kernels of a family, and without any; skip where none compiles."""
    pytest.importorskip("numba", reason="compiles kernels")
    assert loading.compiled(family) is not None, loading._load(family)[1]
    with numpy_alone():
        plain = function(*arguments)
    return function(*arguments), plain
