"""The routes of OpenAI's own API, and of its kind."""

from __future__ import annotations

from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from fox.api.answer import Answer
from fox.api.door import Door, priority
from fox.api.errand import Errand
from fox.api.json_text import json_response
from fox.api.openai.embeddings import EmbeddingRequest, embed
from fox.api.openai.parse import parse, read
from fox.api.openai.question import ChatQuestion
from fox.api.openai.rerank import RerankRequest, rerank
from fox.api.openai.schema import ChatRequest
from fox.api.openai.text_question import TextQuestion
from fox.api.openai.text_schema import CompletionRequest
from fox.api.operation import Operation
from fox.registry import ModelEntry, Terms
from fox.registry.keep_alive import seconds


class OpenAI:
    def __init__(self, door: Door) -> None:
        self._door = door

    def operations(self) -> list[Operation]:
        return [
            Operation("POST", "/v1/chat/completions", self.chat, "a chat's next message", ChatRequest, True),
            Operation(
                "POST", "/v1/completions", self.complete, "what follows a text", CompletionRequest, True
            ),
            Operation("POST", "/v1/embeddings", self.embeddings, "texts to vectors", EmbeddingRequest),
            Operation("POST", "/v1/rerank", self.rerank, "documents by how well they answer", RerankRequest),
            Operation("POST", "/rerank", self.rerank, "the same", RerankRequest),
            Operation("GET", "/v1/models", self.models, "the models on this machine"),
            Operation("GET", "/v1/models/{id:path}", self.model, "one of them"),
        ]

    async def chat(self, request: Request) -> Answer:
        door = self._door
        with door.opens():
            asked = parse(ChatRequest, await door.body(request))
            question = ChatQuestion(asked, door.templates, door.options, priority(request))
        return door.answer(question)

    async def complete(self, request: Request) -> Answer:
        with self._door.opens():
            asked = parse(CompletionRequest, await self._door.body(request))
            question = TextQuestion(asked, priority(request), self._door.templates)
        return self._door.answer(question)

    async def embeddings(self, request: Request) -> Errand:
        with self._door.opens():
            asked = read(EmbeddingRequest, await self._door.body(request))
            terms = Terms(seconds(asked.keep_alive))
        return self._door.errand(asked.model, partial(embed, asked), terms=terms)

    async def rerank(self, request: Request) -> Errand:
        with self._door.opens():
            asked = read(RerankRequest, await self._door.body(request))
        return self._door.errand(asked.model, partial(rerank, asked))

    async def models(self, request: Request) -> Response:
        entries = self._door.registry.catalog.entries()
        return json_response({"object": "list", "data": [_model(entry) for entry in entries]})

    async def model(self, request: Request) -> Response:
        return json_response(_model(self._door.registry.catalog.find(request.path_params["id"])))


def _model(entry: ModelEntry) -> dict[str, Any]:
    return {"id": entry.name, "object": "model", "created": int(entry.modified_at), "owned_by": "fox"}
