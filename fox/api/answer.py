"""The response that owns its generations: they are asked for in here, told in here, and end with this response."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from fox.api.failures import Refusal, refusal
from fox.api.presence import Pulse, while_present
from fox.api.tally import Tally
from fox.engine import Engine, Generation
from fox.errors import Cancelled, EngineFailed, FoxError
from fox.generation import Delta, Finish, GenerationRequest
from fox.metrics import Metrics
from fox.registry import Registry, Terms

log = logging.getLogger("fox.api")

PING_S = 15.0

Say = Callable[[Delta, int], Awaitable[None]]
Finished = Callable[[Finish, int], Awaitable[None]]


class Listener:
    """Takes no notice of when a piece comes."""

    def heard(self, delta: Delta) -> None:
        return None


class Voice(Protocol):
    """How a dialect tells an answer's choices: `whole` in one piece, the rest as a stream."""

    @property
    def headers(self) -> dict[str, str]: ...
    @property
    def opening(self) -> bytes: ...
    @property
    def ping(self) -> bytes:
        """What may be said while there is nothing to say."""

    def heard(self, delta: Delta) -> None:
        """It has come just now; it is told, or gathered, after this."""

    def piece(self, delta: Delta, choice: int) -> bytes: ...
    def finished(self, finish: Finish, choice: int) -> bytes: ...
    async def ending(self, finishes: Sequence[Finish]) -> bytes: ...
    async def whole(self, said: Sequence[Sequence[Delta]], finishes: Sequence[Finish]) -> Response: ...


class Question(Protocol):
    """A checked request of one dialect. Which engine answers it is known only once there is a lease."""

    @property
    def model(self) -> str: ...
    @property
    def stream(self) -> bool: ...
    @property
    def terms(self) -> Terms:
        """How long the model is to stay, and how large a context it needs."""

    async def requests(self, engine: Engine) -> list[GenerationRequest]:
        """What it asks of this engine: one generation a choice. Raises InvalidRequest."""

    def voice(self, engine: Engine, request: GenerationRequest) -> Voice: ...

    def refused(self, told: Refusal) -> Response:
        """The response to an error before the first byte."""

    def broken(self, told: Refusal) -> bytes:
        """The end of a stream in which an error came up."""


