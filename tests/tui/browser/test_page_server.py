from __future__ import annotations

import asyncio

import pytest

aiohttp = pytest.importorskip("aiohttp")
pytest.importorskip("textual_serve")

from aiohttp.test_utils import TestServer  # noqa: E402 - after it is known to be there

from gradscope_tui.browser.page_server import REFUSED, PageServer  # noqa: E402


def visit(scenario):
    """Play a scenario with a browser on a page of which nobody has the token yet."""

    async def play():
        server = PageServer(["true"], title="train.py")
        host = TestServer(await server._make_app(), host="127.0.0.1", port=server.port)
        server._socket.close()
        jar = aiohttp.CookieJar(unsafe=True)
        async with host, aiohttp.ClientSession(cookie_jar=jar) as browser:
            await scenario(server, browser)

    asyncio.run(play())


async def get(browser, address, **options):
    async with browser.get(address, **options) as answer:
        return answer.status, await answer.text()


@pytest.mark.parametrize("path", ["", "static/js/textual.js", "ws", "download/1", "?token=", "?token=é", "nowhere"])
def test_nothing_is_shown_without_the_token(path):
    async def scenario(server, browser):
        assert await get(browser, f"{server.public_url}/{path}") == (403, REFUSED)

    visit(scenario)


def test_the_token_lets_one_browser_in_once():
    async def scenario(server, browser):
        address = server.address
        status, page = await get(browser, address)
        assert (status, "train.py" in page) == (200, True)
        async with aiohttp.ClientSession() as other:
            assert await get(other, address) == (403, REFUSED)
        assert (await get(browser, f"{server.public_url}/static/js/textual.js"))[0] == 200

    visit(scenario)


def test_the_address_that_stays_has_no_token_and_scripts_cannot_read_the_cookie():
    async def scenario(server, browser):
        async with browser.get(server.address, allow_redirects=False) as answer:
            assert (answer.status, answer.headers["Location"]) == (303, "/")
            (cookie,) = answer.cookies.values()
            assert (cookie["httponly"], cookie["samesite"]) == (True, "Strict")
            assert answer.headers["Referrer-Policy"] == "no-referrer"

    visit(scenario)


@pytest.mark.parametrize("headers", [{"Origin": "http://127.0.0.1:1"}, {"Host": "rebound.example"}], ids=str)
def test_pages_of_others_start_no_program_with_the_cookie(headers):
    async def scenario(server, browser):
        await get(browser, server.address)
        assert await get(browser, f"{server.public_url}/ws", headers=headers) == (403, REFUSED)

    visit(scenario)


def test_the_page_loads_nothing_from_elsewhere():
    async def scenario(server, browser):
        _, page = await get(browser, server.address)
        assert page.count("://") == page.count(f"{server.port}/")

    visit(scenario)


def test_a_port_that_is_taken_is_refused():
    taken = PageServer(["true"], title="train.py")
    with pytest.raises(OSError, match="in use"):
        PageServer(["true"], title="train.py", port=taken.port)
    taken._socket.close()
