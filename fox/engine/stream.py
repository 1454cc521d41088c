"""One answer as the parent hears it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Self

from fox import errors
from fox.engine.messages import Accepted
from fox.generation import Delta, Failure, Finish, GenerationRequest


class Generation:
    """One answer on its way: iterate over its deltas; the last one carries the finish.

    `truncated` tokens were cut from its prompt, which then had `prompt_tokens`. `warnings`: what of its grammar is not
    honoured.
    """

    def __init__(self, cancel: Callable[[str], object], request: GenerationRequest) -> None:
        self.id = request.id
        self.prompt_tokens = 0
        self.truncated = 0
        self.warnings: tuple[str, ...] = ()
        self.accepted: asyncio.Future[Accepted] = asyncio.get_running_loop().create_future()
        self._cancel = cancel
        self._deltas: deque[Delta] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._finished = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Delta:
        while not self._deltas:
            if self._finished:
                raise StopAsyncIteration
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        return self._deltas.popleft()

    def cancel(self) -> None:
        """Stop computing it. Idempotent; the stream still ends in exactly one finish."""
        if not self._finished:
            self._cancel(self.id)

    def push(self, delta: Delta) -> None:
        """For the engine: the next delta has come."""
        self._deltas.append(delta)
        self._finished = delta.finish is not None
        if self._waiter and not self._waiter.done():
            self._waiter.set_result(None)

    def fail(self, error: errors.FoxError) -> None:
        """For the engine: it will not be answered."""
        if not self.accepted.done():
            self.accepted.set_exception(error)
        self.push(Delta(self.id, "", 0, Finish("failed", failure=Failure(*errors.to_wire(error)))))
