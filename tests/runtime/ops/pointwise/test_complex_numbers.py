"""Complex numbers made of real ones: what has no complex numbers is refused."""

from __future__ import annotations

from typing import Any

import pytest

import gradscope as gs
from tests.runtime.ops.operator_cases import assert_same_refusal


@pytest.mark.parametrize("kind", [gs.float16, gs.bfloat16, gs.int64])
def test_a_view_of_what_has_no_complex_numbers_is_refused(kind: Any) -> None:
    with pytest.raises(RuntimeError, match=r"^view_as_complex is only supported for float and double tensors, but got"):
        gs.view_as_complex(gs.ones(3, 2, dtype=kind))


@pytest.mark.torch
@pytest.mark.parametrize("kind", ["float16", "bfloat16", "int64"])
def test_magnitudes_and_angles_without_complex_numbers_are_refused(torch: Any, kind: str) -> None:
    assert_same_refusal(torch, lambda m: m.polar(*[m.ones(3, dtype=getattr(m, kind))] * 2))
