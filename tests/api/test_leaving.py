"""Clients who leave, over real sockets: whatever was done for them is given up."""

from __future__ import annotations

import asyncio

import pytest
from starlette.applications import Starlette

from tests.api.fakes import STOP, FakeEngine, FakeRegistry
from tests.api.wire import CHAT, HELLO, Visitor, asking, in_memory, in_time, serving

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def _silent(engine: FakeEngine) -> None:
    engine.says = None


async def test_a_client_that_leaves_a_stream_cancels_it(
    app: Starlette, engine: FakeEngine, registry: FakeRegistry
) -> None:
    async with serving(app) as port:
        visitor = await Visitor.ask(port, stream=True)
        generation = await in_time(engine.generations.get())
        generation.say("a")
        await visitor.hear(b'"content":"a"')
        await visitor.leave()
        await in_time(generation.cancelled.wait())
    assert generation.cancels == 1
    assert registry.leases == 0


async def test_a_client_that_leaves_before_the_first_token_cancels_it(
    app: Starlette, engine: FakeEngine
) -> None:
    async with serving(app) as port:
        visitor = await Visitor.ask(port, stream=True)
        generation = await in_time(engine.generations.get())
        await in_time(generation.waiting.wait())
        await visitor.leave()
        await in_time(generation.cancelled.wait())


async def test_a_client_that_leaves_a_whole_answer_cancels_it(
    app: Starlette, engine: FakeEngine, registry: FakeRegistry
) -> None:
    async with serving(app) as port:
        visitor = await Visitor.ask(port)
        generation = await in_time(engine.generations.get())
        generation.say("a")
        await visitor.leave()
        await in_time(generation.cancelled.wait())
    assert registry.leases == 0


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_a_client_that_leaves_while_the_model_loads_is_not_waited_for(
    app: Starlette, engine: FakeEngine, registry: FakeRegistry, stream: bool
) -> None:
    registry.loaded.clear()
    async with serving(app) as port:
        visitor = await Visitor.ask(port, stream=stream)
        await in_time(registry.asked.wait())
        await visitor.leave()
        await in_time(registry.abandoned.wait())
    assert engine.requests == []


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_a_client_that_leaves_while_submit_waits_is_not_waited_for(
    app: Starlette, engine: FakeEngine, registry: FakeRegistry, stream: bool
) -> None:
    engine.accepts.clear()
    async with serving(app) as port:
        visitor = await Visitor.ask(port, stream=stream)
        await in_time(engine.asked.wait())
        await visitor.leave()
        await in_time(engine.abandoned.wait())
    assert registry.leases == 0
    assert engine.generations.empty()


async def test_a_client_that_leaves_in_the_middle_of_its_body_disturbs_nothing(
    app: Starlette, engine: FakeEngine, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "fox.api")
    async with serving(app) as port:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(
            b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{"
        )
        await writer.drain()
        async with asking(port) as client:
            assert (await client.get("/health")).status_code == 200
        writer.close()
        await writer.wait_closed()
    assert engine.requests == []
    assert "Traceback" not in caplog.text
    assert "/v1/chat/completions 499" in caplog.text


async def test_a_client_that_does_not_read_is_cancelled_when_it_leaves(
    app: Starlette, engine: FakeEngine
) -> None:
    async with serving(app) as port:
        visitor = await Visitor.ask(port, stream=True)
        generation = await in_time(engine.generations.get())
        generation.say(*["x" * 65536] * 200)
        await visitor.hear(b'"content":"x')
        await visitor.leave()
        await in_time(generation.cancelled.wait())


async def test_one_who_leaves_does_not_disturb_another(app: Starlette, engine: FakeEngine) -> None:
    async with serving(app) as port:
        one = await Visitor.ask(port, stream=True)
        first = await in_time(engine.generations.get())
        other = await Visitor.ask(port, stream=True)
        second = await in_time(engine.generations.get())
        await one.leave()
        await in_time(first.cancelled.wait())
        assert second.cancels == 0
        second.say("still here", finish=STOP)
        assert b"still here" in await other.hear(b"[DONE]")
        await other.leave()


async def test_forty_who_leave_cancel_forty(app: Starlette, engine: FakeEngine) -> None:
    async with serving(app) as port:
        visitors = [await Visitor.ask(port, stream=i % 2 == 0) for i in range(40)]
        generations = [await in_time(engine.generations.get()) for _ in visitors]
        await asyncio.gather(*(visitor.leave() for visitor in visitors))
        await in_time(asyncio.gather(*(generation.cancelled.wait() for generation in generations)))
    assert [generation.cancels for generation in generations] == [1] * 40


async def test_an_answer_whose_server_ends_cancels_its_generation(engine: FakeEngine, app: Starlette) -> None:
    """A server that gives up cancels the task that the answer runs in."""
    async with in_memory(app) as client:
        asked = asyncio.create_task(client.post(CHAT, json=HELLO))
        generation = await in_time(engine.generations.get())
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
    assert generation.cancels == 1
