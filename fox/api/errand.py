"""The response to what is asked once and told once, without a stream: vectors, scores, tokens."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from fox.api.failures import Refusal, refusal
from fox.api.presence import while_present
from fox.api.tally import Tally
from fox.engine import Engine
from fox.errors import FoxError, InvalidRequest
from fox.metrics import Metrics
from fox.registry import Registry, Terms

log = logging.getLogger("fox.api")


class Errand:
    """An ASGI app that has `work` done by the engine of `model` (None: the only one there is). It ends when the client
    leaves, and the work with it."""

    def __init__(
        self,
        model: str | None,
        work: Callable[[Engine], Awaitable[Response]],
        registry: Registry,
        metrics: Metrics,
        terms: Terms,
        refused: Callable[[Refusal], Response],
    ) -> None:
        self._model = model
        self._work = work
        self._registry = registry
        self._terms = terms
        self._refused = refused
        self._tally = Tally(metrics)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            async with while_present(receive):
                response = await self._answer()
                await response(scope, receive, send)
        finally:
            scope["fox.note"] = self._tally.close()

    async def _answer(self) -> Response:
        try:
            model = self._model or only_model(self._registry)
            async with self._registry.lease(model, self._terms) as engine:
                self._tally.found(engine.name)
                response = await self._work(engine)
                self._tally.admitted()
                self._tally.ended("stop")
                return response
        except Exception as error:
            self._tally.failed(error)
            if not isinstance(error, FoxError):
                log.exception("an errand failed")
            return self._refused(refusal(error))


def only_model(registry: Registry) -> str:
    """The model that is meant where none is named. Raises InvalidRequest where that is not clear."""
    running = [engine.name for engine in registry.running()]
    names = running if running else [entry.name for entry in registry.catalog.entries()]
    if len(names) != 1:
        raise InvalidRequest("`model` is required: there are several", "model")
    return names[0]
