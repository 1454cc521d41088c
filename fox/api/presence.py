"""Whether the client is still there: what is done for it ends when it leaves, and quiet streams show signs of life."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

from starlette.types import Receive


@asynccontextmanager
async def while_present(receive: Receive) -> AsyncIterator[None]:
    """Cancels the block when the client leaves; it then ends without an error. The body must have been read.

    `asyncio.timeout` is the cancel scope: it cancels once, so that what the block leaves may await while it cleans up.
    """
    try:
        async with asyncio.timeout(None) as block:
            watch = asyncio.create_task(_watch(receive, block))
            try:
                yield
            finally:
                watch.cancel()
    except TimeoutError:
        if not block.expired():
            raise


async def _watch(receive: Receive, block: asyncio.Timeout) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    block.reschedule(0)


class Pulse:
    """Calls `ping` whenever nothing was sent for `every_s` seconds. `sent()` is to be called after each sending.

    The clock is looked at once a sending and no timer is moved: a timer a token would cost more than the token.
    """

    def __init__(self, ping: Callable[[], Awaitable[None]], every_s: float) -> None:
        self._ping = ping
        self._every_s = every_s
        self._now = asyncio.get_running_loop().time
        self._sent_at = self._now()

    def sent(self) -> None:
        self._sent_at = self._now()

    @asynccontextmanager
    async def beating(self) -> AsyncIterator[None]:
        """Pings come while the block runs and never after it."""
        beat = asyncio.create_task(self._beat())
        try:
            yield
        finally:
            beat.cancel()

    async def _beat(self) -> None:
        with suppress(OSError):  # the client left: `while_present` sees to that
            while True:
                quiet_s = self._now() - self._sent_at
                if quiet_s >= self._every_s:
                    await self._ping()
                    self.sent()
                else:
                    await asyncio.sleep(self._every_s - quiet_s)
