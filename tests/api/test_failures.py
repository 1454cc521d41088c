"""What errors look like over HTTP, before the first byte."""

from __future__ import annotations

import asyncio
import logging

import httpx2
import pytest
from starlette.applications import Starlette

from fox import errors
from fox.generation import Failure, Finish
from tests.api.fakes import DEAD, FakeEngine, FakeRegistry
from tests.api.test_refusals import is_refusal
from tests.api.wire import CHAT, HELLO

pytestmark = pytest.mark.anyio

# error, status, type, param, seconds after which to ask again
TABLE: list[tuple[errors.FoxError, int, str, str | None, str | None]] = [
    (errors.InvalidRequest("no", "seed"), 400, "invalid_request_error", "seed", None),
    (errors.InvalidRequest("no", None), 400, "invalid_request_error", None, None),
    (errors.ContextExceeded("too long", "messages", 9, 8), 400, "invalid_request_error", "messages", None),
    (errors.ModelNotFound("m"), 404, "invalid_request_error", "model", None),
    (errors.QueueFull(512), 429, "rate_limit_error", None, "1"),
    (errors.ModelLoadFailed("m", "not a GGUF"), 503, "server_error", "model", "5"),
    (errors.EngineFailed("the engine died"), 503, "server_error", None, "1"),
    (errors.Draining(), 503, "server_error", None, "5"),
]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize(
    ("error", "status", "type_", "param", "after"), TABLE, ids=lambda x: type(x).__name__
)
async def test_an_error_has_its_status(
    client: httpx2.AsyncClient,
    registry: FakeRegistry,
    *,
    stream: bool,
    error: errors.FoxError,
    status: int,
    type_: str,
    param: str | None,
    after: str | None,
) -> None:
    registry.refusal = error
    answer = await client.post(CHAT, json=HELLO | {"stream": stream})
    told = is_refusal(answer, status, error.code)
    assert (told["message"], told["type"], told["param"]) == (str(error), type_, param)
    assert answer.headers.get("retry-after") == after


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_an_error_of_submit_has_its_status(
    client: httpx2.AsyncClient, engine: FakeEngine, stream: bool
) -> None:
    engine.refusal = errors.QueueFull(512)
    answer = await client.post(CHAT, json=HELLO | {"stream": stream})
    is_refusal(answer, 429, "queue_full")


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_a_crash_is_logged_and_told_without_its_text(
    client: httpx2.AsyncClient, engine: FakeEngine, stream: bool, caplog: pytest.LogCaptureFixture
) -> None:
    engine.refusal = RuntimeError("/secret/path")
    with caplog.at_level(logging.ERROR, "fox.api"):
        answer = await client.post(CHAT, json=HELLO | {"stream": stream})
    told = is_refusal(answer, 500, "internal_error")
    assert "secret" not in answer.text
    assert told["type"] == "server_error"
    assert "/secret/path" in caplog.text
    assert "Traceback" in caplog.text


async def test_a_crash_outside_of_an_answer_is_told_the_same_way(
    client: httpx2.AsyncClient, registry: FakeRegistry, caplog: pytest.LogCaptureFixture
) -> None:
    registry.catalog = None  # type: ignore[assignment]
    answer = await client.get("/v1/models")
    is_refusal(answer, 500, "internal_error")
    assert "AttributeError" in caplog.text
    assert answer.headers["x-request-id"] in caplog.text


BROKEN_ENDS = [
    (DEAD, "was killed by SIGKILL"),
    (Finish("failed", failure=Failure("EngineFailed", ("no room",))), "no room"),
    (Finish("cancelled"), "the answer was cancelled"),
]


@pytest.mark.parametrize(("finish", "says"), BROKEN_ENDS)
async def test_a_whole_answer_that_failed_midway_is_an_error_and_nothing_else(
    client: httpx2.AsyncClient, engine: FakeEngine, finish: Finish, says: str
) -> None:
    engine.says, engine.finish = ("half an ans",), finish
    answer = await client.post(CHAT, json=HELLO)
    refused = (499, "cancelled") if finish.reason == "cancelled" else (503, "engine_failed")
    assert says in is_refusal(answer, *refused)["message"]
    assert "half" not in answer.text


async def test_a_generation_without_a_finish_is_an_error(
    client: httpx2.AsyncClient, engine: FakeEngine
) -> None:
    engine.says, engine.finish = (), None  # type: ignore[assignment]
    asking = asyncio.create_task(client.post(CHAT, json=HELLO))
    (await engine.generations.get()).end_without_a_finish()
    assert "without a finish" in is_refusal(await asking, 503, "engine_failed")["message"]


async def test_a_draining_server_takes_no_new_answers(
    app: Starlette, client: httpx2.AsyncClient, engine: FakeEngine
) -> None:
    app.state.draining = True
    answer = await client.post(CHAT, json=HELLO)
    is_refusal(answer, 503, "draining")
    assert answer.headers["retry-after"] == "5"
    assert engine.requests == []
    health = await client.get("/health")
    assert (health.status_code, health.json()["status"]) == (503, "draining")
