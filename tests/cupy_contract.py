"""What CuPy says of the calls that the strict stand-in is given: whether it knows names, signatures and dtypes.

Nothing is computed, so CuPy is enough and no GPU is needed. Without CuPy nothing is checked.
"""

from __future__ import annotations

import functools
import inspect
import re
from pathlib import Path
from typing import Any

import numpy

try:
    import cupy
    import cupyx.scipy.special
except ImportError:
    cupy = None

__all__ = ["INSTALLED", "check_function", "check_linalg", "check_method", "check_special", "check_ufunc", "lacks"]

INSTALLED = cupy is not None

_UFUNC_KEYWORDS = frozenset(["casting", "dtype", "out"])


def lacks(path: str) -> bool:
    """Whether CuPy has nothing of this name, which may lead through modules."""
    if not INSTALLED:
        return False
    try:
        _find(path)
    except AttributeError:
        return True
    return False


def check_function(path: str, args: Any, kwargs: Any) -> None:
    """Raise if the function does not take these arguments."""
    if INSTALLED:
        _bind(f"cupy.{path}", _signature(path), args, kwargs)


def check_method(name: str, args: Any, kwargs: Any) -> None:
    """Raise if the method of arrays does not take these arguments."""
    if INSTALLED:
        _bind(f"cupy.ndarray.{name}", _signature(f"ndarray.{name}"), (None, *args), kwargs)


def check_ufunc(name: str, args: Any, kwargs: Any) -> None:
    """Raise if the ufunc has no loop for the dtypes of the arguments, or does not know a keyword."""
    if not INSTALLED:
        return
    unknown = kwargs.keys() - _UFUNC_KEYWORDS
    if unknown:
        raise NotImplementedError(f"cupy.{name} has no {', '.join(sorted(unknown))}= (CuPy {cupy.__version__})")
    loops = getattr(_find(name), "types", None)  # what works on whole matrices has none
    kinds = [getattr(arg, "dtype", None) for arg in args]
    loops = None if loops is None else [loop for loop in loops if "E" not in loop]  # bfloat16, no letter to NumPy
    if loops is not None and not any(_fits(kinds, loop.partition("->")[0]) for loop in loops):
        found = ", ".join(str(kind or type(arg).__name__) for kind, arg in zip(kinds, args, strict=True))
        raise NotImplementedError(f"cupy.{name} has no loop for {found}: {', '.join(loops)} (CuPy {cupy.__version__})")


def check_special(name: str) -> None:
    """Raise if there is no such special function."""
    if INSTALLED and not hasattr(cupyx.scipy.special, name):
        raise NotImplementedError(f"cupyx.scipy.special.{name} does not exist (CuPy {cupy.__version__})")


def check_linalg(name: str) -> None:
    """Raise if there is no such function of linear algebra: its package loads with CUDA's libraries only."""
    if INSTALLED and not _defined(name):
        raise NotImplementedError(f"cupyx.scipy.linalg.{name} does not exist (CuPy {cupy.__version__})")


@functools.cache
def _defined(name: str) -> bool:
    folder = Path(cupyx.__file__).parent / "scipy" / "linalg"
    return any(f"\ndef {name}(" in path.read_text(encoding="utf-8") for path in folder.glob("*.py"))


def _fits(kinds: list[Any], loop: str) -> bool:
    # A Python number takes the dtype of the arrays beside it. CuPy has dtypes that NumPy has not: E is bfloat16.
    return all(
        kind is None or (char != "E" and numpy.can_cast(kind, char)) for kind, char in zip(kinds, loop, strict=False)
    )


def _find(path: str) -> Any:
    return functools.reduce(getattr, path.split("."), cupy)


@functools.cache
def _signature(path: str) -> inspect.Signature | None:
    """Return the signature of something of CuPy; None if it tells none."""
    found = _find(path)
    try:
        return inspect.signature(found)
    except (TypeError, ValueError):
        return _documented_signature(found.__doc__ or "")


def _documented_signature(text: str) -> inspect.Signature | None:
    """Return the signature that compiled code has in its docstring's first line, with C types and escaped stars."""
    match = re.match(r"[\w.]+(\(.*\))", text)
    if match is None:
        return None
    parameters = match[1].replace("Py_ssize_t ", "").replace("\\*", "*")
    scope: dict[str, Any] = {}
    exec(f"def function{parameters}: ...", scope)
    return inspect.signature(scope["function"])


def _bind(name: str, signature: inspect.Signature | None, args: Any, kwargs: Any) -> None:
    if signature is None:
        return
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        raise NotImplementedError(f"{name}{signature}: {error} (CuPy {cupy.__version__})") from None
