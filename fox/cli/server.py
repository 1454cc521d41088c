"""uvicorn with our way of ending: stop accepting, let answers finish for a while, end what is left."""

from __future__ import annotations

import asyncio
import math
import socket
from collections.abc import Callable
from contextlib import suppress
from types import FrameType

import uvicorn
from starlette.applications import Starlette

from fox.registry import Registry

KEEP_ALIVE_S = 75
LAST_WORDS_S = 1.0  # for answers to tell their clients that they were ended


class DrainingServer(uvicorn.Server):
    """Serves `app`. The first SIGTERM or SIGINT drains for up to `drain_s` seconds, the second ends at once.

    What is still open then loses its engine, so each answer ends with its dialect's own error; a client that
    does not even read that is cut off. `on_ready` is called once requests are accepted.
    """

    def __init__(
        self, app: Starlette, registry: Registry, drain_s: float, on_ready: Callable[[], None]
    ) -> None:
        super().__init__(_config(app, drain_s))
        self._app = app
        self._registry = registry
        self._drain_s = drain_s
        self._on_ready = on_ready
        self._end_now = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self.should_exit:
            self._loop.call_soon_threadsafe(self._end_now.set)
        self._app.state.draining = True
        self.should_exit = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._on_ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        ending = self._loop.create_task(self._end_when_due())
        try:
            await super().shutdown(sockets)
        finally:
            ending.cancel()

    async def _end_when_due(self) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._end_now.wait(), self._drain_s)
        await self._registry.close()
        await asyncio.sleep(LAST_WORDS_S)
        for connection in list(self.server_state.connections):
            connection.transport.abort()


def _config(app: Starlette, drain_s: float) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http="httptools",
        ws="none",
        interface="asgi3",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=math.ceil(drain_s + 10),  # a net under our own ending
    )
