"""Examples of operators, made from their samples, which ``help()`` and the API reference show.

They stand in ``examples.txt``, which :mod:`~.stubs` writes. The example of an operator is that of its samples which
takes the fewest characters; where all are long, the tensors hold ones and the example shows the shape of the result.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from math import prod
from typing import TYPE_CHECKING

import numpy

from ...memory import dtype as dtypes
from ...tensor.creation import from_numpy
from ...tensor.tensor import Tensor
from ..execution.codegen.docstrings import HEADING
from .annotations import Argument, Cases

if TYPE_CHECKING:
    from .annotations import DType
    from .registry import Operator

__all__ = ["render"]

_LINE = 110  # characters
_LINES = 6
_GOLDEN = 0.6180339887498949
_MODULE = "gs."
_NUMBER = re.compile(r"tensor\([^\[]")  # a tensor without dimensions is no good example of one


def render(functions: dict[str, Operator]) -> str:
    """Return the text of the file.

    Parameters
    ----------
    functions : dict of str to Operator
        From what is called in an example (``gs.mul``, or ``.expand`` for a method) to the operator.
    """
    seen: dict[str, str] = {}
    for call, op in functions.items():
        if op.name not in seen and op.samples is not None and (example := _example(call, op)):
            seen[op.name] = example
    return "".join(f"{HEADING}{name}\n{seen[name]}\n" for name in sorted(seen))


class _Maker:
    """``make`` of samples, with numbers that are quick to read.

    Parameters
    ----------
    small : bool
        Whether sizes above 2 become 2.
    """

    finfo = numpy.finfo("float32")

    def __init__(self, *, small: bool) -> None:
        self._small = small
        self._made = 0

    def __call__(self, *shape: int, low: float = -2.0, high: float = 2.0, dtype: DType = None) -> Tensor:
        sizes = tuple(min(size, 2) for size in shape) if self._small else shape
        count = prod(sizes)
        # The multiples of the golden ratio leave no two rows of a matrix parallel.
        values = low + (high - low) * ((0.5 + numpy.arange(self._made, self._made + count) * _GOLDEN) % 1.0)
        self._made += count
        kind = numpy.dtype(getattr(dtype, "numpy", dtype) or "float32")
        if kind.kind == "f":
            return from_numpy(numpy.round(values, 1).reshape(sizes).astype("float32"))
        if kind.kind == "c":
            values = numpy.round(values, 1)
            return from_numpy((values + 1j * values[::-1]).reshape(sizes).astype("complex64"))
        return from_numpy(numpy.floor(values).reshape(sizes).astype(kind))

    def of(self, values: Argument, dtype: DType = None, shape: tuple[int, ...] | None = None) -> Tensor:
        """Return a tensor of given values."""
        kind = numpy.dtype(getattr(dtype, "numpy", dtype) or "float32")
        array = numpy.array(values, dtype="float32" if kind.kind == "f" else kind)
        return from_numpy(array if shape is None else array.reshape(shape))


def _example(call: str, op: Operator) -> str:
    found = list(_shown(call, op, _literal)) or list(_shown(call, op, _ones))
    return min(found, key=lambda text: (_NUMBER.search(text) is not None, len(text)), default="")


def _shown(call: str, op: Operator, tensor: Callable[[Tensor], str]) -> Iterator[str]:
    for small in (True, False):
        for args, kwargs in _samples(op, small=small):
            source = _call(call, args, kwargs, tensor)
            text = _run(source, shape=tensor is _ones) if source and len(source) <= _LINE else ""
            if text and max(map(len, text.split("\n"))) <= _LINE and text.count("\n") <= _LINES:
                yield text


def _samples(op: Operator, *, small: bool) -> Cases:
    if op.samples is None:
        return []
    try:
        found: Cases = op.samples(_Maker(small=small))
    except Exception:  # a sample may need the sizes that it asks for
        return []
    return found


def _call(call: str, args: tuple[Argument, ...], kwargs: dict[str, Argument], tensor: Callable[[Tensor], str]) -> str:
    """Return the source of a call; empty where an argument cannot be written, or no tensor has a dimension."""
    given = [*args, *kwargs.values()]
    if not any(isinstance(value, Tensor) and value._array.ndim and value._array.size for value in _flat(given)):
        return ""
    texts = [_text(value, tensor) for value in args]
    named = [f"{name}={_text(value, tensor)}" for name, value in kwargs.items()]
    if not all(texts) or any(text.endswith("=") for text in named):
        return ""
    if call.startswith("."):
        return f"{texts[0]}{call}({', '.join([*texts[1:], *named])})"
    return f"{call}({', '.join([*texts, *named])})"


def _flat(values: Argument) -> Iterator[Argument]:
    for value in values:
        if isinstance(value, (list, tuple)):
            yield from _flat(value)
        else:
            yield value


def _text(value: Argument, tensor: Callable[[Tensor], str]) -> str:
    if isinstance(value, Tensor):
        return tensor(value)
    if isinstance(value, (list, tuple)):
        texts = [_text(item, tensor) for item in value]
        brackets = "[]" if isinstance(value, list) else "()"
        comma = "," if len(texts) == 1 and brackets == "()" else ""
        return f"{brackets[0]}{', '.join(texts)}{comma}{brackets[1]}" if all(texts) else ""
    if isinstance(value, dtypes.dtype):
        return f"{_MODULE}{value.name}"
    return repr(value) if value is None or isinstance(value, (bool, int, float, complex, str)) else ""


def _literal(value: Tensor) -> str:
    """Return the source of a tensor with its elements."""
    if not value._array.size:
        return ""
    kind = value.dtype.name
    numbers = numpy.round(value._array.astype("float64"), 4) if kind == "float32" else value._array
    text = f"{_MODULE}tensor({numbers.tolist()}"
    return text + (")" if kind in ("float32", "int64", "bool", "complex64") else f", dtype={_MODULE}{kind})")


def _ones(value: Tensor) -> str:
    """Return the source of a tensor of ones in its place; integers, which may be indices, stay what they are."""
    kind = value.dtype.name
    sizes = ", ".join(map(str, value._array.shape))
    if kind not in ("float32", "complex64") or not value._array.size:
        return _literal(value)
    return f"{_MODULE}ones({sizes or '()'}" + (")" if kind == "float32" else f", dtype={_MODULE}{kind})")


def _run(source: str, *, shape: bool) -> str:
    """Return a call and what it prints, as a doctest; empty where it raises."""
    import gradscope  # the package that this module is a part of: complete by now

    try:
        with numpy.errstate(all="ignore"):
            found = eval(source, {"gs": gradscope})
    except Exception:  # a call that does not fit the sample's smaller sizes is no example
        return ""
    if shape:
        several = isinstance(found, (list, tuple))
        source = f"[t.shape for t in {source}]" if several else f"{source}.shape"
        found = [t.shape for t in found] if several else found.shape
    result = repr(found)
    return f">>> {source}\n" + "\n".join(line or "<BLANKLINE>" for line in result.split("\n"))
