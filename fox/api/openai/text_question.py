"""What a checked completion asks of the engine that will answer it."""

from __future__ import annotations

import uuid

from msgspec.structs import replace
from starlette.responses import Response

from fox.api.failures import Refusal, openai_response, renamed
from fox.api.gap import gap
from fox.api.openai.events import broken
from fox.api.openai.forms import form
from fox.api.openai.inputs import each
from fox.api.openai.sampling import generation, siblings
from fox.api.openai.text_render import TextVoice
from fox.api.openai.text_schema import CompletionRequest, check
from fox.api.templates import Templates
from fox.engine import Engine
from fox.generation import GenerationRequest, PromptPart


class TextQuestion:
    """The dialect's side of one Answer."""

    def __init__(self, asked: CompletionRequest, priority: int, templates: Templates) -> None:
        check(asked)
        self.model = asked.model
        self.stream = bool(asked.stream)
        self.terms = asked.terms
        self._asked = asked
        self._priority = priority
        self._templates = templates
        self._form = form(asked)
        self._prompts = each(asked.prompt)
        self._echoes: list[str] = []

    async def requests(self, engine: Engine) -> list[GenerationRequest]:
        """All answers to the first prompt, then those to the second."""
        asked = self._asked.over(self._templates.recipe(engine).parameters)
        id_ = f"cmpl-{uuid.uuid4().hex}"
        first = generation(asked, id_, (), engine.info.context_tokens, self._priority)
        compared = asked.made > asked.wanted
        first = replace(
            first, logprobs=asked.logprobs or 0 if compared else asked.logprobs, grammar=self._form
        )
        self._echoes = [await self._echo(prompt, engine) for prompt in self._prompts]
        firsts = [self._of(first, prompt, at, engine) for at, prompt in enumerate(self._prompts)]
        return [one for prompt in firsts for one in siblings(prompt, asked.made)]

    def voice(self, engine: Engine, request: GenerationRequest) -> TextVoice:
        return TextVoice(request.id, engine, self._asked, self._echoes)

    def refused(self, told: Refusal) -> Response:
        """Token ids that are to be echoed are spelled out before they are read."""
        return openai_response(renamed(told, {"tokens": "prompt"}))

    def broken(self, told: Refusal) -> bytes:
        return broken(told)

    def _of(
        self, first: GenerationRequest, prompt: str | tuple[int, ...], at: int, engine: Engine
    ) -> GenerationRequest:
        id_ = f"{first.id}#p{at}" if at else first.id
        if not isinstance(prompt, str):
            return replace(first, id=id_, tokens=prompt)
        suffix = self._asked.suffix
        parts = gap(engine, prompt, suffix, "suffix") if suffix else (PromptPart(prompt, special=True),)
        return replace(first, id=id_, prompt=parts)

    async def _echo(self, prompt: str | tuple[int, ...], engine: Engine) -> str:
        if not self._asked.echo:
            return ""
        if isinstance(prompt, str):
            return prompt
        return b"".join((await engine.detokenize(prompt)).pieces).decode(errors="replace")
