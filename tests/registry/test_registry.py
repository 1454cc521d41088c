"""Leases over real children with the echo model."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import psutil
import pytest

from fox.engine import Engine, EngineOptions
from fox.errors import Draining, ModelLoadFailed, ModelNotFound
from fox.generation import GenerationRequest, PromptPart
from fox.registry import Catalog, Registry

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def registry() -> AsyncIterator[Registry]:
    made = Registry(Catalog(None, echo=True), EngineOptions())
    try:
        yield made
    finally:
        await made.close()


async def say(engine: Engine, text: str) -> str:
    request = GenerationRequest("a", (PromptPart(text, special=False),))
    return "".join([delta.text async for delta in await engine.submit(request)])


async def test_ten_leases_at_once_load_once() -> None:
    async with registry() as r:

        async def pid() -> int:
            async with r.lease("echo") as engine:
                return engine.pid

        assert len(set(await asyncio.gather(*(pid() for _ in range(10))))) == 1
        assert [engine.name for engine in r.running()] == ["echo"]
        assert len(psutil.Process().children()) == 1


async def test_a_dead_engine_is_loaded_anew_and_others_do_not_notice() -> None:
    async with registry() as r, r.lease("echo-slow") as other:
        stream = await other.submit(GenerationRequest("s", (PromptPart("word " * 400, special=False),)))
        async with r.lease("echo") as engine:
            os.kill(engine.pid, signal.SIGKILL)
            while engine.alive:
                await anext(stream)
        async with r.lease("echo") as again:
            assert again.pid != engine.pid
            assert await say(again, "alive") == "alive"
        assert (await anext(stream)).finish is None


async def test_every_waiter_hears_why_a_load_failed_and_the_next_lease_tries_again() -> None:
    async with registry() as r:

        async def lease() -> None:
            async with r.lease("echo-fails"):
                pass

        for _ in range(2):
            outcomes = await asyncio.gather(lease(), lease(), return_exceptions=True)
            assert [type(o) for o in outcomes] == [ModelLoadFailed] * 2
        assert r.running() == []


async def test_an_unknown_name_is_not_found() -> None:
    async with registry() as r:
        with pytest.raises(ModelNotFound):
            async with r.lease("nobody"):
                pass


async def test_a_caller_that_stops_waiting_does_not_stop_the_load() -> None:
    async with registry() as r:

        async def lease() -> int:
            async with r.lease("echo") as engine:
                return engine.pid

        first = asyncio.ensure_future(lease())
        second = asyncio.ensure_future(lease())
        await asyncio.sleep(0)
        first.cancel()
        assert await second in [child.pid for child in psutil.Process().children()]


async def test_closing_ends_every_child_also_in_mid_load() -> None:
    async with registry() as r:
        async with r.lease("echo"):
            pass

        async def lease() -> None:
            async with r.lease("echo-slow"):
                pass

        loading = asyncio.ensure_future(lease())
        await asyncio.sleep(0)
        await r.close()
        assert psutil.Process().children() == []
        assert isinstance(
            (await asyncio.gather(loading, return_exceptions=True))[0], asyncio.CancelledError | Draining
        )
        with pytest.raises(Draining):
            async with r.lease("echo"):
                pass
