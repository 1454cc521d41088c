"""Ways to ask an app: in memory, over a real socket, and as a client who leaves."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import uvicorn
from starlette.applications import Starlette

PATIENCE_S = 10.0
CHAT = "/v1/chat/completions"
HELLO: dict[str, Any] = {"model": "tiny", "messages": [{"role": "user", "content": "hi"}]}


def in_memory(app: Starlette) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(transport=httpx2.ASGITransport(app), verify=False, base_url="http://fox")


class Server(uvicorn.Server):
    def __init__(self, app: Starlette) -> None:
        super().__init__(uvicorn.Config(app, http="httptools", ws="none", log_config=None, access_log=False))
        self.ready = asyncio.Event()
        self.over = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()

    async def main_loop(self) -> None:
        await self.over.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """As uvicorn's, but waits for tasks where that one looks at them each 0.1 s."""
        for server in self.servers:
            server.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        await asyncio.gather(*self.server_state.tasks)
        await self.lifespan.shutdown()


@asynccontextmanager
async def serving(app: Starlette) -> AsyncIterator[int]:
    """The port of a real server in this event loop."""
    with socket.socket(proto=socket.IPPROTO_TCP) as sock:
        sock.bind(("127.0.0.1", 0))
        server = Server(app)
        running = asyncio.create_task(server.serve([sock]))
        await in_time(server.ready.wait())
        try:
            yield sock.getsockname()[1]
        finally:
            server.over.set()
            await in_time(running)


@asynccontextmanager
async def asking(port: int) -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(
        base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE_S, verify=False
    ) as client:
        yield client


class Visitor:
    """A bare connection that has asked for something."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def ask(cls, port: int, path: str = CHAT, **fields: Any) -> Visitor:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        body = json.dumps(HELLO | fields)
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write((head + body).encode())
        return cls(reader, writer)

    async def hear(self, words: bytes) -> bytes:
        return await in_time(self._reader.readuntil(words))

    async def leave(self) -> None:
        self._writer.close()
        await self._writer.wait_closed()


async def in_time(waiting: Any) -> Any:
    return await asyncio.wait_for(waiting, PATIENCE_S)


def events(lines: Iterable[str]) -> list[Any]:
    """The data of a stream's events; `[DONE]` as that text."""
    said = [line.removeprefix("data: ") for line in lines if line.startswith("data: ")]
    return [text if text == "[DONE]" else json.loads(text) for text in said]


def said(chunks: Iterable[Any]) -> str:
    """The text of all the deltas."""
    return "".join(
        choice["delta"].get("content", "")
        for chunk in chunks
        if isinstance(chunk, dict)
        for choice in chunk.get("choices", ())
    )
