"""The routes of Ollama's API that ask a model for something."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from fox.api.door import Door, priority
from fox.api.failures import refusal
from fox.api.json_text import json_response
from fox.api.ollama.asking import Wanted, check_top_logprobs
from fox.api.ollama.chat import ChatQuestion
from fox.api.ollama.clock import Clock, now
from fox.api.ollama.desk import Desk, check_can_talk, check_images, tagged
from fox.api.ollama.embed import Embedding, LegacyEmbedding
from fox.api.ollama.facts import Facts
from fox.api.ollama.failures import error_response, ollama_response
from fox.api.ollama.generate import GenerateQuestion, check_raw
from fox.api.ollama.listing import running, tags
from fox.api.ollama.schema import (
    Asking,
    ChatRequest,
    EmbeddingsRequest,
    EmbedRequest,
    GenerateRequest,
    ShowRequest,
)
from fox.api.ollama.shapes import read
from fox.api.ollama.show import show
from fox.api.ollama.voice import Chatting, Generating, Wording
from fox.api.operation import Operation
from fox.engine import Engine
from fox.errors import FoxError, InvalidRequest, ModelLoadFailed, ModelNotFound
from fox.registry import Terms
from fox.registry.keep_alive import seconds

Handler = Callable[[Any, Request], Awaitable[Any]]


def told(handler: Handler) -> Handler:
    """Refusals in this dialect's words; they are counted at the door."""

    async def tell(self: Any, request: Request) -> Any:
        try:
            with self.door.opens():
                return await handler(self, request)
        except FoxError as error:
            return ollama_response(refusal(error))

    return tell


class Ollama:
    def __init__(self, door: Door, desk: Desk) -> None:
        self.door = door
        self._desk = desk

    def operations(self) -> list[Operation]:
        return [
            Operation(
                "POST", "/api/chat", self.chat, "a chat's next message, in Ollama's words", ChatRequest, True
            ),
            Operation("POST", "/api/generate", self.generate, "what follows a prompt", GenerateRequest, True),
            Operation("POST", "/api/embed", self.embed, "texts to vectors, in Ollama's words", EmbedRequest),
            Operation("POST", "/api/embeddings", self.embeddings, "one text to a vector", EmbeddingsRequest),
            Operation("POST", "/api/show", self.show, "all that a model says of itself", ShowRequest),
            Operation("GET", "/api/tags", self.tags, "the models on this machine, in Ollama's words"),
            Operation("GET", "/api/ps", self.ps, "the models in memory"),
        ]

    @told
    async def chat(self, request: Request) -> Any:
        asked = read(ChatRequest, await self.door.body(request))
        check_top_logprobs(asked)
        if not asked.asked:
            raise InvalidRequest("model is required", "model")
        facts = self._desk.facts(asked.asked)
        if not asked.messages and seconds(asked.keep_alive) == 0:
            return await self._unload(asked, facts, Chatting())
        check_can_talk(facts, asked.asked, "chat")
        check_images(facts, asked, any(message.images for message in asked.messages))
        wanted = Wanted(asked, facts, priority(request))
        if not asked.messages:
            return self._load(asked, facts, wanted.terms, Chatting())
        question = ChatQuestion(wanted, self.door.templates, self.door.options.system_prompt)
        return self._asked(question, asked)

    @told
    async def generate(self, request: Request) -> Any:
        asked = read(GenerateRequest, await self.door.body(request))
        check_top_logprobs(asked)
        if not asked.asked:
            raise ModelNotFound("")
        facts = self._desk.facts(asked.asked)
        empty = not asked.prompt and not asked.suffix
        if empty and seconds(asked.keep_alive) == 0:
            return await self._unload(asked, facts, Generating())
        check_raw(asked)
        check_can_talk(facts, asked.asked, "generate")
        check_images(facts, asked, bool(asked.images))
        wanted = Wanted(asked, facts, priority(request))
        if empty:
            return self._load(asked, facts, wanted.terms, Generating())
        question = GenerateQuestion(wanted, self.door.templates, self.door.options.system_prompt)
        return self._asked(question, asked)

    def _asked(self, question: ChatQuestion | GenerateQuestion, asked: Asking) -> Any:
        if asked.debug_render_only:
            return self._errand(question.model, question.rendered, question.terms)
        return self.door.answer(question)

    @told
    async def embed(self, request: Request) -> Any:
        clock = Clock()
        asked = read(EmbedRequest, await self.door.body(request))
        if not asked.asked:
            raise ModelNotFound("")
        try:
            entry = self._desk.entry(asked.asked)
        except ModelNotFound:
            return error_response(404, f'model "{asked.asked}" not found, try pulling it first')
        terms = Terms(seconds(asked.keep_alive), None)
        return self._errand(entry.name, Embedding(asked, clock), terms)

    @told
    async def embeddings(self, request: Request) -> Any:
        asked = read(EmbeddingsRequest, await self.door.body(request))
        if not asked.asked:
            raise InvalidRequest("model is required", "model")
        try:
            entry = self._desk.entry(asked.asked)
        except ModelNotFound:
            return error_response(404, f'model "{asked.asked}" not found, try pulling it first')
        return self._errand(entry.name, LegacyEmbedding(asked), Terms(seconds(asked.keep_alive), None))

    @told
    async def show(self, request: Request) -> Any:
        asked = read(ShowRequest, await self.door.body(request))
        if not asked.asked:
            raise InvalidRequest("model is required", "model")
        try:
            facts = await asyncio.to_thread(self._desk.facts, asked.asked)
        except ModelNotFound as error:
            raise ModelNotFound(tagged(asked.asked), *error.args[1:]) from None
        if facts.problem:
            raise ModelLoadFailed(facts.entry.name, facts.problem)
        agent = request.headers.get("user-agent", "")
        return json_response(await asyncio.to_thread(show, facts, asked, agent))

    @told
    async def tags(self, request: Request) -> Any:
        return json_response(await asyncio.to_thread(tags, self.door.registry.catalog, self._desk.shelf))

    @told
    async def ps(self, request: Request) -> Any:
        return json_response(running(self.door.registry, self._desk.shelf))

    def _errand(self, model: str, work: Callable[[Engine], Awaitable[Response]], terms: Terms) -> Any:
        return self.door.errand(model, work, terms=terms, refused=ollama_response)

    def _load(self, asked: Asking, facts: Facts, terms: Terms, wording: Wording) -> Any:
        async def loaded(engine: Engine) -> Response:
            return _done(asked.asked, wording, "load")

        return self._errand(facts.entry.name, loaded, terms)

    async def _unload(self, asked: Asking, facts: Facts, wording: Wording) -> Response:
        with suppress(ModelNotFound):
            await self.door.registry.unload(facts.entry.name)
        return _done(asked.asked, wording, "unload")


def _done(model: str, wording: Wording, reason: str) -> Response:
    fields = {"model": model, "created_at": now(), **wording.said(), "done": True, "done_reason": reason}
    return json_response(fields)
