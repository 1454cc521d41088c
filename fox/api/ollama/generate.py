"""POST /api/generate: what a checked request asks of its engine."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from fox.api.dressing import dressed
from fox.api.gap import gap
from fox.api.json_text import json_response
from fox.api.ollama.asking import Told, Wanted
from fox.api.ollama.clock import now
from fox.api.ollama.schema import GenerateRequest
from fox.api.ollama.voice import Generating, Voice
from fox.api.templates import Templates
from fox.chat import Ask, Content, Piece, Turn
from fox.chat.go_template import GoTemplate
from fox.engine import Engine
from fox.errors import InvalidRequest
from fox.generation import GenerationRequest, PromptPart


class Verbatim:
    """Reads nothing into a text."""

    def feed(self, text: str) -> list[Piece]:
        return [Content(text)] if text else []

    def finish(self, truncated: bool = False) -> list[Piece]:
        return []


class GenerateQuestion(Told):
    """The dialect's side of one Answer."""

    def __init__(self, wanted: Wanted, templates: Templates, system_prompt: str) -> None:
        assert isinstance(wanted.asked, GenerateRequest)
        self.model = wanted.facts.entry.name
        self.stream = wanted.asked.stream
        self.terms = wanted.terms
        self._wanted = wanted
        self._asked = wanted.asked
        self._templates = templates
        self._system_prompt = system_prompt
        self._turn: Turn
        self._engine: Engine
        self._request: GenerationRequest

    async def requests(self, engine: Engine) -> list[GenerationRequest]:
        self._wanted.clock.loaded()
        self._engine, self._turn = engine, self._prepared(engine)
        taken, asked = self._turn, self._asked
        tokens: tuple[int, ...] = ()
        if asked.context or asked.raw:
            tokens = (*asked.context, *(await engine.tokenize(taken.prompt, begins=False)).tokens)
        self._request = self._wanted.request(taken, tokens=tokens)
        return [self._request]

    def voice(self, engine: Engine, request: GenerationRequest) -> Voice:
        return Voice(
            self._wanted,
            Generating(),
            self._turn.reader(),
            remember=None if self._asked.raw else self._context,
        )

    async def rendered(self, engine: Engine) -> Response:
        """What the engine would be asked."""
        text = "".join(part.text for part in self._prepared(engine).prompt)
        fields = {"model": self._asked.asked, "created_at": now(), "response": "", "done": False}
        return json_response({**fields, "_debug_info": {"rendered_template": text}})

    def _prepared(self, engine: Engine) -> Turn:
        asked = self._asked
        if asked.raw:
            return self._bare((PromptPart(asked.prompt, special=True),))
        if asked.template:
            return self._bare(self._filled(_compiled(asked.template, engine)), engine)
        if asked.suffix:
            return self._bare(self._gap(engine))
        return self._templates.of(engine).prepare(self._ask(engine))

    def _ask(self, engine: Engine) -> Ask:
        wanted, recipe = self._wanted, self._templates.recipe(engine)
        asked = self._asked
        messages: list[dict[str, Any]] = [{"role": "user", "content": asked.prompt}]
        if asked.system:
            messages.insert(0, {"role": "system", "content": asked.system})
        turns = messages if asked.context else dressed(messages, recipe, self._system_prompt)
        return Ask(messages=turns, form=wanted.form, thinking=wanted.thinking, effort=wanted.effort)

    def _bare(self, prompt: tuple[PromptPart, ...], engine: Engine | None = None) -> Turn:
        """A prompt as it is. `engine`: what it answers is read as that of a chat."""
        reader: Any = Verbatim
        if engine:
            chat = self._templates.of(engine)
            reader = lambda: chat.family.reader((), chat.family.thought if chat.thinks else None)  # noqa: E731
        return Turn(prompt=prompt, shown=(), grammar=self._wanted.form, budget=None, reader=reader)

    def _filled(self, template: GoTemplate) -> tuple[PromptPart, ...]:
        asked, recipe = self._asked, self._wanted.facts.recipe
        think = self._wanted.effort or self._wanted.thinking
        system = asked.system or recipe.system
        return template.fill(system=system, prompt=asked.prompt, suffix=asked.suffix, think=think)

    def _gap(self, engine: Engine) -> tuple[PromptPart, ...]:
        go = self._templates.of(engine).go
        if go and go.takes_suffix:
            return self._filled(go)
        if engine.info.fim is None:
            raise InvalidRequest(f"{self._wanted.facts.full_name} does not support insert", "suffix")
        return gap(engine, self._asked.prompt, self._asked.suffix, "suffix")

    async def _context(self, answer: str) -> list[int]:
        """Token ids of all that was said, to go on from."""
        said = PromptPart(answer, special=True)
        if self._request.tokens:
            return [*self._request.tokens, *(await self._engine.tokenize((said,), begins=False)).tokens]
        return list((await self._engine.tokenize((*self._turn.prompt, said), begins=True)).tokens)


def _compiled(source: str, engine: Engine) -> GoTemplate:
    return GoTemplate(source, engine.info.control_tokens)


def check_raw(asked: GenerateRequest) -> None:
    if asked.raw and (asked.template or asked.system or asked.context):
        raise InvalidRequest("raw mode does not support template, system, or context", "raw")
