"""What lower floors reach upwards is filled in once, whole."""

from __future__ import annotations

import pytest

import gradscope as gs
from gradscope.runtime import dispatch
from gradscope.runtime.engine.backward import backward
from gradscope.runtime.tensor.views import edge_of


def test_what_is_filled_in_is_what_stands_above() -> None:
    assert dispatch.tensor_type is gs.Tensor
    assert (dispatch.backward, dispatch.edge_of) == (backward, edge_of)
    assert dispatch.TENSOR_OPERATORS.exp is dispatch.PUBLIC["exp"]


@pytest.mark.parametrize("functions", [(), (backward, edge_of, print)])
def test_a_missing_or_unknown_function_is_refused_and_changes_nothing(functions: tuple) -> None:
    before = dict(vars(dispatch))
    with pytest.raises(ValueError, match="dispatch wants"):
        dispatch.fill(int, functions)
    assert dict(vars(dispatch)) == before


def test_a_derivative_that_names_no_operator_is_told_so() -> None:
    with pytest.raises(AttributeError, match="there is no operator 'expp' for a derivative to use"):
        _ = dispatch.TENSOR_OPERATORS.expp
