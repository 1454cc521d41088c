"""Every request with an answer is counted once, whatever way it ends."""

from __future__ import annotations

import httpx2
import pytest
from prometheus_client.parser import text_string_to_metric_families
from starlette.applications import Starlette

from fox import errors
from fox.engine import EngineStats
from tests.api.fakes import DEAD, FakeEngine, FakeRegistry
from tests.api.wire import CHAT, HELLO, Visitor, asking, in_time, serving

pytestmark = pytest.mark.anyio

Samples = dict[tuple[str, ...], float]


async def samples(client: httpx2.AsyncClient) -> Samples:
    """`(name, label values...)` -> value, of everything that is not zero."""
    families = text_string_to_metric_families((await client.get("/metrics")).text)
    every = (sample for family in families for sample in family.samples)
    return {
        (s.name.removeprefix("ferrumox_"), *s.labels.values()): s.value
        for s in every
        if s.value and not s.name.endswith(("_created", "_bucket"))
    }


def counted(found: Samples) -> Samples:
    return {
        key: value for key, value in found.items() if key[0] in ("requests_total", "requests_rejected_total")
    }


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_an_answer_is_counted_with_its_tokens_and_times(
    client: httpx2.AsyncClient, stream: bool
) -> None:
    await client.post(CHAT, json=HELLO | {"stream": stream})
    found = await samples(client)
    assert counted(found) == {("requests_total", "tiny", "stop"): 1}
    assert found["tokens_generated_total", "tiny"] == 2
    assert found["request_latency_seconds_count", "tiny"] == 1
    assert found["ttft_seconds_count", "tiny"] == 1


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_an_answer_that_breaks_off_is_counted_as_failed(
    client: httpx2.AsyncClient, engine: FakeEngine, stream: bool
) -> None:
    engine.finish = DEAD
    await client.post(CHAT, json=HELLO | {"stream": stream})
    assert counted(await samples(client)) == {("requests_total", "tiny", "failed"): 1}


REFUSALS = [
    (errors.QueueFull(1), "queue_full"),
    (errors.InvalidRequest("no", "seed"), "invalid_request"),
    (errors.EngineFailed("died"), "engine_failed"),
    (RuntimeError("bug"), "internal_error"),
]


@pytest.mark.parametrize(("error", "reason"), REFUSALS)
async def test_what_the_engine_refuses_is_counted_as_rejected(
    client: httpx2.AsyncClient, engine: FakeEngine, error: Exception, reason: str
) -> None:
    engine.refusal = error
    await client.post(CHAT, json=HELLO)
    assert counted(await samples(client)) == {("requests_rejected_total", "tiny", reason): 1}


async def test_a_model_that_failed_to_load_is_counted_under_its_name(
    client: httpx2.AsyncClient, registry: FakeRegistry
) -> None:
    registry.refusal = errors.ModelLoadFailed("tiny", "truncated")
    await client.post(CHAT, json=HELLO)
    assert counted(await samples(client)) == {("requests_rejected_total", "tiny", "model_load_failed"): 1}


async def test_what_is_refused_without_a_model_has_no_name_that_a_client_made_up(
    client: httpx2.AsyncClient,
) -> None:
    await client.post(CHAT, json=HELLO | {"model": "made up"})
    await client.post(CHAT, content=b"nonsense")
    await client.get("/v1/models/made-up")
    assert counted(await samples(client)) == {
        ("requests_rejected_total", "", "model_not_found"): 1,
        ("requests_rejected_total", "", "invalid_request"): 1,
    }


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_an_answer_whose_client_left_is_counted_as_cancelled(
    app: Starlette, engine: FakeEngine, stream: bool
) -> None:
    engine.says = None
    async with serving(app) as port:
        visitor = await Visitor.ask(port, stream=stream)
        generation = await in_time(engine.generations.get())
        await in_time(generation.waiting.wait())
        await visitor.leave()
        await in_time(generation.cancelled.wait())
        async with asking(port) as client:
            assert counted(await samples(client)) == {("requests_total", "tiny", "cancelled"): 1}


async def test_one_who_left_while_the_model_loaded_is_counted_once(
    app: Starlette, registry: FakeRegistry
) -> None:
    registry.loaded.clear()
    async with serving(app) as port:
        visitor = await Visitor.ask(port)
        await in_time(registry.asked.wait())
        await visitor.leave()
        await in_time(registry.abandoned.wait())
        async with asking(port) as client:
            assert counted(await samples(client)) == {("requests_total", "", "cancelled"): 1}


async def test_gauges_are_read_when_asked(client: httpx2.AsyncClient, engine: FakeEngine) -> None:
    engine.stats = EngineStats(running=3, waiting=2, kv_usage=0.5)
    found = await samples(client)
    assert found["active_requests", "tiny"] == 3
    assert found["queue_depth", "tiny"] == 2
    assert found["kv_cache_usage_ratio", "tiny"] == 0.5
    assert found["models", "tiny"] == 1
    engine.alive = False
    assert await samples(client) == {}
