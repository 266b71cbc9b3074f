"""Nobody's text is markup, and a page obeys nothing but its own style and script."""

from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser
from xml.etree import ElementTree

import jinja2
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gradscope as gs
import gradscope.inspect as gi
from gradscope.inspect.graphs.formats.html import to_html
from gradscope.inspect.output.markup import Markup, element, render
from gradscope.inspect.output.terminal_text import printable
from gradscope.inspect.recording.reports.html_report import html_report
from tests.inspect.recording.programs import recorded


@given(st.text(st.characters(), max_size=20), st.text(st.characters(), max_size=20))
def test_an_element_has_the_text_that_it_was_given(text, value):
    made = ElementTree.fromstring(element("a", {"b": value}, text, element("i", None, text)))
    # XML reads line ends and tabs of an attribute as blanks.
    assert made.get("b") == printable(value).replace("\n", " ").replace("\t", " ")
    assert (made.text or "", made[0].text or "") == (printable(text),) * 2


def test_what_a_template_is_not_given_is_an_error():
    with pytest.raises(jinja2.UndefinedError):
        render("recording/reports/report.html", title="")


class _Policy(HTMLParser):
    """Reads a page's policy, and what stands in its styles and scripts."""

    def __init__(self, page):
        super().__init__()
        self.policy, self.inside, self._open = "", {"style": [], "script": []}, None
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        assert "style" not in found
        assert not [name for name in found if name.startswith("on")]
        if found.get("http-equiv") == "Content-Security-Policy":
            self.policy = found["content"]
        self._open = tag if tag in self.inside and found.get("type") != "application/json" else None

    def handle_data(self, data):
        if self._open:
            self.inside[self._open].append(data)
            self._open = None


def test_a_pages_policy_names_its_own_style_and_script_alone(tmp_path):
    graph = gi.graph(gs.ones(2, requires_grad=True).exp())
    with recorded(tmp_path / "run.gscope", steps=1) as recording:
        pages = to_html(graph), html_report(recording)
    for page, scripts in zip(pages, (1, 0)):
        found = _Policy(page)
        rules = dict(rule.split(" ", 1) for rule in found.policy.split("; "))
        assert rules["default-src"] == "'none'"
        assert len(found.inside["script"]) == scripts
        for kind, texts in found.inside.items():
            hashes = [f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'" for text in texts]
            assert rules.get(f"{kind}-src", "") == " ".join(hashes)


def test_markup_stays_markup():
    assert element("a", None, Markup("<b/>")) == "<a><b/></a>"
