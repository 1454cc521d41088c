"""The way to the server's own routes without a server: the ASGI app, called in this process."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from fox.api import create_app
from fox.cli import logs
from fox.cli.models import catalog
from fox.config import Settings
from fox.registry import Registry

Message = dict[str, Any]


class InProcess:
    """Its loop runs only while something is waited for."""

    where = "this process"

    def __init__(self, settings: Settings) -> None:
        logs.silence()
        self._registry = Registry(catalog(settings), settings.engine_options(), settings.registry_options())
        self._app = create_app(self._registry, settings.api_options())
        self._runner = asyncio.Runner()

    def request(
        self, method: str, path: str, body: bytes | Iterable[bytes], headers: Mapping[str, str], *, slow: bool
    ) -> InProcessReply:
        chunks = iter((body,) if isinstance(body, bytes) else body)
        return InProcessReply(self._runner, self._app, _scope(method, path, headers), chunks)

    def close(self) -> None:
        try:
            self._runner.run(self._registry.close())
        finally:
            self._runner.close()


class InProcessReply:
    def __init__(self, runner: asyncio.Runner, app: Any, scope: Message, body: Iterator[bytes]) -> None:
        self._runner = runner
        self._body = body
        self._said: asyncio.Queue[Message | None] = asyncio.Queue()
        self._told = False  # the whole body
        self._left = asyncio.Event()
        self._answering = runner.get_loop().create_task(self._answer(app, scope))
        try:
            start = self._next()
        except BaseException:
            self.close()
            raise
        self.status = int(start["status"]) if start else 500

    def lines(self) -> Iterator[bytes]:
        rest = b""
        for chunk in self._chunks():
            *whole, rest = (rest + chunk).split(b"\n")
            yield from (line for line in whole if line.strip())
        if rest.strip():
            yield rest

    def read(self) -> bytes:
        return b"".join(self._chunks())

    def close(self) -> None:
        self._left.set()
        self._runner.run(self._end())

    async def _end(self) -> None:
        self._answering.cancel()
        with suppress(asyncio.CancelledError, Exception):  # the reply has told it
            await self._answering

    def _chunks(self) -> Iterator[bytes]:
        while message := self._next():
            yield message.get("body", b"")
            if not message.get("more_body"):
                return

    def _next(self) -> Message | None:
        return self._runner.run(self._said.get())

    async def _answer(self, app: Any, scope: Message) -> None:
        async def send(message: Message) -> None:
            self._said.put_nowait(message)

        try:
            await app(scope, self._receive, send)
        finally:
            self._said.put_nowait(None)

    async def _receive(self) -> Message:
        if not self._told:
            chunk = next(self._body, None)
            self._told = chunk is None
            return {"type": "http.request", "body": chunk or b"", "more_body": not self._told}
        await self._left.wait()
        return {"type": "http.disconnect"}


def _scope(method: str, path: str, headers: Mapping[str, str]) -> Message:
    told = {"host": "localhost", **headers}
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [(name.encode(), value.encode()) for name, value in told.items()],
        "client": ("127.0.0.1", 0),
        "server": ("127.0.0.1", 0),
        "state": {},
    }
