"""`fox ps`, against a server that says what we want."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from fox.cli.ps import _until
from fox.cli.table import size
from tests.cli.processes import ask_fox


@contextmanager
def server(body: bytes, status: int = 200) -> Iterator[str]:
    """`host:port` of a server whose every answer is `body`."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status if self.path == "/api/ps" else 404)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as httpd:
        thread = threading.Thread(target=httpd.serve_forever)
        thread.start()
        yield f"127.0.0.1:{httpd.server_port}"
        httpd.shutdown()
        thread.join()


def models(*entries: dict[str, object]) -> bytes:
    return json.dumps({"models": entries}).encode()


def test_columns_are_aligned_under_their_heads() -> None:
    entry = {
        "name": "smollm2:135m",
        "size": 145_000_000,
        "context_length": 2048,
        "expires_at": "2318-01-01T00:00:00Z",
    }
    with server(models(entry)) as address:
        answer = ask_fox("ps", "--url", f"http://{address}/")
    head, row = answer.stdout.splitlines()
    assert head.split() == ["NAME", "SIZE", "CONTEXT", "UNTIL"]
    assert row.split() == ["smollm2:135m", "145.0", "MB", "2048", "forever"]
    assert [head.index(word) for word in head.split()] == [
        row.index(word) for word in ("smollm2", "145", "2048", "forever")
    ]


def test_fox_host_says_where_the_server_is() -> None:
    with server(models()) as address:
        answer = ask_fox("ps", env={"FOX_HOST": address, "http_proxy": "http://127.0.0.1:1"})
    assert (answer.returncode, answer.stdout) == (0, "NAME  SIZE  CONTEXT  UNTIL\n")


def test_no_server_is_one_line_and_a_hint() -> None:
    with server(b"") as address:
        pass
    answer = ask_fox("ps", env={"FOX_HOST": address})
    assert answer.returncode == 1
    assert answer.stderr.splitlines()[0] == f"error: no server answers on http://{address}"
    assert answer.stderr.splitlines()[1].startswith("hint: `fox serve` starts one")


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"<html>", 200),
        (b"{}", 200),
        (b"[]", 200),
        (b'{"models": null}', 200),
        (models(), 404),
        (b"\xff", 200),
    ],
)
def test_another_server_is_told_from_fox(body: bytes, status: int) -> None:
    with server(body, status) as address:
        answer = ask_fox("ps", env={"FOX_HOST": address})
    assert answer.returncode == 1
    assert f"error: what answers on http://{address} is not fox\n" in answer.stderr


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [(0, "0 B"), (999, "999 B"), (145_000_000, "145.0 MB"), (4_700_000_000, "4.7 GB"), (3e12, "3.0 TB")],
)
def test_sizes_are_decimal(size_bytes: float, text: str) -> None:
    assert size(size_bytes) == text


@pytest.mark.parametrize(
    ("left_s", "text"), [(-1, "stopping"), (30.4, "in 30 s"), (300.4, "in 5 min"), (1e9, "forever")]
)
def test_an_expiry_is_told_as_time_left(left_s: float, text: str) -> None:
    assert _until((datetime.now(UTC) + timedelta(seconds=left_s)).isoformat()) == text


def test_no_expiry_is_forever() -> None:
    assert _until(None) == "forever"


def test_nanoseconds_and_offsets_are_understood() -> None:
    assert _until("2001-01-01T00:00:00.123456789-07:00") == "stopping"
