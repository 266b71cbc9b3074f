"""The debugger in a cell: what it sends, and its page in a browser."""

from __future__ import annotations

import queue
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

import gradscope as gs
import gradscope.inspect as gi

pytest.importorskip("anywidget")

from gradscope.notebook import debugger_widget
from gradscope.notebook.debugger_widget import DebuggerWidget

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
SECONDS = 30


class Page:
    """The other end of a widget, without a browser."""

    def __init__(self, widget: DebuggerWidget, came: queue.SimpleQueue[Any]) -> None:
        self.widget = widget
        self.came = came

    def send(self, number: int, verb: str, **fields: Any) -> None:
        """Send a request."""
        self.widget._handle_custom_msg({"type": "request", "id": number, "verb": {"verb": verb, **fields}}, [])

    def ask(self, number: int, verb: str, **fields: Any) -> Any:
        """Send a request, and return the answer."""
        self.send(number, verb, **fields)
        while (message := self.came.get(timeout=SECONDS)).get("id") != number:
            pass
        return message


@pytest.fixture
def model():
    gs.manual_seed(0)
    return gs.nn.Sequential(gs.nn.Linear(2, 3), gs.nn.ReLU(), gs.nn.Linear(3, 1))


@pytest.fixture
def debugger(model):
    with gi.track():
        loss = (model(gs.ones(4, 2)) ** 2).mean()
    session = gi.debug(loss, params=model)
    yield session
    if not session.ended:
        session.abort()


@pytest.fixture
def page(debugger, monkeypatch):
    sent: queue.SimpleQueue[Any] = queue.SimpleQueue()
    monkeypatch.setattr(DebuggerWidget, "send", lambda self, content, buffers=None: sent.put(content))
    widget = DebuggerWidget(debugger)
    yield Page(widget, sent)
    widget.close()


def test_a_page_steps_through_the_backward(debugger, page):
    answer = page.ask(1, "step", n=2)
    assert answer["type"] == "reply"
    assert answer["standing"]["current"] == debugger.current == 2
    records = page.ask(2, "records", start=0, stop=9)["result"]
    assert [record["name"] for record in records][:3] == ["MeanBackward0", "PowBackward0", "AddmmBackward0"]
    assert records[0]["location"]["source"] == "loss = (model(gs.ones(4, 2)) ** 2).mean()"


def test_what_cannot_be_done_is_told(page):
    answer = page.ask(1, "evaluate", expression="nothing")
    assert (answer["type"], answer["error"]) == ("failure", "NameError")


def test_what_the_cells_do_is_told(debugger, page):
    debugger.step()
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        message = page.came.get(timeout=SECONDS)
        if message["type"] == "changed" and message["standing"]["current"] == 1:
            return
    pytest.fail("nobody told of the step")


def test_closing_the_widget_leaves_the_program_where_it_is(debugger, page):
    page.ask(1, "step")
    page.widget.close()
    assert debugger.state.paused
    debugger.cont()
    assert debugger.ended


def test_a_page_without_a_kernel_shows_where_the_debugger_stood(debugger):
    bundle, _ = debugger_widget._mime_bundle(debugger)
    assert "application/vnd.jupyter.widget-view+json" in bundle
    assert "MeanBackward0" in bundle["text/html"]
    assert bundle["text/plain"] == repr(debugger)


# --- in a browser -----------------------------------------------------------------------------------------------------

HTML = """<body style="font-family: sans-serif"><div id="cell"></div><script type="module">
SOURCE
const heard = new Set();
window.deliver = (message) => heard.forEach((listener) => listener(message));
const model = { on: (name, listener) => heard.add(listener), off: (name, listener) => heard.delete(listener),
                send: (message) => window.take(message) };
window.close_view = render({ model, el: document.getElementById("cell") });
</script></body>"""


