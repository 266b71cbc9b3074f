"""A recording as a page."""

import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser

import gradscope as gs
import gradscope.inspect as gi
from gradscope.inspect.recording.reports.html_report import html_report
from tests.inspect.recording.programs import spoiled


class Page(HTMLParser):
    """Checks that what is opened is closed, and that nothing is fetched."""

    VOID = {"meta", "br", "rect"}

    def __init__(self):
        super().__init__()
        self.open, self.text = [], []

    def handle_starttag(self, tag, attrs):
        assert not {"src", "href"} & {name for name, _ in attrs}
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in self.VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def parsed(page):
    parser = Page()
    parser.feed(page)
    assert parser.open == []
    return " ".join(parser.text)


def test_the_report_of_a_healthy_run(recording):
    page = html_report(recording, title="My run")
    text = parsed(page)
    assert "My run: its gradients" in text
    assert "2.weight" in text
    svg = page[page.index("<svg") : page.index("</svg>") + 6]
    cells = [e for e in ElementTree.fromstring(svg).iter() if e.tag.endswith("rect") and len(e)]
    assert len(cells) == 4 * 3
    assert cells[0][0].text.startswith(("0.", "2."))


def test_the_report_of_a_run_that_went_wrong(tmp_path):
    text = parsed(html_report(spoiled(tmp_path / "run.gscope")))
    assert "<script> & co: its gradients" in text
    assert "LogBackward0" in text
    assert "produced them" in text
    assert "3 Inf" in text
    assert "ExpBackward0" in text
    assert "now <b>" in text
    assert "1" in text


def test_the_report_of_many_iterations_and_of_none(tmp_path):
    x = gs.ones(2, requires_grad=True)
    with gi.record(tmp_path / "many", "summaries"):
        for _ in range(250):
            (x * 2).sum().backward()
    assert "iterations 1 to 3" in html_report(gi.open_recording(tmp_path / "many"))
    with gi.record(tmp_path / "none"):
        pass
    assert "No gradient was recorded" in parsed(html_report(gi.open_recording(tmp_path / "none")))
