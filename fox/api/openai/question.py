"""What a checked chat request asks of the engine that will answer it."""

from __future__ import annotations

import dataclasses
import uuid

from msgspec.structs import replace
from starlette.responses import Response

from fox.api.door import MIDDLE_PRIORITY
from fox.api.dressing import dressed
from fox.api.failures import Refusal, openai_response, renamed
from fox.api.openai.events import broken
from fox.api.openai.render import ChatVoice
from fox.api.openai.sampling import generation, siblings
from fox.api.openai.schema import ChatRequest, Content
from fox.api.openai.turn import ask
from fox.api.options import ApiOptions
from fox.api.templates import Templates
from fox.chat import Turn
from fox.chat.reading import Reader
from fox.engine import Engine
from fox.generation import GenerationRequest


class ChatQuestion:
    """The dialect's side of one Answer."""

    def __init__(
        self, asked: ChatRequest, templates: Templates, options: ApiOptions, priority: int = MIDDLE_PRIORITY
    ) -> None:
        self.model = asked.model
        self.stream = bool(asked.stream)
        self._asked = asked
        self.terms = asked.terms
        self._ask = ask(asked, separate=options.reasoning_format != "none")
        self._system_prompt = options.system_prompt
        self._templates = templates
        self._priority = priority
        self._turn: Turn

    async def requests(self, engine: Engine) -> list[GenerationRequest]:
        """One generation a choice; the engine computes their prompt once. Each has a seed of its own."""
        recipe = self._templates.recipe(engine)
        messages = dressed(self._ask.messages, recipe, self._system_prompt)
        turn = self._templates.of(engine).prepare(dataclasses.replace(self._ask, messages=messages))
        asked = self._asked.over(recipe.parameters)
        self._turn = turn
        id_ = f"chatcmpl-{uuid.uuid4().hex}"
        first = replace(
            generation(asked, id_, turn.prompt, engine.info.context_tokens, self._priority),
            logprobs=(asked.top_logprobs or 0) if asked.logprobs else None,
            shown=turn.shown,
            grammar=turn.grammar,
            budget=turn.budget,
            progress=self.stream and bool(asked.return_progress),
            prediction=_text(asked.prediction.content) if asked.prediction else "",
        )
        return siblings(first, asked.n or 1)

    def voice(self, engine: Engine, request: GenerationRequest) -> ChatVoice:
        readers = [self.reader() for _ in range(self._asked.n or 1)]
        return ChatVoice(
            request.id,
            engine,
            readers,
            include_usage=self._asked.includes_usage,
            timings=bool(self._asked.timings_per_token),
        )

    def reader(self) -> Reader:
        """One for each choice, once the turn is prepared."""
        return self._turn.reader()

    def refused(self, told: Refusal) -> Response:
        """What the engine says of the prompt is said of the messages."""
        return openai_response(renamed(told, {"prompt": "messages"}))

    def broken(self, told: Refusal) -> bytes:
        return broken(told)


def _text(content: Content) -> str:
    return content if isinstance(content, str) else "".join(part.text or "" for part in content)
