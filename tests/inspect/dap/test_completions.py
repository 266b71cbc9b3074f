from __future__ import annotations

import pytest

from gradscope.inspect.dap.completions import complete


@pytest.mark.parametrize(
    ("text", "words", "length"),
    [
        ("norm > gr", ["grad", "grads"], 2),
        ("los", ["loss"], 3),
        ("loss.requires_grad", ["requires_grad", "requires_grad_"], 13),
        ("grads[0].tolis", ["tolist"], 5),
        ("model.__cla", ["__class__"], 5),
        ("model().", [], 0),
        ("nothing_such_", [], 13),
    ],
)
def test_it_knows_the_names_of_expressions_and_those_of_the_program(program, text, words, length):
    assert complete(program, text) == (words, length)


def test_hidden_names_are_shown_when_they_are_asked_for(program):
    assert not any(word.startswith("_") for word in complete(program, "model.")[0])
