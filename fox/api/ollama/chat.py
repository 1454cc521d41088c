"""POST /api/chat: what a checked request asks of its engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from starlette.responses import Response

from fox.api.dressing import dressed
from fox.api.json_text import json_response
from fox.api.ollama.asking import Told, Wanted
from fox.api.ollama.clock import now
from fox.api.ollama.schema import ChatRequest, Message
from fox.api.ollama.voice import Chatting, Voice
from fox.api.templates import Templates
from fox.chat import Ask, Turn
from fox.engine import Engine
from fox.errors import FoxError, InvalidRequest
from fox.generation import GenerationRequest, PromptPart

Turns = Sequence[Mapping[str, Any]]


class ChatQuestion(Told):
    """The dialect's side of one Answer."""

    def __init__(self, wanted: Wanted, templates: Templates, system_prompt: str) -> None:
        assert isinstance(wanted.asked, ChatRequest)
        self.model = wanted.facts.entry.name
        self.stream = wanted.asked.stream
        self.terms = wanted.terms
        self._wanted = wanted
        self._asked = wanted.asked
        self._templates = templates
        self._system_prompt = system_prompt
        choice, only = chosen(wanted.asked)
        self._ask = Ask(
            messages=[turn(message) for message in wanted.asked.messages],
            tools=tools(wanted.asked.tools),
            choice=choice,
            only=only,
            form=wanted.form,
            thinking=wanted.thinking,
            effort=wanted.effort,
        )
        self._turn: Turn
        self._dropped = 0

    async def requests(self, engine: Engine) -> list[GenerationRequest]:
        self._wanted.clock.loaded()
        self._turn = taken = await self._fitted(engine)
        keep = await self._system_tokens(engine)
        return [self._wanted.request(taken, keep=keep)]

    def voice(self, engine: Engine, request: GenerationRequest) -> Voice:
        return Voice(
            self._wanted,
            Chatting(),
            self._turn.reader(),
            headers={"x-fox-truncated": str(self._dropped)} if self._dropped else None,
        )

    async def rendered(self, engine: Engine) -> Response:
        """What the engine would be asked."""
        taken = await self._fitted(engine)
        text = "".join(part.text for part in taken.prompt)
        fields = {"model": self._asked.asked, "created_at": now(), "message": {"role": "", "content": ""}}
        return json_response({**fields, "done": False, "_debug_info": {"rendered_template": text}})

    def _prepared(self, engine: Engine, messages: Turns) -> Turn:
        recipe = self._templates.recipe(engine)
        return self._templates.of(engine).prepare(
            replace(self._ask, messages=dressed(messages, recipe, self._system_prompt))
        )

    async def _fitted(self, engine: Engine) -> Turn:
        """The turn without as many of its oldest messages as do not fit; system messages and the last one stay."""
        messages = self._ask.messages
        whole = self._prepared(engine, messages)
        window = min(
            self._wanted.options.context_tokens or engine.info.context_tokens, engine.info.context_tokens
        )
        if not self._asked.truncate or (before := await _length(engine, whole.prompt, window)) < window:
            return whole
        old = [at for at, one in enumerate(messages[:-1]) if one["role"] != "system"]
        least, most = 1, len(old)
        kept, length = whole, before
        while least <= most:
            middle = (least + most) // 2
            dropped = set(old[:middle])
            shorter = self._prepared(engine, [one for at, one in enumerate(messages) if at not in dropped])
            tokens = await _length(engine, shorter.prompt, window)
            if tokens < window or middle == len(old):
                kept, length = shorter, tokens
            if tokens < window:
                most = middle - 1
            else:
                least = middle + 1
        self._dropped = before - length
        return kept

    async def _system_tokens(self, engine: Engine) -> int | None:
        """What a rolling window must not lose: the tokens that the system message takes."""
        recipe = self._templates.recipe(engine)
        messages = dressed(self._ask.messages, recipe, self._system_prompt)
        if not (self._asked.shift and messages and messages[0]["role"] == "system"):
            return None
        alone = replace(self._ask, messages=messages[:1], generation_prompt=False)
        try:
            prompt = self._templates.of(engine).render(alone, ())
        except FoxError:
            return None
        return len((await engine.tokenize(prompt, begins=True)).tokens)


async def _length(engine: Engine, prompt: tuple[PromptPart, ...], enough: int) -> int:
    """Tokens of a prompt; how many bytes it has, where those are fewer than `enough` tokens could have."""
    size = sum(len(part.text.encode(errors="replace")) for part in prompt) + 1
    return size if size < enough else len((await engine.tokenize(prompt, begins=True)).tokens)


def turn(message: Message) -> dict[str, Any]:
    """A message as templates know it. Absent fields are absent: templates ask whether they are defined."""
    told: dict[str, Any] = {"role": message.role.lower(), "content": message.content}
    if message.thinking:
        told |= {"reasoning_content": message.thinking, "thinking": message.thinking}
    if message.tool_calls:
        told["tool_calls"] = [
            {
                **({"id": call.id} if call.id else {}),
                "type": "function",
                "function": {"name": call.function.name, "arguments": call.function.arguments},
            }
            for call in message.tool_calls
        ]
    if message.tool_name:
        told |= {"name": message.tool_name, "tool_name": message.tool_name}
    return {**told, "tool_call_id": message.tool_call_id} if message.tool_call_id else told


def tools(given: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Each name once; whatever else a tool says of itself stays as it is."""
    named = {tool["function"]["name"]: {"type": "function", **tool} for tool in given}
    return list(named.values())


def chosen(asked: ChatRequest) -> tuple[Any, frozenset[str] | None]:
    """How far tools are to be called, and which: OpenAI's `tool_choice`. Raises InvalidRequest."""
    wanted = asked.tool_choice
    names = {tool["function"]["name"] for tool in asked.tools}
    if wanted in (None, "", "auto", "none"):
        return wanted or "auto", None
    if isinstance(wanted, dict) and isinstance(wanted.get("function"), dict):
        wanted = wanted["function"].get("name")
    if wanted in ("required", "any"):
        only = None
    elif isinstance(wanted, str) and wanted in names:
        only = frozenset([wanted])
    else:
        raise InvalidRequest(f"`tool_choice`: there is no tool `{str(wanted)[:64]}`", "tool_choice")
    if not names:
        raise InvalidRequest("`tool_choice`: there are no `tools` to choose from", "tool_choice")
    return "required", only
