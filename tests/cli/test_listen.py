"""The listening socket."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from fox.cli import listen as listening
from fox.cli.listen import listen, url
from fox.cli.refusal import Refusal


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        sock.listen()
        yield sock.getsockname()[1]


def test_a_client_can_connect_as_soon_as_it_listens() -> None:
    with listen("127.0.0.1", 0) as sock, socket.create_connection(sock.getsockname()):
        assert url(sock) == f"http://127.0.0.1:{sock.getsockname()[1]}"


def test_auto_passes_over_ports_that_are_taken(taken: int, monkeypatch: pytest.MonkeyPatch) -> None:
    with listen("127.0.0.1", 0) as free:
        port = free.getsockname()[1]
    monkeypatch.setattr(listening, "AUTO_PORTS", (taken, port))
    with listen("127.0.0.1", "auto") as sock:
        assert sock.getsockname()[1] == port


def test_auto_takes_any_free_port_when_its_range_is_used_up(
    taken: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listening, "AUTO_PORTS", (taken,))
    with listen("127.0.0.1", "auto") as sock:
        assert sock.getsockname()[1] not in (0, taken)


def test_auto_means_8080_to_8180() -> None:
    assert (listening.AUTO_PORTS[0], listening.AUTO_PORTS[-1]) == (8080, 8180)


def test_a_taken_port_is_refused_with_a_way_out(taken: int) -> None:
    with pytest.raises(Refusal, match=f"port {taken} is already in use") as refused:
        listen("127.0.0.1", taken)
    assert "--port auto" in str(refused.value.hint)


@pytest.mark.parametrize(
    ("host", "message"),
    [
        ("nowhere.invalid", "no such host `nowhere.invalid`"),
        ("a" * 70, "no such host"),
        ("192.0.2.1", "`192.0.2.1` is no address of this machine"),
        ("bad host", "no such host `bad host`"),
    ],
)
def test_a_host_that_is_not_here_is_refused(host: str, message: str) -> None:
    with pytest.raises(Refusal, match=message):
        listen(host, 0)


def test_a_port_that_needs_rights_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(listening, "_bound", forbidden)
    with pytest.raises(Refusal, match="not permitted to listen on port 80"):
        listen("127.0.0.1", 80)