class Browser:
    """The widget's page in a browser, on the thread that asks."""

    def __init__(self, tab: Any, sent: queue.SimpleQueue[Any]) -> None:
        self.tab = tab
        self._sent = sent

    def until(self, expression: str) -> None:
        """Deliver messages until an expression of the page is true."""
        deadline = time.monotonic() + SECONDS
        while not self.tab.evaluate(expression):
            assert time.monotonic() < deadline, f"{expression}\n{self.text()}"
            try:
                self.tab.evaluate("message => window.deliver(message)", self._sent.get(timeout=0.05))
            except queue.Empty:
                self.tab.wait_for_timeout(10)  # for what the page has to do

    def text(self) -> str:
        return str(self.tab.inner_text("#cell"))

    def shows(self, text: str) -> None:
        """Deliver messages until the page shows a text."""
        self.until(f"document.getElementById('cell').innerText.includes({text!r})")

    def press(self, verb: str) -> None:
        self.until(f"""!document.querySelector('button[aria-label="{verb}"]').disabled""")
        self.tab.click(f'button[aria-label="{verb}"]')

    def type(self, field: str, text: str) -> None:
        self.tab.fill(f'input[aria-label="{field}"]', text)
        self.tab.press(f'input[aria-label="{field}"]', "Enter")


@pytest.fixture
def browser(page):
    playwright = pytest.importorskip("playwright.sync_api")
    if CHROMIUM is None:
        pytest.skip("there is no Chromium")
    here = Path(debugger_widget.__file__).parent
    source = (here / "debugger_widget.js").read_text(encoding="utf-8")
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        tab = chromium.new_page(viewport={"width": 1300, "height": 700})
        errors: list[str] = []
        tab.on("pageerror", lambda error: errors.append(str(error)))
        tab.expose_function("take", lambda message: page.widget._handle_custom_msg(message, []))
        tab.set_content(HTML.replace("SOURCE", source))
        tab.add_style_tag(content=(here / "debugger_widget.css").read_text(encoding="utf-8"))
        yield Browser(tab, page.came)
        chromium.close()
    assert errors == []


def test_a_person_steps_looks_and_changes(browser, debugger):
    browser.shows("paused before, node 0 of 9: first node of backward 1")
    browser.shows("node 0: MeanBackward0")
    browser.press("step")
    browser.press("step")
    browser.shows("node 2: AddmmBackward0")
    browser.press("into")
    browser.shows("paused after, node 2 of 9")
    browser.shows("gradient out [1]")
    browser.tab.click(".gs-tensor >> nth=2")
    browser.until("document.querySelector('canvas') !== null")
    browser.shows("gradient out [1] (1, 3)")
    browser.type("evaluate", "2 + 3")
    browser.shows("2 + 3 = 5")
    browser.type("evaluate", "nothing")
    browser.shows("name 'nothing' is not defined")
    browser.type("break", "param:*.bias if norm > 0")
    browser.shows("param:*.bias if norm > 0")
    browser.press("continue")
    browser.shows("node 4: AccumulateGrad")
    browser.type("grad =", "grad * 2")
    browser.shows("(edited)")
    assert debugger.node.edited
    browser.press("remove breakpoint 1")
    browser.until("document.querySelector('.gs-point') === null")
    browser.press("continue")
    browser.shows("finished")
    assert debugger.ended


def test_keys_are_those_of_the_terminal_ui(browser, debugger):
    browser.shows("node 0: MeanBackward0")
    browser.tab.focus(".gs-debugger")
    for key, shown in (("n", "node 1: PowBackward0"), ("s", "paused after, node 1"), ("N", "replaying, node 1")):
        browser.tab.keyboard.press(key)
        browser.shows(shown)
    browser.tab.keyboard.press("j")
    browser.shows("node 2: AddmmBackward0")
    browser.tab.keyboard.press("L")
    browser.shows("paused after, node 1")
    assert debugger.state.paused


def test_two_views_of_one_widget_show_the_same(browser, page):
    browser.shows("node 0: MeanBackward0")
    page.send(1, "step")  # from another view
    browser.shows("node 1: PowBackward0")


def test_a_view_that_is_closed_leaves_nothing(browser):
    browser.shows("node 0: MeanBackward0")
    browser.tab.evaluate("window.close_view()")
    assert browser.text() == ""
