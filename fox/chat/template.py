"""A conversation as the prompt its model was trained on: the model's own jinja template, in transformers' sandbox.

What a user wrote can never become a control token. Every spelling of one inside the conversation is fenced by two
noncharacters before rendering; after it, fenced text is a part of its own that is tokenized as plain text. Text
without such spellings stays in one piece, so it tokenizes as it always would, and templates may trim and split.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NoReturn

import jinja2
from jinja2 import nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from fox.errors import InvalidRequest
from fox.generation import PromptPart

OPEN, CLOSE, CUT = "\ufdd0", "\ufdd1", "\ufdd2"
_FENCES = re.compile(f"[{OPEN}{CLOSE}{CUT}]")
_TAKES_PARTS = re.compile(r"content('\]|\"\])?\s+is\s+(not\s+)?(string|iterable|sequence)")


class ChatTemplate:
    """One model's template, compiled once (about 5 ms; a rendering takes 0.15 ms).

    `bos` and `eos` are how the vocabulary spells them; `control_tokens` are all spellings that must not be forged.
    Raises InvalidRequest where the source does not compile.
    """

    def __init__(self, source: str, bos: str, eos: str, control_tokens: Sequence[str]) -> None:
        self._specials = {"bos_token": bos, "eos_token": eos}
        longest_first = sorted(filter(None, control_tokens), key=len, reverse=True)
        self._control = re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")
        self._takes_parts = bool(_TAKES_PARTS.search(source))
        try:
            self._template = _environment().from_string(source)
        except jinja2.TemplateError as error:
            raise InvalidRequest(
                f"the model's chat template does not compile: {error}", "messages"
            ) from error

    def render(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        documents: Sequence[Mapping[str, Any]] | None = None,
        add_generation_prompt: bool = True,
        continues: bool = False,
        kwargs: Mapping[str, Any] | None = None,
    ) -> tuple[PromptPart, ...]:
        """The prompt in parts. `continues`: it ends where the last message does, which is not over.

        Raises InvalidRequest naming `messages` where the template refuses the conversation.
        """
        values = {
            **self._specials,
            **(self._fence(dict(kwargs)) if kwargs else {}),
            "messages": [self._message(m) for m in messages],
            "tools": self._fence(list(tools)) if tools else None,
            "documents": self._fence(list(documents)) if documents else None,
            "add_generation_prompt": add_generation_prompt and not continues,
        }
        if continues:
            values["messages"][-1]["content"] = f"{values['messages'][-1].get('content') or ''}{CUT}"
        try:
            text = self._template.render(values)
        except InvalidRequest:
            raise
        except Exception as error:  # a template may do anything to whatever it is given
            raise InvalidRequest(
                f"the model's chat template refused the messages: {error}", "messages"
            ) from error
        return self._parts(text.rpartition(CUT)[0] if continues else text)

    def _message(self, message: Mapping[str, Any]) -> dict[str, Any]:
        plain = dict(message)
        if isinstance(plain.get("content"), list) and not self._takes_parts:
            plain["content"] = "\n".join(str(part.get("text", "")) for part in plain["content"])
        if plain.get("tool_calls"):
            plain["tool_calls"] = [_with_object_arguments(call) for call in plain["tool_calls"]]
        fenced: dict[str, Any] = self._fence(plain)
        return fenced

    def _fence(self, value: Any) -> Any:
        """The same value with every control token's spelling in its strings between OPEN and CLOSE."""
        if isinstance(value, str):
            text = value if value.isascii() else self._unfenced(value)
            if not self._control.search(text):  # as in nearly all
                return text
            return self._control.sub(lambda found: f"{OPEN}{found[0]}{CLOSE}", text)
        if isinstance(value, dict) or isinstance(value, Mapping):  # noqa: SIM101 - dicts are told 20 times sooner
            return {self._fence(key): self._fence(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self._fence(item) for item in value]
        return value

    @staticmethod
    def _unfenced(text: str) -> str:
        return _FENCES.sub("", text)

    @staticmethod
    def _parts(text: str) -> tuple[PromptPart, ...]:
        """Text with a fence open before it or closing after it is plain, the rest is the template's own.

        A template that cut a fence in two makes more of its own text plain, never a user's text special.
        """
        pieces = [CLOSE, *re.split(f"([{OPEN}{CLOSE}])", text), OPEN]
        return tuple(
            PromptPart(piece, special=(before, after) == (CLOSE, OPEN))
            for before, piece, after in zip(pieces[::2], pieces[1::2], pieces[2::2], strict=False)
            if piece
        )


def _with_object_arguments(call: Mapping[str, Any]) -> dict[str, Any]:
    """A tool call whose arguments, JSON text in OpenAI's dialect, are the object that templates expect."""
    function = call.get("function")
    if not isinstance(function, Mapping) or not isinstance(function.get("arguments"), str):
        return dict(call)
    try:
        arguments = json.loads(function["arguments"] or "{}")
    except ValueError:
        return dict(call)
    return {**call, "function": {**function, "arguments": arguments}}


class _Generation(Extension):
    """`{% generation %}...{% endgeneration %}` marks what a model said, for training; here it is just its content."""

    tags = {"generation"}  # noqa: RUF012 - jinja's own protocol

    def parse(self, parser: Parser) -> nodes.Node | list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def _environment() -> ImmutableSandboxedEnvironment:
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols, _Generation]
    )
    environment.filters["tojson"] = _tojson
    environment.globals["raise_exception"] = _raise_exception
    environment.globals["strftime_now"] = lambda form: datetime.now().astimezone().strftime(form)
    return environment


def _tojson(
    value: Any,
    ensure_ascii: bool = False,  # accepted, not obeyed: escapes would hide the fences
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """JSON as transformers' templates expect it: no HTML escapes, keys in their order."""
    return json.dumps(value, ensure_ascii=False, indent=indent, separators=separators, sort_keys=sort_keys)


def _raise_exception(message: str) -> NoReturn:
    raise InvalidRequest(message, "messages")
