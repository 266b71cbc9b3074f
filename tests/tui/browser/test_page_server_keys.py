"""The screen in a real browser: keys go to it, and what it sends back is seen."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("textual_serve")
pyte = pytest.importorskip("pyte")
sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright")

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
ROOT = Path(__file__).parents[3]
SECONDS = 90


class Page:
    """A page of the browser, and what stands on the terminal in it, which is drawn on a canvas."""

    def __init__(self, page):
        self.page = page
        self.screen = pyte.Screen(400, 200)  # as large as it may be: rows and columns are absolute
        self.stream = pyte.ByteStream(self.screen)
        page.on("websocket", lambda socket: socket.on("framereceived", self._take))

    def _take(self, payload):
        self.stream.feed(payload if isinstance(payload, bytes) else b"")

    @property
    def text(self):
        return "\n".join(line.rstrip() for line in self.screen.display).rstrip()

    def until(self, wanted, *, gone=False):
        """Wait until something stands on the terminal, or has gone from it."""
        end = time.monotonic() + SECONDS
        while bool(re.search(wanted, self.text)) is gone:
            assert time.monotonic() < end, f"{wanted!r} did not {'go' if gone else 'come'}:\n{self.text}"
            self.page.wait_for_timeout(100)


@pytest.fixture
def address():
    command = [sys.executable, "-m", "gradscope", "serve", "examples/gallery/deep_sigmoid.py"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as server:
        try:
            said = ""
            while not (found := re.search(r"http://\S+", said)):
                line = server.stdout.readline()
                assert line, said
                said += line
            yield found[0]
        finally:
            server.terminate()
            server.communicate(timeout=30)


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
def test_keys_that_are_typed_in_the_browser_move_the_program_without_a_click(address):
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        try:
            tab = browser.new_page(viewport={"width": 1200, "height": 700})
            page = Page(tab)
            tab.goto(address)
            page.until(r"PAUSED before #0/\d+")
            tab.keyboard.press("n")
            page.until(r"PAUSED before #1/\d+")
            tab.keyboard.press("Shift+N")
            page.until(r"REPLAYING #0/\d+")
            tab.keyboard.type("L")
            page.until(r"PAUSED before #1/\d+")
            tab.keyboard.type("?")
            page.until("─ Help ─")
            tab.keyboard.press("Escape")
            page.until("─ Help ─", gone=True)
            tab.keyboard.type(":print 6 * 7")
            tab.keyboard.press("Enter")
            page.until(r"│ ?42\b")
            tab.keyboard.type("c")
            page.until("FINISHED")
        finally:
            browser.close()
