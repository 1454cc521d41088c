"""Request ids and the log's one line a request."""

from __future__ import annotations

import re

import httpx2
import pytest
from starlette.applications import Starlette

from tests.api.fakes import FakeEngine
from tests.api.wire import CHAT, HELLO, Visitor, asking, in_time, serving

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def _heard(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "fox.api")


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "fox.api"]


async def test_every_response_has_an_id_of_its_own(client: httpx2.AsyncClient) -> None:
    ids = [
        (await client.get("/health")).headers["x-request-id"],
        (await client.get("/nothing")).headers["x-request-id"],
        (await client.post(CHAT, json=HELLO)).headers["x-request-id"],
        (await client.post(CHAT, json=HELLO | {"stream": True})).headers["x-request-id"],
    ]
    assert len(set(ids)) == 4


async def test_a_clients_own_id_is_kept(client: httpx2.AsyncClient) -> None:
    answer = await client.get("/health", headers={"x-request-id": "trace-1/a"})
    assert answer.headers["x-request-id"] == "trace-1/a"


@pytest.mark.parametrize("id_", [b"", b"a b", b"a" * 129, b"\xff", b"a\tb"])
async def test_an_id_that_is_no_id_is_replaced(client: httpx2.AsyncClient, id_: bytes) -> None:
    answer = await client.get("/health", headers={b"x-request-id": id_})
    assert re.fullmatch("[0-9a-f]{32}", answer.headers["x-request-id"])


async def test_a_request_is_one_line(client: httpx2.AsyncClient, caplog: pytest.LogCaptureFixture) -> None:
    await client.get("/health", headers={"x-request-id": "r"})
    (line,) = lines(caplog)
    assert re.fullmatch(r"GET /health 200 \d+\.\d ms \[r\]", line)


async def test_an_answers_line_tells_the_model_its_end_and_tokens(
    client: httpx2.AsyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    await client.post(CHAT, json=HELLO | {"stream": True})
    (line,) = lines(caplog)
    assert re.fullmatch(r"POST /v1/chat/completions 200 \d+\.\d ms tiny stop 2 tokens \[\w+\]", line)


async def test_a_refusals_line_tells_why(
    client: httpx2.AsyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    await client.post(CHAT, json=HELLO | {"model": "nobody"})
    (line,) = lines(caplog)
    assert " 404 " in line
    assert "model_not_found" in line


async def test_a_path_cannot_forge_a_line(app: Starlette, caplog: pytest.LogCaptureFixture) -> None:
    async with serving(app) as port, asking(port) as client:
        await client.get("/a%0aGET%20/forged")
    (line,) = lines(caplog)
    assert line.startswith("GET /a%0aGET%20/forged 404")


async def test_a_client_that_left_is_499(
    app: Starlette, engine: FakeEngine, caplog: pytest.LogCaptureFixture
) -> None:
    engine.says = None
    async with serving(app) as port:
        visitor = await Visitor.ask(port)
        generation = await in_time(engine.generations.get())
        await visitor.leave()
        await in_time(generation.cancelled.wait())
    (line,) = lines(caplog)
    assert re.search(r" 499 \d+\.\d ms tiny cancelled 0 tokens ", line)
