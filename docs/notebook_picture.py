"""Draw the picture of the debugger in JupyterLab that the documentation shows.

    pip install jupyterlab playwright
    python docs/notebook_picture.py          # docs/images/notebook.png

It needs Chromium. The notebook is the example's, run up to its debugger, in which a person then steps.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

import nbformat
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "images" / "notebook.png"
STEPS = ("step", "step", "into")
SECONDS = 60


def notebook() -> Any:
    """Return the cells that the picture needs."""
    whole = nbformat.read(ROOT / "examples" / "notebook.ipynb", as_version=4)
    cells = [cell for cell in whole.cells if cell.cell_type == "code"]
    shown = next(at for at, cell in enumerate(cells) if "gi.debug(" in cell.source)
    whole.cells = [*cells[:2], cells[shown]]
    return whole


def serve(directory: str, port: int) -> subprocess.Popen[bytes]:
    """Start JupyterLab, and wait until it answers."""
    settings = {"ServerApp.port": port, "IdentityProvider.token": "", "ServerApp.root_dir": directory}
    options = [f"--{name}={value}" for name, value in settings.items()]
    command = [sys.executable, "-m", "jupyterlab", "--allow-root", "--no-browser", *options]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + SECONDS
    while True:
        try:
            urllib.request.urlopen(f"http://localhost:{port}/api").close()
            return server
        except OSError:
            if time.monotonic() > deadline:
                server.terminate()
                raise
            time.sleep(0.2)


def draw(page: Any) -> None:
    """Run all cells, step, look at a gradient, and take the picture."""
    page.wait_for_selector(".jp-Notebook .jp-Cell", timeout=SECONDS * 1000)
    page.get_by_text("Run", exact=True).click()
    page.get_by_text("Run All Cells", exact=True).click()
    page.wait_for_selector(".gs-debugger", timeout=SECONDS * 1000)
    for verb in STEPS:
        page.wait_for_selector(".gs-debugger [aria-selected=true]")
        page.click(f".gs-debugger button[aria-label={verb}]")
        page.wait_for_timeout(500)
    page.click(".gs-tensor:has-text('gradient out [1]')")
    page.wait_for_selector(".gs-debugger canvas")
    page.locator(".gs-debugger").focus()
    last = page.locator(".jp-CodeCell").last
    last.screenshot(path=PICTURE)


def main() -> None:
    """Draw the picture."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as directory:
        nbformat.write(notebook(), Path(directory) / "example.ipynb")
        server = serve(directory, port)
        try:
            with sync_playwright() as driver:
                path = shutil.which("chromium") or shutil.which("google-chrome")
                browser = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
                page = browser.new_page(viewport={"width": 1500, "height": 1000})
                page.goto(f"http://localhost:{port}/doc/tree/example.ipynb?reset")
                draw(page)
                browser.close()
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    main()
