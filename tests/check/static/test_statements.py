import ast

import pytest

from gradscope.check.static.statements import SourceText, attribute_call, mentions, stored_names

SOURCE = """\
import torch
import torch.nn.functional as F
import other.nn as onn
from torch import nn as layers, ones
from gradscope.nn import Linear
from .torch import fake

def plain():
    for x in torch.ones(2):
        first = 1
    if first:
        second = 2
    elif second:
        third = 3
    with torch.no_grad():
        covered = 4
    try:
        tried = 5
    except ValueError:
        handled = 6

@torch.no_grad()
def decorated():
    inside = 7

class Layer:
    def forward(self):
        method = 8
"""


@pytest.fixture
def source():
    return SourceText("net.py", SOURCE)


def names_in(block):
    return [
        name for statement in block.statements if isinstance(statement, ast.Assign) for name in stored_names(statement)
    ]


def test_blocks_know_what_is_around_them(source):
    blocks = {names[0]: block for block in source.blocks for names in [names_in(block)] if names}
    assert {name: (block.function, block.plain, block.loop is not None) for name, block in blocks.items()} == {
        "first": ("plain", True, True),
        "second": ("plain", True, False),
        "third": ("plain", True, False),
        "covered": ("plain", False, False),
        "tried": ("plain", False, False),
        "handled": ("plain", False, False),
        "inside": ("decorated", False, False),
        "method": ("forward", True, False),
    }


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("torch.nn.Linear", "nn.Linear"),
        ("F.relu", "nn.functional.relu"),
        ("layers.ReLU", "nn.ReLU"),
        ("ones", "ones"),
        ("Linear", "nn.Linear"),
        ("gs.no_grad", "no_grad"),
        ("onn.ReLU", ""),
        ("fake", ""),
        ("unknown.ones", ""),
        ("torch.ones()", ""),
    ],
)
def test_names_of_the_library_are_known_by_their_imports(source, written, name):
    assert source.library_name(ast.parse(written, mode="eval").body) == name


def test_a_name_that_is_something_else_now_is_not_the_librarys():
    source = SourceText("net.py", "import numpy as torch\ntorch.ones(3)")
    assert source.library_name(source.blocks[0].statements[1].value.func) == ""


def test_a_place_has_the_text_of_its_line(source):
    block = source.blocks[1]
    place = source.at(block.statements[0], block)
    assert (place.filename, place.lineno, place.function, place.source) == (
        "net.py", 9, "plain", "for x in torch.ones(2):",
    )  # fmt: skip


def test_what_is_no_python_is_refused():
    with pytest.raises(SyntaxError):
        SourceText("net.py", "def")


def test_parts_of_a_statement():
    statement = ast.parse("w.grad, (a, *b) = f(lr=1).step(x), 2").body[0]
    assert list(stored_names(statement)) == ["a", "b"]
    assert [mentions(statement, word) for word in ("grad", "lr", "step", "x", "y")] == [True, True, True, True, False]
    assert attribute_call(statement.value.elts[0], "step", "other") is not None
    assert attribute_call(statement.value.elts[0], "other") is None
