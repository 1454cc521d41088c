"""The routes under /v1."""

from __future__ import annotations

from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from fox.api import answer
from fox.api.body import read_body
from fox.api.openai.parse import parse
from fox.api.openai.question import ChatQuestion
from fox.api.openai.sampling import MIDDLE_PRIORITY
from fox.api.openai.schema import ChatRequest
from fox.api.options import ApiOptions
from fox.api.templates import Templates
from fox.errors import Draining, FoxError, InvalidRequest
from fox.metrics import Metrics
from fox.registry import ModelEntry, Registry

HIGHEST_PRIORITY = 255


class OpenAI:
    """What OpenAI's clients call."""

    def __init__(self, registry: Registry, metrics: Metrics, options: ApiOptions) -> None:
        self._registry = registry
        self._metrics = metrics
        self._options = options
        self._templates = Templates(options.tool_call_parser)

    def routes(self) -> list[Route]:
        return [
            Route("/v1/chat/completions", self.chat, methods=["POST"]),
            Route("/v1/models", self.models),
            Route("/v1/models/{id:path}", self.model),
        ]

    async def chat(self, request: Request) -> answer.Answer:
        try:
            priority = _priority(request)
            asked = await self._understood(request)
            question = ChatQuestion(asked, self._templates, self._options, priority)
        except FoxError as error:
            self._metrics.rejected("", error.code)
            raise
        return answer.Answer(question, self._registry, self._metrics, answer.PING_S)

    async def models(self, request: Request) -> Response:
        entries = self._registry.catalog.entries()
        return _json({"object": "list", "data": [_model(entry) for entry in entries]})

    async def model(self, request: Request) -> Response:
        return _json(_model(self._registry.catalog.find(request.path_params["id"])))

    async def _understood(self, request: Request) -> ChatRequest:
        if request.app.state.draining:
            raise Draining
        return parse(await read_body(request, self._options.max_body_mb))


def _priority(request: Request) -> int:
    """The header's priority; the body's own goes before it. Raises InvalidRequest."""
    given = request.headers.get("x-fox-priority") or str(MIDDLE_PRIORITY)
    if not (given.isascii() and given.isdecimal() and int(given[:4]) <= HIGHEST_PRIORITY):
        raise InvalidRequest(
            "`x-fox-priority`: input should be a whole number from 0 to 255", "x-fox-priority"
        )
    return int(given)


def _model(entry: ModelEntry) -> dict[str, Any]:
    return {"id": entry.name, "object": "model", "created": int(entry.modified_at), "owned_by": "fox"}


def _json(fields: dict[str, Any]) -> Response:
    return Response(orjson.dumps(fields), media_type="application/json")
