"""The outermost layer: gives each request its id, writes its line in the log, and turns a crash into a clean 500."""

from __future__ import annotations

import logging
import re
import time
import uuid
from collections.abc import Awaitable
from urllib.parse import quote

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fox.api.failures import openai_response, refusal

log = logging.getLogger("fox.api")

HEADER = b"x-request-id"
SANE_ID = re.compile(rb"[\x21-\x7e]{1,128}")
CLIENT_LEFT = 499  # what the log says of a request that nobody waited for; never sent


class Journal:
    """Plain ASGI. Keeps a client's own `x-request-id` where it is short and printable."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        entry = Entry(scope, send)
        try:
            await self._app(scope, receive, entry.send)
        except ClientDisconnect:
            pass
        except Exception as error:
            log.exception("a request failed [%s]", entry.id)
            if entry.status == CLIENT_LEFT:
                await openai_response(refusal(error))(scope, receive, entry.send)
        finally:
            entry.write()


class Entry:
    """One request's line."""

    def __init__(self, scope: Scope, send: Send) -> None:
        self.id = _id(scope)
        self.status = CLIENT_LEFT
        self._scope = scope
        self._send = send
        self._began = time.perf_counter()

    def send(self, message: Message) -> Awaitable[None]:
        """Not a coroutine of its own: it is called for every token."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message["headers"] = [*message.get("headers", ()), (HEADER, self.id.encode())]
        return self._send(message)

    def write(self) -> None:
        note = self._scope.get("fox.note", "")
        took_ms = (time.perf_counter() - self._began) * 1e3
        line = f"{self._scope['method']} {_path(self._scope)} {self.status} {took_ms:.1f} ms {note}"
        log.info("%s [%s]", line.rstrip(), self.id)


def _id(scope: Scope) -> str:
    given: bytes = dict(scope["headers"]).get(HEADER, b"")
    return given.decode() if SANE_ID.fullmatch(given) else uuid.uuid4().hex


def _path(scope: Scope) -> str:
    """As it came: decoded, it could hold line breaks."""
    raw: bytes = scope.get("raw_path") or quote(scope["path"]).encode()
    return raw.decode("ascii", "backslashreplace")
