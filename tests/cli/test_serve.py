from __future__ import annotations

import asyncio
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from gradscope.cli import main

SCRIPT = """\
import gradscope as gs

x = gs.ones(3, requires_grad=True)
(x * 2).sum().backward()
"""


@contextmanager
def served(*arguments: str) -> Iterator[str]:
    """Serve, and yield the address."""
    command = [sys.executable, "-m", "gradscope", "serve", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield re.search(r"http://\S+", process.stdout.readline())[0]  # type: ignore[index]
        finally:
            process.send_signal(signal.SIGINT)
            assert process.wait(30) == 0


def test_a_browser_shows_the_screen_and_its_keys_step(tmp_path):
    aiohttp = pytest.importorskip("aiohttp")
    pytest.importorskip("textual_serve")
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)

    async def visit(address):
        base = address.partition("/?")[0]
        async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as browser:
            async with browser.get(address) as page:
                assert "train.py starts" in await page.text()
            async with browser.ws_connect(f"{base}/ws?width=120&height=40", origin=base) as socket:

                async def shown(words):
                    drawn = b""
                    while words not in drawn:
                        message = await socket.receive(timeout=60)
                        assert message.type is aiohttp.WSMsgType.BINARY
                        drawn += message.data

                await shown(b"PAUSED before")
                await socket.send_json(["stdin", "n"])
                await shown(b"next node")
                await socket.send_json(["stdin", "c"])
                await shown(b"FINISHED")

    with served(str(script)) as address:
        asyncio.run(visit(address))


def test_what_is_wrong_with_the_script_is_said_before_a_page_is_opened(capsys, tmp_path):
    assert main(["serve", str(tmp_path / "no.py")]) == 2
    assert "there is no script" in capsys.readouterr().err
    assert main(["serve", str(tmp_path / "no.gscope")]) == 2
    assert "there is no recording" in capsys.readouterr().err


def test_without_textual_serve_one_line_says_how_to_get_it(capsys, monkeypatch, tmp_path):
    (tmp_path / "train.py").write_text(SCRIPT)
    monkeypatch.setitem(sys.modules, "gradscope_tui.browser.page_server", None)
    assert main(["serve", str(tmp_path / "train.py")]) == 2
    said = capsys.readouterr().err
    assert said.startswith("gradscope serve: this needs textual-serve (")
    assert said.endswith("): pip install 'gradscope-debugger[serve]'\n")
    assert said.count("\n") == 1


@pytest.mark.parametrize("port", ["-1", "65536", "http", "٣"])
def test_a_port_is_a_number_that_there_is(capsys, port):
    assert main(["serve", "--port", port, "train.py"]) == 2
    assert f"a port is a number from 0 to 65535, got {port!r}" in capsys.readouterr().err
