"""Parameters as one vector."""

from __future__ import annotations

import pytest

import gradscope as gs
from gradscope.nn import utils


def test_parameters_as_one_vector() -> None:
    model = gs.nn.Linear(3, 2)
    vector = utils.parameters_to_vector(model.parameters())
    assert vector.shape == (8,)
    assert vector.requires_grad
    utils.vector_to_parameters(gs.arange(8.0), model.parameters())
    assert model.weight.tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    assert model.bias.tolist() == [6.0, 7.0]
    with pytest.raises(TypeError, match=r"expected gradscope\.Tensor"):
        utils.vector_to_parameters([1.0], model.parameters())
