"""Numbers that are written into tensors, or multiply an operand: which a dtype can hold, and as what, as in PyTorch."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy
import pytest

import gradscope as gs
from tests.side_by_side import complaint

DTYPES = ("uint8", "int8", "int64", "bool", "float16", "float32", "float64", "complex64")
NUMBERS = (
    0,
    1,
    2,
    -1,
    -200,
    -256,
    300,
    1.0,
    1.5,
    -1.5,
    True,
    1e6,
    1e60,
    float("inf"),
    float("nan"),
    1 + 0j,
    2 + 0j,
    1j,
)


def _assigned(x: Any, key: Any, value: Any) -> Any:
    x = x.clone()
    x[key] = value
    return x


WRITES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "fill_": lambda lib, x, v: x.clone().fill_(v),
    "full_like": lambda lib, x, v: lib.full_like(x, v),
    "full": lambda lib, x, v: lib.full((2,), v, dtype=x.dtype),
    "new_full": lambda lib, x, v: x.new_full((2,), v),
    "scalar_tensor": lambda lib, x, v: lib.scalar_tensor(v, dtype=x.dtype),
    "masked_fill": lambda lib, x, v: x.masked_fill(lib.tensor([True, False]), v),
    "masked_fill_": lambda lib, x, v: x.clone().masked_fill_(lib.tensor([True, False]), v),
    "index_fill": lambda lib, x, v: x.index_fill(0, lib.tensor([0]), v),
    "scatter": lambda lib, x, v: x.scatter(0, lib.tensor([0]), v),
    "x[0] =": lambda lib, x, v: _assigned(x, 0, v),
    "x[mask] =": lambda lib, x, v: _assigned(x, lib.tensor([True, False]), v),
    "x[[1]] =": lambda lib, x, v: _assigned(x, [1], v),
    "add alpha": lambda lib, x, v: lib.add(x, x, alpha=v),
    "add alpha of a number": lambda lib, x, v: lib.add(x, 1, alpha=v),
    "add_ alpha": lambda lib, x, v: x.clone().add_(x, alpha=v),
    "sub alpha": lambda lib, x, v: lib.sub(x, x, alpha=v),
    "rsub alpha": lambda lib, x, v: lib.rsub(x, 3, alpha=v),
    "index_add alpha": lambda lib, x, v: x.index_add(0, lib.tensor([0]), x[:1], alpha=v),
    "addcmul value": lambda lib, x, v: lib.addcmul(x, x, x, value=v),
    "addmm beta": lambda lib, x, v: lib.addmm(x, x.reshape(1, 2), lib.ones(2, 2).to(x.dtype), beta=v),
    "addmm alpha": lambda lib, x, v: lib.addmm(x, x.reshape(1, 2), lib.ones(2, 2).to(x.dtype), alpha=v),
    "addr beta": lambda lib, x, v: lib.addr(x, x, x, beta=v),
    "clamp min": lambda lib, x, v: x.clamp(min=v),
    "clamp max": lambda lib, x, v: x.clamp(max=v),
    "threshold": lambda lib, x, v: lib.nn.functional.threshold(x, 1, v),
}


def outcome(lib: Any, write: Callable[[Any, Any, Any], Any], kind: str, number: Any) -> Any:
    """Return the values and the dtype, or the class of what was raised."""
    try:
        found = write(lib, lib.tensor([1, 3]).to(getattr(lib, kind)), number)
    except Exception:
        return complaint(lib, lambda lib: write(lib, lib.tensor([1, 3]).to(getattr(lib, kind)), number))[0]
    return found.numpy()


def differs(name: str, kind: str, number: Any) -> str:
    """Return why we do other than PyTorch with a number, or nothing."""
    if isinstance(number, bool) and name.startswith(("addmm", "clamp")):
        return "True is 1 for every dtype"
    if isinstance(number, complex) and name.startswith(("index_fill", "addr", "clamp")):
        return "whether 2 + 0j is a real number"
    if number == 1e60 and kind == "float16" and name.startswith("add"):
        return "it is infinite, as 1e6 is"
    return "of other rounding" if number == 1e60 and name == "addcmul value" else ""


@pytest.mark.torch
@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize("kind", DTYPES)
def test_a_number_is_held_as_pytorch_holds_it(torch: Any, name: str, kind: str) -> None:
    for number in NUMBERS:
        if differs(name, kind, number):
            continue
        with warnings.catch_warnings(), numpy.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            found, expected = (outcome(lib, WRITES[name], kind, number) for lib in (gs, torch))
        where = f"{name} {number!r} of {kind}"
        if isinstance(expected, type):
            assert found is expected, where
            continue
        assert not isinstance(found, type), where
        assert found.dtype == expected.dtype, where
        numpy.testing.assert_array_equal(found, expected, err_msg=where)
