"""What is done for a client ends when the client leaves, once and quietly."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from fox.api.presence import Pulse, while_present
from tests.api.wire import in_time

pytestmark = pytest.mark.anyio


class Line:
    """The receiving side of a request whose body has been read."""

    def __init__(self) -> None:
        self.left = asyncio.Event()
        self.extra = [{"type": "http.request", "body": b"", "more_body": False}]

    async def receive(self) -> dict[str, Any]:
        if self.extra:
            return self.extra.pop()
        await self.left.wait()
        return {"type": "http.disconnect"}


async def test_the_block_is_cancelled_once_and_may_await_while_it_cleans_up() -> None:
    line, cleaned = Line(), []
    async with while_present(line.receive):
        line.left.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            cleaned.append(True)
    assert cleaned
    assert not asyncio.current_task().cancelling()  # type: ignore[union-attr]


async def test_a_block_that_ends_first_leaves_nobody_watching() -> None:
    before = asyncio.all_tasks()
    async with while_present(Line().receive):
        await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == before


async def test_an_error_of_the_block_comes_out() -> None:
    with pytest.raises(TimeoutError, match="its own"):
        async with while_present(Line().receive):
            raise TimeoutError("its own")


async def test_a_cancellation_from_outside_comes_out() -> None:
    async def work() -> None:
        async with while_present(Line().receive):
            await asyncio.Event().wait()

    task = asyncio.create_task(work())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_pulse_ends_with_its_block() -> None:
    before = asyncio.all_tasks()
    pings = asyncio.Queue[None]()
    async with Pulse(lambda: pings.put(None), 0.001).beating():
        await in_time(pings.get())
        await in_time(pings.get())
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == before


async def test_a_ping_that_finds_nobody_ends_the_pulse() -> None:
    before, tried = asyncio.all_tasks(), asyncio.Event()

    async def ping() -> None:
        tried.set()
        raise ConnectionResetError

    async with Pulse(ping, 0).beating():
        await in_time(tried.wait())
        await asyncio.sleep(0)
        assert asyncio.all_tasks() == before
