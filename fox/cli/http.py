"""The way to a server over HTTP/1.1: a connection a request, closed to stop what it asked for."""

from __future__ import annotations

import http.client
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from urllib.parse import urlsplit

from fox import __version__
from fox.cli.client import PATIENCE_S, NotOurs, no_server
from fox.cli.refusal import Refusal


class Http:
    """`where`: the server's address. `direct`: past any proxy, as one does not see this machine."""

    def __init__(self, where: str, *, direct: bool) -> None:
        self.where = where
        self._direct = direct

    def request(
        self, method: str, path: str, body: bytes | Iterable[bytes], headers: Mapping[str, str], *, slow: bool
    ) -> HttpReply:
        connection, target = self._connection(path)
        told = {"user-agent": f"fox/{__version__}", "accept": "application/json", **headers}
        try:
            connection.connect()
            if slow:
                connection.sock.settimeout(None)
            with suppress(BrokenPipeError, ConnectionResetError):  # it has said no before it heard all
                connection.request(method, target, body or None, told)
            return HttpReply(connection, self.where)
        except http.client.HTTPException:
            connection.close()
            raise NotOurs(self.where) from None
        except OSError:
            connection.close()
            raise no_server(self.where) from None
        except BaseException:
            connection.close()
            raise

    def close(self) -> None:
        """No connection outlives its reply."""

    def _connection(self, path: str) -> tuple[http.client.HTTPConnection, str]:
        """A connection, and what to ask for on it: a proxy wants the whole address."""
        address = urlsplit(self.where)
        host, secure = address.hostname or "", address.scheme == "https"
        target = f"{address.path}{path}"
        make = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        proxy = None if self._direct else _proxy(address.scheme, host)
        if proxy is None:
            return make(host, address.port, timeout=PATIENCE_S), target
        through = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
        connection = make(through.hostname or "", through.port, timeout=PATIENCE_S)
        if secure:
            connection.set_tunnel(host, address.port)
            return connection, target
        return connection, f"{self.where}{path}"


class HttpReply:
    def __init__(self, connection: http.client.HTTPConnection, where: str) -> None:
        self._connection = connection
        self._answer = connection.getresponse()
        self._where = where
        self.status = self._answer.status

    def lines(self) -> Iterator[bytes]:
        try:
            while line := self._answer.readline():
                if line := line.strip():
                    yield line
        except (OSError, http.client.HTTPException, ValueError):
            raise self._broken() from None

    def read(self) -> bytes:
        try:
            return self._answer.read()
        except (OSError, http.client.HTTPException):
            raise self._broken() from None

    def close(self) -> None:
        self._answer.close()
        self._connection.close()

    def _broken(self) -> Refusal:
        return Refusal(f"{self._where} ended its answer midway")


def _proxy(scheme: str, host: str) -> str | None:
    from urllib.request import getproxies, proxy_bypass

    return None if proxy_bypass(host) else getproxies().get(scheme)