class Answer:
    """An ASGI app for one request whose body has been read.

    It ends in exactly one of: the whole answer, an error told whole, silence because the client has left. From its
    start it watches for that; its generation is cancelled when it returns, whatever the reason.
    """

    def __init__(
        self, question: Question, registry: Registry, metrics: Metrics, ping_s: float = PING_S
    ) -> None:
        self._question = question
        self._registry = registry
        self._ping_s = ping_s
        self._tally = Tally(metrics)
        self._generations: dict[int, Generation] = {}
        self._telling = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            async with while_present(receive):
                await self._answer(scope, receive, send)
        finally:
            for generation in self._generations.values():
                generation.cancel()
            scope["fox.note"] = self._tally.close()

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            response = await self._ask(send)
        except Exception as caught:
            error = _first(caught)
            self._tally.failed(error)
            if not isinstance(error, FoxError):
                log.exception("an answer failed")
            told = refusal(error)
            if self._telling:
                await send(_body(self._question.broken(told), more=False))
                return
            response = self._question.refused(told)
        if response:
            await response(scope, receive, send)

    async def _ask(self, send: Send) -> Response | None:
        """The whole answer, or None if it was streamed."""
        async with self._registry.lease(self._question.model, self._question.terms) as engine:
            self._tally.found(engine.name)
            requests = await self._question.requests(engine)
            voice = self._question.voice(engine, requests[0])
            await self._submit(engine, requests)
            self._tally.admitted()
            if not self._question.stream:
                response = await self._collect(voice)
                response.headers.update(_joined(response.headers, self._notes()))
                return response
            await self._stream(voice, send)
            return None

    async def _submit(self, engine: Engine, requests: Sequence[GenerationRequest]) -> None:
        """All at once, so that they meet in one step. What was taken is known at once, whatever befalls the others."""

        async def submit(choice: int, request: GenerationRequest) -> None:
            self._generations[choice] = await engine.submit(request)

        async with asyncio.TaskGroup() as group:
            for choice, request in enumerate(requests):
                group.create_task(submit(choice, request))

    async def _collect(self, voice: Voice) -> Response:
        said: list[list[Delta]] = [[] for _ in self._generations]

        async def say(delta: Delta, choice: int) -> None:
            voice.heard(delta)
            said[choice].append(delta)

        return await voice.whole(said, await self._listen_to_all(say))

    async def _stream(self, voice: Voice, send: Send) -> None:
        """The head goes out before the first token: a long prompt may take minutes to read."""

        async def say(delta: Delta, choice: int) -> None:
            voice.heard(delta)
            await send(_body(voice.piece(delta, choice)))
            pulse.sent()

        async def finished(finish: Finish, choice: int) -> None:
            await send(_body(voice.finished(finish, choice)))

        async def ping() -> None:
            await send(_body(voice.ping))

        pulse = Pulse(ping, self._ping_s)
        await send(_head(_joined(voice.headers, self._notes())))
        self._telling = True
        await send(_body(voice.opening))
        async with pulse.beating():
            finishes = await self._listen_to_all(say, finished)
        await send(_body(await voice.ending(finishes), more=False))

    async def _listen_to_all(self, say: Say, finished: Finished | None = None) -> list[Finish]:
        """How each choice ended. The first failure ends the answer."""
        if len(self._generations) == 1:
            return [await self._listen(0, say, finished)]
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(self._listen(choice, say, finished))
                for choice in range(len(self._generations))
            ]
        return [task.result() for task in tasks]

    async def _listen(self, choice: int, say: Say, finished: Finished | None) -> Finish:
        """Say every piece. Returns how it ended; raises what it failed with."""
        async for delta in self._generations[choice]:
            self._tally.heard(delta.tokens)
            if delta.text or delta.logprobs or delta.progress:
                await say(delta, choice)
            if delta.finish:
                finish = self._checked(delta.finish)
                if finished:
                    await finished(finish, choice)
                return finish
        raise EngineFailed("the answer ended without a finish")

    def _notes(self) -> dict[str, str]:
        """Nothing is dropped from a prompt or a schema without a signal."""
        first, notes = self._generations[0], {}
        if truncated := max(generation.truncated for generation in self._generations.values()):
            log.warning("%d tokens were cut from the prompt of `%s`", truncated, first.id)
            notes["x-fox-truncated"] = str(truncated)
        if first.warnings:
            log.warning("the grammar of `%s` is not honoured whole: %s", first.id, "; ".join(first.warnings))
            notes["x-fox-warning"] = "; ".join(first.warnings).encode("ascii", "replace").decode()
        return notes

    def _checked(self, finish: Finish) -> Finish:
        if finish.failure:
            raise finish.failure.to_error()
        if finish.reason == "cancelled":
            raise Cancelled("the answer was cancelled")
        if finish.reason == "failed":
            raise EngineFailed("the answer failed")
        self._tally.ended(finish.reason)
        return finish


def _first(error: Exception) -> Exception:
    """The error itself, or the first of those that came up side by side."""
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return error


def _joined(headers: Mapping[str, str], notes: Mapping[str, str]) -> dict[str, str]:
    """What is noted twice is told side by side."""
    return {**headers, **{k: f"{headers[k]}; {v}" if k in headers else v for k, v in notes.items()}}


def _head(headers: dict[str, str]) -> dict[str, Any]:
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    return {"type": "http.response.start", "status": 200, "headers": raw}


def _body(content: bytes, *, more: bool = True) -> dict[str, Any]:
    return {"type": "http.response.body", "body": content, "more_body": more}
