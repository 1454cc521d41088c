"""The routes of this dialect, and those that llama.cpp's and vLLM's clients expect beside it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from fox.api import answer
from fox.api.body import read_body
from fox.api.errand import Errand
from fox.api.openai.embeddings import EmbeddingRequest, embed
from fox.api.openai.parse import parse, read
from fox.api.openai.question import ChatQuestion
from fox.api.openai.rerank import RerankRequest, rerank
from fox.api.openai.sampling import MIDDLE_PRIORITY
from fox.api.openai.schema import ChatRequest
from fox.api.openai.shapes import json_response
from fox.api.openai.tokens import (
    DetokenizeRequest,
    TemplateRequest,
    TokenizeRequest,
    conversation,
    detokenize,
    template_response,
    tokenize,
)
from fox.api.options import ApiOptions
from fox.api.templates import Templates
from fox.engine import Engine
from fox.errors import Draining, FoxError, InvalidRequest
from fox.generation import PromptPart
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
        posts = {
            "/v1/chat/completions": self.chat,
            "/v1/embeddings": self.embeddings,
            "/v1/rerank": self.rerank,
            "/rerank": self.rerank,
            "/tokenize": self.tokenize,
            "/detokenize": self.detokenize,
            "/apply-template": self.apply_template,
        }
        return [
            *(Route(path, endpoint, methods=["POST"]) for path, endpoint in posts.items()),
            Route("/v1/models", self.models),
            Route("/v1/models/{id:path}", self.model),
        ]

    async def chat(self, request: Request) -> answer.Answer:
        with self._door():
            priority = _priority(request)
            asked = parse(await self._body(request), ChatRequest)
            question = ChatQuestion(asked, self._templates, self._options, priority)
        return answer.Answer(question, self._registry, self._metrics, answer.PING_S)

    async def embeddings(self, request: Request) -> Errand:
        with self._door():
            asked = read(EmbeddingRequest, await self._body(request))
        return self._errand(asked.model, partial(embed, asked))

    async def rerank(self, request: Request) -> Errand:
        with self._door():
            asked = read(RerankRequest, await self._body(request))
        return self._errand(asked.model, partial(rerank, asked))

    async def tokenize(self, request: Request) -> Errand:
        with self._door():
            body = await self._body(request)
            asked = read(TokenizeRequest, body)
            chat = None if asked.messages is None else parse(body, TemplateRequest)

        async def work(engine: Engine) -> Response:
            return await tokenize(asked, self._prompt(chat, engine) if chat else None, engine)

        return self._errand(asked.model, work)

    async def detokenize(self, request: Request) -> Errand:
        with self._door():
            asked = read(DetokenizeRequest, await self._body(request))
        return self._errand(asked.model, partial(detokenize, asked))

    async def apply_template(self, request: Request) -> Errand:
        with self._door():
            asked = parse(await self._body(request), TemplateRequest)

        async def work(engine: Engine) -> Response:
            return template_response(self._prompt(asked, engine))

        return self._errand(asked.model, work)

    async def models(self, request: Request) -> Response:
        entries = self._registry.catalog.entries()
        return json_response({"object": "list", "data": [_model(entry) for entry in entries]})

    async def model(self, request: Request) -> Response:
        return json_response(_model(self._registry.catalog.find(request.path_params["id"])))

    @contextmanager
    def _door(self) -> Iterator[None]:
        """What is refused here is counted."""
        try:
            yield
        except FoxError as error:
            self._metrics.rejected("", error.code)
            raise

    async def _body(self, request: Request) -> bytes:
        if request.app.state.draining:
            raise Draining
        return await read_body(request, self._options.max_body_mb)

    def _errand(self, model: str | None, work: Callable[[Engine], Awaitable[Response]]) -> Errand:
        return Errand(model, work, self._registry, self._metrics)

    def _prompt(self, asked: ChatRequest, engine: Engine) -> tuple[PromptPart, ...]:
        return conversation(asked, self._templates, self._options.system_prompt, engine)


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
