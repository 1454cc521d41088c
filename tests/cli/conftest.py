"""Fixtures for the command line."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest


@pytest.fixture
def no_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """FOX_HOST names a port that nobody listens on; `http://...` of it."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))  # bound, not listening: a connection is refused, and nobody else takes it
        address = f"127.0.0.1:{sock.getsockname()[1]}"
        monkeypatch.setenv("FOX_HOST", address)
        yield f"http://{address}"
