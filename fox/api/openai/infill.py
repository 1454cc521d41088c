"""POST /infill: what stands between two texts, as editors' plugins for llama.cpp ask for it."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Annotated, Any

from msgspec.structs import replace
from pydantic import Field
from starlette.responses import Response

from fox.api.answer import Listener
from fox.api.failures import Refusal, openai_response
from fox.api.gap import gap
from fox.api.json_text import json_response
from fox.api.openai.events import EVENT_STREAM, PING, broken, event
from fox.api.openai.forms import form
from fox.api.openai.sampling import generation
from fox.api.openai.shapes import ModelName, Shape
from fox.api.openai.usage import Stopwatch
from fox.api.openai.wishes import Wishes
from fox.engine import Engine
from fox.generation import Delta, Finish, GenerationRequest, PromptPart

MOST_FILES = 1024


class Snippet(Shape):
    text: str
    filename: str | None = None


class InfillRequest(Wishes):
    """`prompt` is what the gap begins with, `input_extra` what else the model is to know."""

    model: ModelName | None = None  # type: ignore[assignment]
    input_prefix: str
    input_suffix: str
    input_extra: Annotated[list[Snippet], Field(max_length=MOST_FILES)] | None = None
    prompt: str | None = None
    n_predict: Annotated[int, Field(ge=-1)] | None = None

    @property
    def limit(self) -> int | None:
        if self.n_predict is None:
            return super().limit
        return None if self.n_predict == -1 else max(self.n_predict, 1)


class InfillQuestion:
    """The dialect's side of one Answer. `model`: the one that is meant where none is named."""

    def __init__(self, asked: InfillRequest, model: str, priority: int) -> None:
        self.model = model
        self.stream = bool(asked.stream)
        self.terms = asked.terms
        self._asked = asked
        self._priority = priority
        self._form = form(asked)

    async def requests(self, engine: Engine) -> list[GenerationRequest]:
        asked = self._asked
        extra = "".join(
            f"{snippet.filename or 'snippet'}\n{snippet.text}\n\n" for snippet in asked.input_extra or ()
        )
        prompt = gap(engine, asked.input_prefix, asked.input_suffix, "input_suffix")
        prompt = (PromptPart(extra, special=False), *prompt, PromptPart(asked.prompt or "", special=False))
        id_ = f"infill-{uuid.uuid4().hex}"
        request = generation(asked, id_, prompt, engine.info.context_tokens, self._priority)
        return [replace(request, grammar=self._form)]

    def voice(self, engine: Engine, request: GenerationRequest) -> InfillVoice:
        return InfillVoice(engine.name)

    def refused(self, told: Refusal) -> Response:
        return openai_response(told)

    def broken(self, told: Refusal) -> bytes:
        return broken(told)


class InfillVoice(Listener):
    """llama.cpp's own words. A stream's last event tells what the answer cost, and nothing follows it."""

    headers = EVENT_STREAM
    ping = PING
    opening = b""

    def __init__(self, model: str) -> None:
        self._model = model
        self._watch = Stopwatch()

    def piece(self, came: Delta, choice: int) -> bytes:
        self._watch.heard(came.tokens)
        return event({"index": 0, "content": came.text, "stop": False})

    def finished(self, finish: Finish, choice: int) -> bytes:
        return event(self._last("", finish))

    async def ending(self, finishes: Sequence[Finish]) -> bytes:
        return b""

    async def whole(self, said: Sequence[Sequence[Delta]], finishes: Sequence[Finish]) -> Response:
        for came in said[0]:
            self._watch.heard(came.tokens)
        return json_response(self._last("".join(came.text for came in said[0]), finishes[0]))

    def _last(self, text: str, finish: Finish) -> dict[str, Any]:
        usage = finish.usage
        return {
            "index": 0,
            "content": text,
            "stop": True,
            "model": self._model,
            "stop_type": "limit" if finish.reason == "length" else "eos",
            "tokens_predicted": usage.completion_tokens if usage else 0,
            "tokens_evaluated": usage.prompt_tokens if usage else 0,
            "tokens_cached": usage.cached_tokens if usage else 0,
            "timings": self._watch.timings(usage),
        }
