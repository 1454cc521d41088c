"""Speaks Ollama's dialect: to a server over HTTP, or to the same routes in this process where no server runs."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

from fox import config
from fox.cli.refusal import Refusal

if TYPE_CHECKING:
    from fox.config import Settings

Fields = dict[str, Any]

PATIENCE_S = 5.0
EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - where a server listens, not where one calls it
START = "`fox serve` starts one; `--url` or FOX_HOST says where it is"
ELSEWHERE = "`--url` or FOX_HOST says where fox is"
LONGEST_ERROR_CHARS = 2000
JSON_TYPE = {"content-type": "application/json"}


class Refused(Refusal):
    """The server's own no. `status`: its HTTP status; None where a stream broke off with it."""

    def __init__(self, message: str, status: int | None = None) -> None:
        absent = status == 404 and message.startswith("model ")
        super().__init__(message, "`fox list` shows the models there are" if absent else None)
        self.status = status


class NotOurs(Refusal):
    """Something answers that does not speak the dialect."""

    def __init__(self, where: str) -> None:
        super().__init__(f"what answers on {where} is not fox", ELSEWHERE)


class Reply(Protocol):
    """An answer whose status is known; its body comes as it is made."""

    status: int

    def lines(self) -> Iterator[bytes]: ...
    def read(self) -> bytes: ...
    def close(self) -> None:
        """Nobody reads on: whoever makes the answer stops. Idempotent."""


class Transport(Protocol):
    where: str

    def request(
        self, method: str, path: str, body: bytes | Iterable[bytes], headers: Mapping[str, str], *, slow: bool
    ) -> Reply:
        """`slow`: it may take long before anything comes. Raises Refusal where nobody answers."""

    def close(self) -> None: ...


class Client:
    """Asks, and reads what comes. Every method raises Refused with the server's own text, and Refusal."""

    def __init__(self, transport: Transport, *, local: bool) -> None:
        """`local`: the server is on this machine, and may see its files."""
        self._transport = transport
        self.local = local

    @property
    def where(self) -> str:
        return self._transport.where

    def get(self, path: str) -> Fields:
        return self._whole(self._request("GET", path, b"", {}))

    def post(self, path: str, fields: Fields) -> Fields:
        return self._whole(self._request("POST", path, json.dumps(fields).encode(), JSON_TYPE))

    def delete(self, path: str, fields: Fields) -> Fields:
        return self._whole(self._request("DELETE", path, json.dumps(fields).encode(), JSON_TYPE))

    def has(self, path: str) -> bool:
        """Whether HEAD finds it."""
        reply = self._transport.request("HEAD", path, b"", {}, slow=False)
        reply.close()
        return reply.status < 400

    def upload(self, path: str, chunks: Iterable[bytes], size_bytes: int) -> None:
        headers = {"content-type": "application/octet-stream", "content-length": str(size_bytes)}
        self._request("POST", path, chunks, headers).close()

    def stream(self, path: str, fields: Fields) -> Iterator[Fields]:
        """The answer's objects, a line each. Closing it ends the answer."""
        reply = self._request("POST", path, json.dumps(fields).encode(), JSON_TYPE)
        try:
            for line in reply.lines():
                said = self._object(line)
                if error := said.get("error"):
                    raise Refused(_text(error))
                yield said
        finally:
            reply.close()

    def strange(self) -> NotOurs:
        return NotOurs(self.where)

    def close(self) -> None:
        self._transport.close()

    def _request(
        self, method: str, path: str, body: bytes | Iterable[bytes], headers: Mapping[str, str]
    ) -> Reply:
        reply = self._transport.request(method, path, body, headers, slow=True)
        if reply.status >= 400:
            raise self._refused(reply)
        return reply

    def _refused(self, reply: Reply) -> Refusal:
        try:
            return Refused(_text(json.loads(reply.read())["error"]), reply.status)
        except (ValueError, KeyError, TypeError):
            return self.strange()
        finally:
            reply.close()

    def _whole(self, reply: Reply) -> Fields:
        try:
            body = reply.read()
        finally:
            reply.close()
        return self._object(body) if body.strip() else {}

    def _object(self, text: bytes) -> Fields:
        try:
            fields = json.loads(text)
        except ValueError:
            raise self.strange() from None
        if not isinstance(fields, dict):
            raise self.strange()
        return fields


def connect(url: str | None, settings: Settings | None = None) -> Client | None:
    """A client of the server at `url`, or where the settings say. None where nobody listens there, nobody named it by
    hand and it is this machine: what is asked can be done in this process then. Raises Refusal.
    """
    base = base_url(url) if url else default_url(settings or config.load({}))
    address = urlsplit(base)
    assert address.hostname
    near = is_loopback(address.hostname)
    if near and url is None and not _listens(address.hostname, address.port or 80):
        return None
    from fox.cli.http import Http

    client = Client(Http(base, direct=near), local=near)
    if client.has("/"):
        return client
    if near and url is None:
        return None
    raise client.strange()


def server(url: str | None) -> Client:
    """A client of a server; there must be one."""
    settings = config.load({})
    if client := connect(url, settings):
        return client
    base = default_url(settings)
    address = urlsplit(base)
    if _listens(address.hostname or "", address.port or 80):
        raise NotOurs(base)
    raise no_server(base)


def in_process(settings: Settings) -> Client:
    """The server's own routes, without a server."""
    from fox.cli.in_process import InProcess

    return Client(InProcess(settings), local=True)


def reach(url: str | None) -> Client:
    """A server's client where there is one, else one of this process."""
    settings = config.load({})
    return connect(url, settings) or in_process(settings)


def no_server(base: str) -> Refusal:
    return Refusal(f"no server answers on {base}", START)


def base_url(text: str) -> str:
    """`--url` in full. Raises Refusal."""
    base = (text if "://" in text else f"http://{text}").rstrip("/")
    try:
        address = urlsplit(base)
        fine = address.scheme in ("http", "https") and address.hostname and address.port != 0
    except ValueError:
        fine = False
    if not fine:
        raise Refusal(f"`{text}` is no http address", "a server's address reads `http://127.0.0.1:8080`")
    return base


def default_url(settings: Settings) -> str:
    host = EVERYWHERE.get(settings.host, settings.host)
    port = config.DEFAULT_PORT if settings.port == "auto" else settings.port
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def is_loopback(host: str) -> bool:
    return host in ("localhost", "::1") or host.startswith("127.")


def _listens(host: str, port: int) -> bool:
    """Whether a connection is taken there; told without the HTTP library, which takes long to import."""
    try:
        socket.create_connection((host, port), PATIENCE_S).close()
    except OSError:
        return False
    return True


def _text(error: object) -> str:
    """The words of an error, as Ollama's dialect and OpenAI's have them."""
    said = error.get("message", error) if isinstance(error, dict) else error
    return str(said)[:LONGEST_ERROR_CHARS]
