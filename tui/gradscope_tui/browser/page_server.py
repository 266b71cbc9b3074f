"""Serves one command on loopback, to who has proved to know the token."""

from __future__ import annotations

import asyncio
import secrets
import shlex
import socket
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from aiohttp import web
from textual_serve.app_service import AppService
from textual_serve.server import Server, to_int

__all__ = ["PageServer"]

LOOPBACK = "127.0.0.1"

LEAVE = 3.0
"""Seconds that the program of an open page is given when the server ends."""

REFUSED = "gradscope serve: open the address that the terminal shows, with its token; it works once\n"

_HEADERS = {"Referrer-Policy": "no-referrer", "Cache-Control": "no-store", "X-Frame-Options": "DENY"}

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class _PageProgram(AppService):
    """The process that shows the screen of one page."""

    async def stop(self) -> None:
        """Tell it to leave, and wait until it has gone."""
        await super().stop()
        if self._process is not None:
            await self._process.wait()


class PageServer(Server):
    """A server of one page, on which a command of gradscope's shows its screen.

    The token is in the address that is printed and works once: for it the browser gets a cookie, without which nothing
    is shown and no program starts. A program belongs to its page, and ends with it; another page waits for that.

    Parameters
    ----------
    command : sequence of str
        What shows the screen; it is started when a page is opened.
    title : str
        What the page is called.
    port : int
        Where to listen, on the loopback interface alone; 0 takes one that is free.

    Raises
    ------
    OSError
        If the port is taken.
    """

    def __init__(self, command: Sequence[str], *, title: str, port: int = 0) -> None:
        self._socket = socket.create_server((LOOPBACK, port))
        super().__init__(
            shlex.join(command),
            host=LOOPBACK,
            port=self._socket.getsockname()[1],
            title=title,
            templates_path=Path(__file__).parent,
        )
        self._origin = f"http://{LOOPBACK}:{self.port}"
        self.public_url = self._origin
        self._token = secrets.token_urlsafe(24)
        self._cookie = f"gradscope-{self.port}"
        self._pass = secrets.token_urlsafe(24)
        self._page_is_free = asyncio.Lock()

    @property
    def address(self) -> str:
        """What to open in a browser, once."""
        return f"{self._origin}/?token={self._token}"

    def run(self) -> None:
        """Serve until a signal ends it."""
        web.run_app(self._make_app(), sock=self._socket, print=None, access_log=None, shutdown_timeout=LEAVE)

    async def on_startup(self, app: web.Application) -> None:
        """Say nothing: the command has said where to look."""

    async def handle_websocket(self, request: web.Request) -> web.WebSocketResponse:
        """Run the program for a page, once the page before and its program have gone."""
        page = web.WebSocketResponse(heartbeat=15)
        await page.prepare(request)
        size = (to_int(request.query.get(name, ""), cells) for name, cells in (("width", 80), ("height", 24)))
        async with self._page_is_free:
            program = _PageProgram(
                self.command,
                write_bytes=page.send_bytes,
                write_str=page.send_str,
                close=page.close,
                download_manager=self.download_manager,
            )
            await program.start(*size)
            try:
                await self._process_messages(page, program)
            finally:
                await program.stop()
        return page

    async def _make_app(self) -> web.Application:
        app = await super()._make_app()

        async def admit(request: web.Request, handler: Handler) -> web.StreamResponse:
            return await self._admit(request, handler)

        app.middlewares.append(web.middleware(admit))  # the decorator marks its function, and a method takes no mark
        return app

    async def _admit(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Answer who has the token or the cookie, and nobody else."""
        if request.path == "/" and self._takes(request.query.get("token", "")):
            answer: web.StreamResponse = web.Response(status=303, headers={"Location": "/"})
            answer.set_cookie(self._cookie, self._pass, httponly=True, samesite="Strict")
        elif self._knows(request):
            answer = await handler(request)
        else:
            answer = web.Response(status=403, text=REFUSED)
        if not answer.prepared:
            answer.headers.update(_HEADERS)
        return answer

    def _takes(self, token: str) -> bool:
        """Whether this is the token, which is none any more then."""
        right = bool(self._token) and _same(token, self._token)
        if right:
            self._token = ""
        return right

    def _knows(self, request: web.Request) -> bool:
        """Whether a request comes from the browser that had the token, and not from a page of somebody else's."""
        here = request.headers.get("Origin", self._origin) == self._origin and request.host == f"{LOOPBACK}:{self.port}"
        return here and _same(request.cookies.get(self._cookie, ""), self._pass)


def _same(given: str, wanted: str) -> bool:
    return secrets.compare_digest(given.encode(), wanted.encode())
