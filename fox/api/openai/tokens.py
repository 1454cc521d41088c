"""POST /tokenize, /detokenize and /apply-template, as llama.cpp's and vLLM's clients send them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from starlette.responses import Response

from fox.api.dressing import dressed
from fox.api.json_text import json_response
from fox.api.openai.schema import ChatRequest
from fox.api.openai.shapes import ModelName, Shape, TokenIds
from fox.api.openai.turn import ask
from fox.api.templates import Templates
from fox.chat import ChatModel
from fox.engine import Engine
from fox.errors import InvalidRequest
from fox.generation import PromptPart


class TokenizeRequest(Shape):
    """`content` is llama.cpp's name for the text, `prompt` vLLM's; either may give `messages` instead. What a text
    begins with is added for vLLM's clients, and for llama.cpp's where they say `add_special`."""

    model: ModelName | None = None
    content: str | None = None
    prompt: str | None = None
    messages: list[dict[str, Any]] | None = None
    add_special: bool | None = None
    add_special_tokens: bool | None = None
    parse_special: bool | None = None
    with_pieces: bool | None = None
    return_token_strs: bool | None = None


class DetokenizeRequest(Shape):
    model: ModelName | None = None
    tokens: TokenIds


class TemplateRequest(ChatRequest):
    model: ModelName | None = None  # type: ignore[assignment]


async def tokenize(asked: TokenizeRequest, prompt: tuple[PromptPart, ...] | None, engine: Engine) -> Response:
    """`prompt`: the conversation, where one was given."""
    text = asked.content if asked.content is not None else asked.prompt
    if prompt is None and text is None:
        raise InvalidRequest("`content` is required", "content")
    said = asked.add_special if asked.content is not None else asked.add_special_tokens
    begins = said if said is not None else asked.content is None
    parts = prompt or (PromptPart(text or "", special=asked.parse_special is not False),)
    found = await engine.tokenize(parts, begins=begins)
    fields: dict[str, Any] = {
        "tokens": list(found.tokens),
        "count": len(found.tokens),
        "max_model_len": engine.info.context_tokens,
    }
    if asked.with_pieces:
        fields["tokens"] = [
            {"id": token, "piece": _piece(piece)}
            for token, piece in zip(found.tokens, found.pieces, strict=True)
        ]
    if asked.return_token_strs:
        fields["token_strs"] = [piece.decode(errors="replace") for piece in found.pieces]
    return json_response(fields)


async def detokenize(asked: DetokenizeRequest, engine: Engine) -> Response:
    """The text under llama.cpp's name and vLLM's."""
    found = await engine.detokenize(asked.tokens)
    text = b"".join(found.pieces).decode(errors="replace")
    return json_response({"content": text, "prompt": text})


def conversation(
    asked: ChatRequest, templates: Templates, system_prompt: str, engine: Engine
) -> tuple[PromptPart, ...]:
    """The prompt that a chat of this request would have."""
    chat: ChatModel = templates.of(engine)
    turn = ask(asked, separate=True)
    messages = dressed(turn.messages, templates.recipe(engine), system_prompt)
    return chat.prepare(replace(turn, messages=messages)).prompt


def template_response(prompt: tuple[PromptPart, ...]) -> Response:
    return json_response({"prompt": "".join(part.text for part in prompt)})


def _piece(piece: bytes) -> str | list[int]:
    """Text, or bytes where it is no text of its own."""
    try:
        return piece.decode()
    except UnicodeDecodeError:
        return list(piece)
