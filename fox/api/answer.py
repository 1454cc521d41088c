"""The response that owns one generation: it is asked for in here, told in here, and ends with this response."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from fox.api.failures import Refusal, refusal
from fox.api.presence import Pulse, while_present
from fox.api.tally import Tally
from fox.engine import Engine, Generation
from fox.errors import EngineFailed, FoxError
from fox.generation import Finish, GenerationRequest
from fox.metrics import Metrics
from fox.registry import Registry

log = logging.getLogger("fox.api")

PING_S = 15.0


class Voice(Protocol):
    """How a dialect tells one answer: `whole` in one piece, the rest as a stream."""

    @property
    def headers(self) -> dict[str, str]: ...
    @property
    def opening(self) -> bytes: ...
    @property
    def ping(self) -> bytes:
        """What may be said while there is nothing to say."""

    def piece(self, text: str) -> bytes: ...
    def ending(self, finish: Finish) -> bytes: ...
    def whole(self, text: str, finish: Finish) -> Response: ...


class Question(Protocol):
    """A checked request of one dialect. Which engine answers it is known only once there is a lease."""

    @property
    def model(self) -> str: ...
    @property
    def stream(self) -> bool: ...

    def request(self, engine: Engine) -> GenerationRequest:
        """What it asks of this engine. Raises InvalidRequest."""

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
        self._generation: Generation | None = None
        self._telling = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            async with while_present(receive):
                await self._answer(scope, receive, send)
        finally:
            if self._generation:
                self._generation.cancel()
            scope["fox.note"] = self._tally.close()

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            response = await self._ask(send)
        except Exception as error:
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
        async with self._registry.lease(self._question.model) as engine:
            self._tally.found(engine.name)
            request = self._question.request(engine)
            voice = self._question.voice(engine, request)
            self._generation = await engine.submit(request)
            self._tally.admitted()
            if not self._question.stream:
                response = await self._collect(self._generation, voice)
                response.headers.update(_notes(self._generation))
                return response
            await self._stream(self._generation, voice, send)
            return None

    async def _collect(self, generation: Generation, voice: Voice) -> Response:
        said: list[str] = []

        async def say(text: str) -> None:
            said.append(text)

        finish = await self._listen(generation, say)
        return voice.whole("".join(said), finish)

    async def _stream(self, generation: Generation, voice: Voice, send: Send) -> None:
        """The head goes out before the first token: a long prompt may take minutes to read."""

        async def say(text: str) -> None:
            await send(_body(voice.piece(text)))
            pulse.sent()

        async def ping() -> None:
            await send(_body(voice.ping))

        pulse = Pulse(ping, self._ping_s)
        await send(_head({**voice.headers, **_notes(generation)}))
        self._telling = True
        await send(_body(voice.opening))
        async with pulse.beating():
            finish = await self._listen(generation, say)
        await send(_body(voice.ending(finish), more=False))

    async def _listen(self, generation: Generation, say: Callable[[str], Awaitable[None]]) -> Finish:
        """Say every piece. Returns how it ended; raises what it failed with."""
        async for delta in generation:
            self._tally.heard(delta.tokens)
            if delta.text:
                await say(delta.text)
            if delta.finish:
                return self._checked(delta.finish)
        raise EngineFailed("the answer ended without a finish")

    def _checked(self, finish: Finish) -> Finish:
        if finish.failure:
            raise finish.failure.to_error()
        if finish.reason not in ("stop", "length"):
            raise EngineFailed(f"the answer was {finish.reason}")
        self._tally.ended(finish.reason)
        return finish


def _notes(generation: Generation) -> dict[str, str]:
    """Nothing is dropped from a prompt without a signal."""
    return {"x-fox-truncated": str(generation.truncated)} if generation.truncated else {}


def _head(headers: dict[str, str]) -> dict[str, Any]:
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    return {"type": "http.response.start", "status": 200, "headers": raw}


def _body(content: bytes, *, more: bool = True) -> dict[str, Any]:
    return {"type": "http.response.body", "body": content, "more_body": more}
