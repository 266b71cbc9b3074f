"""Nothing that a terminal would obey comes to it from files and programs."""

import ast
import io
import json
from pathlib import Path
from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

import gradscope
from gradscope.inspect.output.terminal_text import json_text, one_line, printable, say

CONTROLS = {chr(n) for n in (*range(32), *range(0x7F, 0xA0))} - {"\n", "\t"}
TURNS = set("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
ANY_TEXT = st.text(st.characters(), max_size=30)  # lone surrogates too


@given(ANY_TEXT)
def test_nothing_printable_controls_a_terminal(text):
    shown = printable(text)
    assert not set(shown) & (CONTROLS | TURNS)
    shown.encode()
    assert printable(shown) == shown
    assert "\n" not in one_line(text)
    ElementTree.fromstring(f"<a>{shown.replace('&', '&amp;').replace('<', '&lt;')}</a>")


def test_text_in_any_language_stays_as_it_is():
    for text in ("Grüße, 世界\u3000!", "क्\u200dष", "👩\u200d💻 a\u00a0b", "line\n\ttab"):
        assert printable(text) == text


def test_what_is_said_is_printable():
    stream = io.StringIO()
    say("\x1b]0;owned\x07\x9b2J\r", file=stream)
    assert stream.getvalue() == "\\x1b]0;owned\\x07\\x9b2J\\r\n"


class Pieces(io.RawIOBase):
    """A raw stream that keeps what it was given at once."""

    def __init__(self):
        self.pieces = []

    def writable(self):
        return True

    def write(self, data):
        self.pieces.append(bytes(data))
        return len(data)


def test_a_line_and_its_end_are_written_at_once():
    # Another process that writes into the same pipe cannot come in between.
    raw = Pieces()
    say("listening", file=io.TextIOWrapper(raw, write_through=True))
    assert [piece for piece in raw.pieces if piece] == [b"listening\n"]


@given(ANY_TEXT)
def test_json_is_printable_and_says_the_same(text):
    made = json_text({"a": text})
    assert printable(made) == made
    assert json.loads(made) == {"a": text}


PRINTS_OTHERS = {
    "inspect/output/terminal_text.py": "the one place",
    "inspect/debuggee/streams.py": "what the program itself prints",
    "inspect/debuggee/exits.py": "a traceback of the program, as Python prints it",
    "cli/diff.py": "a table of Rich's, whose cells are printable",
}


def test_whatever_the_tool_prints_goes_through_say():
    root = Path(gradscope.__file__).parent
    found = set()
    for path in (path for room in ("cli", "check", "inspect") for path in (root / room).rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(source)) if "print(" in source else ():
            called = node.func if isinstance(node, ast.Call) else None
            if (isinstance(called, ast.Name) and called.id == "print") or (
                isinstance(called, ast.Attribute) and called.attr == "print"
            ):
                found.add(path.relative_to(root).as_posix())
    assert found == set(PRINTS_OTHERS)
