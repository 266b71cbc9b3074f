"""Tables and pictures for a notebook's cell are well-formed, and take no text for markup."""

from __future__ import annotations

from base64 import b64decode
from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from gradscope.inspect.output.markup import element
from gradscope.inspect.output.notebook_html import embedded_picture, histogram, note, page, table
from gradscope.inspect.output.terminal_text import printable

TEXTS = st.text(max_size=20)


@given(st.lists(st.tuples(TEXTS, TEXTS), max_size=4), TEXTS)
def test_a_table_shows_what_it_is_given(rows, caption):
    made = ElementTree.fromstring(page(table(("name", "#count"), rows, caption=caption)))
    assert [cell.text or "" for cell in made.iter("td")] == [printable(cell) for row in rows for cell in row]
    assert [cell.text for cell in made.iter("th")] == ["name", "count"]
    assert [title.text for title in made.iter("caption")] == [printable(caption)] * bool(caption)


def test_numbers_stand_to_the_right():
    made = ElementTree.fromstring(table(("name", "#count"), [("a", "1")]))
    assert ["right" in cell.get("style", "") for cell in made.iter("td")] == [False, True]


def test_a_cell_may_be_markup():
    assert "<td" in table(("",), [(element("b", None, "x"),)])
    assert "<b>x</b>" in table(("",), [(element("b", None, "x"),)])


@given(st.dictionaries(st.integers(-149, 127), st.integers(1, 10**9), min_size=1, max_size=12))
def test_a_histogram_has_a_bar_for_each_power(bins):
    drawn = ElementTree.fromstring(histogram(sorted(bins.items())))
    bars = [(float(bar.attrib["x"]), float(bar.attrib["height"])) for bar in drawn]
    assert len(bars) == len(bins)
    assert [x for x, _ in bars] == sorted(x for x, _ in bars)
    assert all(0 <= x < float(drawn.attrib["width"]) for x, _ in bars)
    assert max(height for _, height in bars) == float(drawn.attrib["height"])


def test_nothing_has_no_histogram():
    assert histogram(()) == ""


def test_a_picture_stands_apart_from_the_page():
    made = ElementTree.fromstring(embedded_picture(b"<svg><script/></svg>", "a <plot>"))
    kind, _, data = made.attrib["src"].partition(",")
    assert (kind, b64decode(data)) == ("data:image/svg+xml;base64", b"<svg><script/></svg>")
    assert made.attrib["alt"] == "a <plot>"


def test_a_note_keeps_its_lines():
    assert note("a\n  b & c") == '<pre style="white-space: pre-wrap">a\n  b &amp; c</pre>'
