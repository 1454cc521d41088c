"""Bodies that come packed."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable

import httpx2
import pytest
import zstandard

from tests.api.fakes import FakeEngine
from tests.api.wire import CHAT, HELLO

pytestmark = pytest.mark.anyio

PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "zstd": zstandard.ZstdCompressor().compress,
}
MIB = 1 << 20


@pytest.mark.parametrize("encoding", [*PACKERS, "identity", "ZSTD", ""])
async def test_a_packed_body_is_read(client: httpx2.AsyncClient, encoding: str) -> None:
    body = json.dumps(HELLO | {"user": "x" * 900_000}).encode()
    packed = PACKERS.get(encoding.lower(), bytes)(body)
    answer = await client.post(CHAT, content=packed, headers={"content-encoding": encoding})
    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize("encoding", PACKERS)
async def test_a_small_body_that_unpacks_to_a_large_one_is_refused(
    client: httpx2.AsyncClient, engine: FakeEngine, encoding: str
) -> None:
    packed = PACKERS[encoding](b" " * (64 * MIB))
    assert len(packed) < MIB
    answer = await client.post(CHAT, content=packed, headers={"content-encoding": encoding})
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "body_too_large")
    assert engine.requests == []


@pytest.mark.parametrize("encoding", PACKERS)
async def test_a_damaged_body_is_refused(client: httpx2.AsyncClient, encoding: str) -> None:
    packed = PACKERS[encoding](json.dumps(HELLO).encode())
    for damaged in (b"", b"nonsense", packed[: len(packed) // 2], packed[:-9]):
        answer = await client.post(CHAT, content=damaged, headers={"content-encoding": encoding})
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, "invalid_request")


@pytest.mark.parametrize("encoding", ["br", "gzip, zstd", "x" * 999])
async def test_what_is_packed_in_another_way_is_refused(client: httpx2.AsyncClient, encoding: str) -> None:
    answer = await client.post(CHAT, json=HELLO, headers={"content-encoding": encoding})
    assert (answer.status_code, answer.json()["error"]["code"]) == (415, "unknown_encoding")
    assert "gzip, deflate or zstd" in answer.json()["error"]["message"]
