"""The routes that clients of llama.cpp and vLLM expect beside OpenAI's."""

from __future__ import annotations

from functools import partial

from starlette.requests import Request
from starlette.responses import Response

from fox.api.answer import Answer
from fox.api.door import Door, priority
from fox.api.errand import Errand, only_model
from fox.api.openai.infill import InfillQuestion, InfillRequest
from fox.api.openai.parse import parse, read
from fox.api.openai.schema import ChatRequest
from fox.api.openai.state import cancel, props, slots
from fox.api.openai.tokens import (
    DetokenizeRequest,
    TemplateRequest,
    TokenizeRequest,
    conversation,
    detokenize,
    template_response,
    tokenize,
)
from fox.api.operation import Operation
from fox.engine import Engine
from fox.generation import PromptPart


class Beside:
    def __init__(self, door: Door) -> None:
        self._door = door

    def operations(self) -> list[Operation]:
        return [
            Operation("POST", "/tokenize", self.tokenize, "a text's or chat's tokens", TokenizeRequest),
            Operation("POST", "/detokenize", self.detokenize, "what tokens spell", DetokenizeRequest),
            Operation(
                "POST", "/apply-template", self.apply_template, "a chat as its prompt", TemplateRequest
            ),
            Operation("POST", "/infill", self.infill, "what stands between two texts", InfillRequest, True),
            Operation("GET", "/props", self.props, "what a model is and how it is run"),
            Operation("GET", "/slots", self.slots, "what the engines are at"),
            Operation("POST", "/v1/cancel/{id}", self.cancel, "end an answer that is being made"),
        ]

    async def tokenize(self, request: Request) -> Errand:
        with self._door.opens():
            body = await self._door.body(request)
            asked = read(TokenizeRequest, body)
            chat = None if asked.messages is None else parse(TemplateRequest, body)

        async def work(engine: Engine) -> Response:
            return await tokenize(asked, self._prompt(chat, engine) if chat else None, engine)

        return self._door.errand(asked.model, work)

    async def detokenize(self, request: Request) -> Errand:
        with self._door.opens():
            asked = read(DetokenizeRequest, await self._door.body(request))
        return self._door.errand(asked.model, partial(detokenize, asked))

    async def apply_template(self, request: Request) -> Errand:
        with self._door.opens():
            asked = parse(TemplateRequest, await self._door.body(request))

        async def work(engine: Engine) -> Response:
            return template_response(self._prompt(asked, engine))

        return self._door.errand(asked.model, work)

    async def infill(self, request: Request) -> Answer:
        with self._door.opens():
            asked = parse(InfillRequest, await self._door.body(request))
            model = asked.model or only_model(self._door.registry)
            question = InfillQuestion(asked, model, priority(request))
        return self._door.answer(question)

    async def props(self, request: Request) -> Errand:
        return self._door.errand(request.query_params.get("model"), props)

    async def slots(self, request: Request) -> Response:
        return slots(self._door.registry.running())

    async def cancel(self, request: Request) -> Response:
        return cancel(self._door.registry.running(), request.path_params["id"])

    def _prompt(self, asked: ChatRequest, engine: Engine) -> tuple[PromptPart, ...]:
        return conversation(asked, self._door.templates, self._door.options.system_prompt, engine)
