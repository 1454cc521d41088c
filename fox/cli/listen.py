"""The listening socket, taken before anything heavy is imported: a taken port is told at once."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterable
from typing import Literal

from fox.cli.refusal import Refusal
from fox.config import DEFAULT_PORT

AUTO_PORTS = range(DEFAULT_PORT, DEFAULT_PORT + 101)
BACKLOG = 2048


def listen(host: str, port: int | Literal["auto"]) -> socket.socket:
    """A socket that listens on `host`. `auto`: the first free of 8080 to 8180, then any. Raises Refusal."""
    family, address = _resolved(host)
    ports: Iterable[int] = (*AUTO_PORTS, 0) if port == "auto" else (port,)
    for candidate in ports:
        try:
            return _bound(family, address, candidate)
        except OSError as error:
            if error.errno != errno.EADDRINUSE or port != "auto":
                raise _refusal(error, host, candidate) from None
    raise Refusal("every port is in use", "`--port N` names one")


def url(sock: socket.socket) -> str:
    """Where it listens, as a browser would write it."""
    host, port = sock.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _resolved(host: str) -> tuple[socket.AddressFamily, str]:
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (socket.gaierror, UnicodeError):
        raise Refusal(f"no such host `{host}`", "`--host 127.0.0.1` listens to this machine only") from None
    family, _, _, _, address = min(found, key=lambda one: one[0] != socket.AF_INET)
    return family, str(address[0])


def _bound(family: socket.AddressFamily, address: str, port: int) -> socket.socket:
    sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((address, port))
        sock.listen(BACKLOG)
    except OSError:
        sock.close()
        raise
    return sock


def _refusal(error: OSError, host: str, port: int) -> Refusal:
    if error.errno == errno.EADDRINUSE:
        return Refusal(f"port {port} is already in use", "`--port auto` takes a free one, `--port N` another")
    if error.errno == errno.EACCES:
        return Refusal(f"not permitted to listen on port {port}", "take a port from 1024 up: `--port 8080`")
    if error.errno == errno.EADDRNOTAVAIL:
        return Refusal(f"`{host}` is no address of this machine", "`--host 0.0.0.0` listens on all it has")
    return Refusal(f"cannot listen on `{host}` port {port}: {str(error.strerror).lower()}")
