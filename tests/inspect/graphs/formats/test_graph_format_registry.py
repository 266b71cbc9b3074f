"""Each format registers itself, once."""

import pytest

from gradscope.inspect.graphs.formats.graph_files import ENDINGS, FORMATS, PICTURES
from gradscope.inspect.graphs.formats.graph_format_registry import formats, graph_format


def test_the_order_and_the_endings_are_what_they_were():
    assert FORMATS == ("svg", "dot", "mermaid", "graphml", "json", "html", "text")
    assert PICTURES == ("svg", "dot", "mermaid")
    assert {ending: name for ending, name in ENDINGS.items() if ending != f".{name}"} == {
        ".gv": "dot",
        ".mmd": "mermaid",
        ".htm": "html",
        ".txt": "text",
    }


def test_a_name_is_given_once():
    with pytest.raises(ValueError, match=r"there is a format 'svg' already, gradscope\.inspect\.graphs\.formats\.svg"):
        graph_format("svg")(str)
    assert formats()["svg"].write is not str
