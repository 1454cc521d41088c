"""The response to what takes a while: a line for each thing that is done, or the last of them."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from typing import Any

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from fox.api.failures import Refusal, refusal
from fox.api.json_text import one_line
from fox.api.ollama.failures import error_line, ollama_response
from fox.api.ollama.voice import JSON, NDJSON
from fox.api.presence import while_present
from fox.errors import FoxError

log = logging.getLogger("fox.api")

Steps = AsyncIterator[dict[str, Any]]


class Progress:
    """An ASGI app. An error before the first line has a status of its own; later it is a line, the last one."""

    def __init__(self, steps: Steps, *, stream: bool) -> None:
        self._steps = steps
        self._stream = stream

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with while_present(receive):
            await (self._tell(send) if self._stream else self._whole(scope, receive, send))

    async def _whole(self, scope: Scope, receive: Receive, send: Send) -> None:
        last: dict[str, Any] = {}
        try:
            async for step in self._steps:
                last = step
            response = Response(one_line(last), media_type=JSON)
        except Exception as error:
            response = ollama_response(_told(error))
        await response(scope, receive, send)

    async def _tell(self, send: Send) -> None:
        begun = False
        try:
            async for step in self._steps:
                if not begun:
                    begun = True
                    await send(_head(200, NDJSON))
                await send({"type": "http.response.body", "body": one_line(step) + b"\n", "more_body": True})
            last = b""
        except Exception as error:
            told = _told(error)
            if not begun:
                response = ollama_response(told)
                await send(_head(response.status_code, JSON))
                await send({"type": "http.response.body", "body": bytes(response.body), "more_body": False})
                return
            last = error_line(told)
        await send({"type": "http.response.body", "body": last, "more_body": False})


def _told(error: Exception) -> Refusal:
    if not isinstance(error, FoxError):
        log.error("a task failed", exc_info=error)
    return refusal(error)


def _head(status: int, media_type: str) -> dict[str, Any]:
    return {
        "type": "http.response.start",
        "status": status,
        "headers": [(b"content-type", media_type.encode())],
    }
