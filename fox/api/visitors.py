"""Which web pages may ask, and under which name this machine may be called: Ollama's rules.

A page of another site must not use a model behind its visitor's back, whether it asks openly (its origin tells) or has
its own name point to this machine (DNS rebinding; the Host header tells).
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Iterable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fox.api.failures import INVALID, Refusal, Row, openai_response
from fox.api.ollama.failures import ollama_response

LOCAL_HOSTS = ("localhost", "127.0.0.1", "0.0.0.0", "[::1]")  # noqa: S104 - what a browser may be pointed to
LOCAL_APPS = ("app://*", "file://*", "tauri://*", "vscode-webview://*", "vscode-file://*")
LOCAL_ENDINGS = (".localhost", ".local", ".internal")
METHODS = "GET, POST, PUT, PATCH, DELETE, HEAD, OPTIONS"
HEADERS = (
    "Authorization, Content-Type, User-Agent, Accept, X-Requested-With, OpenAI-Beta, x-api-key, anthropic-version, "
    "anthropic-beta, anthropic-dangerous-direct-browser-access, x-fox-priority, x-request-id, "
    + ", ".join(
        f"x-stainless-{name}"
        for name in (
            *("arch", "async", "custom-poll-interval", "helper-method", "lang", "os", "package-version"),
            *("poll-helper", "retry-count", "runtime", "runtime-version", "timeout"),
        )
    )
)
HINT = "allow it with `--cors-origins`, FOX_CORS_ORIGINS or OLLAMA_ORIGINS"
EXPOSED = "x-request-id, x-fox-truncated, x-fox-warning, retry-after"
TWELVE_HOURS_S = "43200"


class Visitors:
    """Plain ASGI. `origins`: those allowed beside local ones, with commas between them, `*` in them for anything.

    Hosts are checked where the connection came in over the loopback interface: who listens on others knows of it.
    """

    def __init__(self, app: ASGIApp, origins: str = "") -> None:
        self._app = app
        given = [origin.strip() for origin in origins.split(",") if origin.strip()]
        self._all = "*" in given
        self._allowed = [_pattern(origin) for origin in (*_local(), *given)]
        self._hostname = socket.gethostname().lower()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        origin, host = headers.get(b"origin"), headers.get(b"host", "")
        if not self._knows(host, scope):
            said = f"the host `{host[:80]}` is not this machine"
            await self._refuse(scope, receive, send, said + f": {HINT}")
        elif origin is None or origin.partition("://")[2] == host:
            await self._app(scope, receive, send)
        elif not self._allows(origin):
            await self._refuse(scope, receive, send, f"the origin `{origin[:80]}` may not ask: {HINT}")
        elif scope["method"] == "OPTIONS" and b"access-control-request-method" in headers:
            await send(
                {"type": "http.response.start", "status": 204, "headers": self._preflight(origin, headers)}
            )
            await send({"type": "http.response.body", "body": b""})
        else:
            await self._app(scope, receive, _with_headers(send, self._seen(origin)))

    def _allows(self, origin: str) -> bool:
        return self._all or any(pattern.fullmatch(origin.lower()) for pattern in self._allowed)

    def _seen(self, origin: str) -> list[tuple[bytes, bytes]]:
        allowed = b"*" if self._all else origin.encode("latin-1")
        named = [
            (b"access-control-allow-origin", allowed),
            (b"access-control-expose-headers", EXPOSED.encode()),
        ]
        return named if self._all else [*named, (b"vary", b"Origin")]

    def _preflight(self, origin: str, headers: dict[bytes, str]) -> list[tuple[bytes, bytes]]:
        told = {"methods": METHODS, "headers": HEADERS}
        found = [(f"access-control-allow-{name}".encode(), text.encode()) for name, text in told.items()]
        if b"access-control-request-private-network" in headers:
            found.append((b"access-control-allow-private-network", b"true"))
        return [*self._seen(origin), *found, (b"access-control-max-age", TWELVE_HOURS_S.encode())]

    def _knows(self, host: str, scope: Scope) -> bool:
        """Whether a request that came in over the loopback interface names this machine."""
        server = scope.get("server")
        if not server or not _is_loopback(str(server[0])):
            return True
        name = _without_port(host).lower().rstrip(".")
        if name in ("", "localhost", self._hostname) or name.endswith(LOCAL_ENDINGS):
            return True
        return _is_local_address(name) or self._allows(f"http://{host}") or self._allows(f"https://{host}")

    @staticmethod
    async def _refuse(scope: Scope, receive: Receive, send: Send, said: str) -> None:
        told = Refusal(Row(403, INVALID), "forbidden", said)
        response = ollama_response(told) if scope["path"].startswith("/api/") else openai_response(told)
        await response(scope, receive, send)


def _local() -> Iterable[str]:
    for host in LOCAL_HOSTS:
        for scheme in ("http", "https"):
            yield f"{scheme}://{host}"
            yield f"{scheme}://{host}:*"
    yield from LOCAL_APPS


def _pattern(origin: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, origin.lower().split("*"))))


def _without_port(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.rpartition(":")[0] if host.count(":") == 1 else host


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


def _is_local_address(name: str) -> bool:
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return False
    return address.is_loopback or address.is_private or address.is_unspecified


def _with_headers(send: Send, headers: list[tuple[bytes, bytes]]) -> Send:
    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", ()), *headers]}
        await send(message)

    return sent
