"""How long models stay: real children with the echo model."""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import psutil
import pytest

from fox.engine import EngineOptions
from fox.errors import ModelNotFound
from fox.registry import Catalog, Registry, RegistryOptions, Terms
from fox.registry.eviction import longest_idle

pytestmark = pytest.mark.anyio

PATIENCE_S = 10.0


@asynccontextmanager
async def registry(engine: EngineOptions | None = None, **options: Any) -> AsyncIterator[Registry]:
    made = Registry(Catalog(None, echo=True), engine or EngineOptions(), RegistryOptions(**options))
    try:
        yield made
    finally:
        await made.close()
        assert psutil.Process().children() == []


async def touch(registry: Registry, name: str = "echo", **terms: Any) -> int:
    async with registry.lease(name, Terms(**terms)) as engine:
        return engine.pid


async def gone(registry: Registry, pid: int) -> None:
    """Wait until a child has ended."""
    with contextlib.suppress(psutil.NoSuchProcess):
        await asyncio.to_thread(psutil.Process(pid).wait, PATIENCE_S)
    assert pid not in [engine.pid for engine in registry.running()]


def names(registry: Registry) -> list[str]:
    return sorted(one.entry.name for one in registry.residents())


async def test_a_model_that_nobody_uses_leaves_when_its_time_is_over() -> None:
    async with registry(keep_alive_secs=0.05) as r:
        pid = await touch(r)
        await gone(r, pid)
        assert await touch(r) != pid


async def test_a_model_that_is_used_stays_beyond_its_time() -> None:
    async with registry(keep_alive_secs=0.02) as r:
        async with r.lease("echo") as engine:
            await asyncio.sleep(0.1)
            assert engine.alive
        await gone(r, engine.pid)


async def test_what_a_request_says_of_its_stay_holds_for_later_ones() -> None:
    async with registry(keep_alive_secs=60) as r:
        await touch(r, keep_alive_s=math.inf)
        await touch(r)
        assert r.residents()[0].expires_at == math.inf
        await touch(r, keep_alive_s=7)
        await touch(r)
        assert r.residents()[0].expires_at - time.time() == pytest.approx(7, abs=1)


async def test_a_stay_of_nothing_ends_with_the_request_and_the_next_has_the_default() -> None:
    async with registry(keep_alive_secs=60) as r:
        pid = await touch(r, keep_alive_s=0)
        await gone(r, pid)
        await touch(r)
        assert r.residents()[0].expires_at - time.time() == pytest.approx(60, abs=1)


async def test_a_server_that_keeps_nothing_still_answers() -> None:
    async with registry(keep_alive_secs=0) as r:
        await gone(r, await touch(r))


async def test_unloading_waits_for_who_uses_it_and_takes_memory_back() -> None:
    async with registry() as r:
        async with r.lease("echo") as engine:
            assert await r.unload("echo")
            assert engine.alive
        await gone(r, engine.pid)
        assert not await r.unload("echo")


async def test_unloading_an_idle_model_is_over_when_it_returns() -> None:
    async with registry() as r:
        pid = await touch(r)
        assert await r.unload("echo")
        assert not psutil.pid_exists(pid)
        assert names(r) == []


async def test_who_asks_while_a_model_is_about_to_leave_keeps_it() -> None:
    async with registry(keep_alive_secs=60) as r:
        async with r.lease("echo") as engine:
            await r.unload("echo")
            assert await touch(r) == engine.pid
        assert names(r) == ["echo"]


async def test_a_forgotten_model_answers_its_last_user_and_nobody_else() -> None:
    async with registry() as r:
        async with r.lease("echo") as old:
            r.forget("echo")
            new = await touch(r)
            assert new != old.pid
            assert old.alive
        await gone(r, old.pid)
        assert [engine.pid for engine in r.running()] == [new]


async def test_the_one_idle_longest_makes_room() -> None:
    async with registry(max_models=1) as r:
        first = await touch(r, "echo")
        await touch(r, "echo-slow")
        assert names(r) == ["echo-slow"]
        await gone(r, first)


async def test_where_all_are_used_the_next_model_waits_for_one_to_be_idle() -> None:
    async with registry(max_models=1) as r, AsyncExitStack() as stack:
        await stack.enter_async_context(r.lease("echo"))
        waiting = asyncio.ensure_future(touch(r, "echo-slow"))
        await asyncio.sleep(0.05)
        assert not waiting.done()
        assert await touch(r, "echo")  # the one that is there goes on answering
        await stack.aclose()
        await asyncio.wait_for(waiting, PATIENCE_S)
        assert names(r) == ["echo-slow"]


async def test_two_loads_at_once_keep_to_the_bound() -> None:
    async with registry(max_models=1) as r:
        await asyncio.gather(touch(r, "echo"), touch(r, "echo-slow"))
        assert len(r.residents()) == 1
        assert len(psutil.Process().children()) <= 1


async def test_a_load_that_fails_gives_its_room_back() -> None:
    async with registry(max_models=1) as r:
        for _ in range(2):
            with pytest.raises(Exception, match="echo-fails"):
                await touch(r, "echo-fails")
        await touch(r, "echo")


@pytest.mark.parametrize("asked", [None, 1024, 2048])
async def test_a_context_that_is_there_loads_nothing_again(asked: int | None) -> None:
    async with registry(context_len=2048) as r:
        pid = await touch(r)
        assert await touch(r, context_tokens=asked) == pid
        assert dict(r.loads) == {("echo", "first"): 1}


async def test_a_model_that_has_all_it_may_have_is_never_loaded_again() -> None:
    async with registry() as r:
        pid = await touch(r)
        assert await touch(r, context_tokens=1 << 20) == pid


async def test_a_larger_context_loads_once_and_running_answers_go_on() -> None:
    async with registry(EngineOptions(max_context_len=4096), context_len=1024) as r:
        async with r.lease("echo", Terms(keep_alive_s=math.inf)) as small:
            pids = await asyncio.gather(*(touch(r, context_tokens=4096) for _ in range(5)))
            assert len(set(pids)) == 1
            assert pids[0] != small.pid
            assert small.alive
        await gone(r, small.pid)
        for asked in (None, 1024, 4096, 1 << 20):
            assert await touch(r, context_tokens=asked) == pids[0]
        assert dict(r.loads) == {("echo", "first"): 1, ("echo", "context"): 1}
        assert r.residents()[0].expires_at == math.inf


async def test_an_unknown_model_cannot_be_kept() -> None:
    async with registry() as r:
        with pytest.raises(ModelNotFound):
            await touch(r, "nobody", keep_alive_s=5)


@dataclass
class Loaded:
    idle: bool
    used_at: float


def test_eviction_is_a_function_of_what_is_loaded() -> None:
    old, new, busy = Loaded(True, 1), Loaded(True, 2), Loaded(False, 0)
    assert longest_idle([new, busy, old]) is old
    assert longest_idle([busy]) is None
    assert longest_idle([]) is None
