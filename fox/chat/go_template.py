"""A conversation as Ollama's TEMPLATE layers make a prompt of it: Go's text/template, with Ollama's own rules.

A template that reads `.Messages` is executed once. An older one is executed once a turn with `.System`, `.Prompt` and
`.Response`, and the last time only up to `.Response`, where the answer goes. The interpreter is an extra of fox's.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any

from fox.chat.fence import CUT, Fence, prompt_parts
from fox.chat.go_values import Slice, collate, message_record, tool_records
from fox.errors import InvalidRequest
from fox.generation import PromptPart

Think = bool | str | None


class GoTemplate:
    """Ollama's TEMPLATE: compiled once.

    `takes_tools`, `takes_suffix` and `takes_thinking` tell what the template has a place for; `thought` are the tags
    around a thought, where it tells them. Raises InvalidRequest naming `template` where the source does not parse, or
    the extra `gotemplate` is not installed.
    """

    def __init__(self, source: str, control_tokens: Sequence[str]) -> None:
        syntax, engine = _interpreter()
        self._fence = Fence(control_tokens)
        try:
            self._compile(source, syntax, engine)
        except RecursionError as error:
            raise InvalidRequest("template error: nested too deeply", "template") from error

    def _compile(self, source: str, syntax: Any, engine: Any) -> None:
        tree = engine.parsed(source)
        names = syntax.mentioned(tree)
        self._by_messages = "messages" in names
        if not self._by_messages and "response" not in names:
            tree = engine.parsed(source + "{{ .Response }}")
        self._whole = engine.Executable(tree, self._fence, source)
        self._open = engine.Executable(syntax.until_response(tree), self._fence, source)
        self.takes_tools: bool = "tools" in names
        self.takes_suffix: bool = "suffix" in names
        self.thought: tuple[str, str] | None = syntax.thinking_tags(tree)
        self.takes_thinking: bool = self.thought is not None

    def render(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        think: Think = None,
        add_generation_prompt: bool = True,  # accepted, not obeyed: the template itself opens the answer
        continues: bool = False,
    ) -> tuple[PromptPart, ...]:
        """The prompt in parts. `continues`: it ends where the last message does, which is not over.

        Raises InvalidRequest naming `messages` where the template fails on the conversation.
        """
        try:
            text = self._text(messages, tools or (), _thinking(think), continues)
        except Exception as error:  # a template may do anything to whatever it is given
            raise _refusal(error) from error
        return prompt_parts(text.rpartition(CUT)[0] if CUT in text else text)

    def fill(
        self, *, system: str = "", prompt: str = "", suffix: str = "", think: Think = None
    ) -> tuple[PromptPart, ...]:
        """The prompt of one request without a conversation. With a suffix it asks for what goes between the two.

        Raises InvalidRequest naming `messages` where the template fails.
        """
        if not (prompt and suffix):
            turns = (("system", system), ("user", prompt))
            return self.render([{"role": role, "content": text} for role, text in turns if text], think=think)
        values = {"Prompt": prompt, "Suffix": suffix, "Response": "", **_thinking(think)}
        try:
            return prompt_parts(self._whole(self._fence.around(values)))
        except Exception as error:
            raise _refusal(error) from error

    def _text(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]],
        thinking: dict[str, Any],
        continues: bool,
    ) -> str:
        system, collated = collate(messages)
        system, collated = self._fence.around(system), [self._fence.around(plain) for plain in collated]
        if continues and collated:
            collated[-1]["content"] += CUT
        if not self._by_messages:
            return self._turns(collated, thinking)
        values = {
            "System": system,
            "Messages": Slice(map(message_record, collated)),
            "Tools": tool_records(self._fence.around(list(tools))),
            "Response": "",
        }
        return str(self._whole(values | thinking))

    def _turns(self, messages: Sequence[Mapping[str, Any]], thinking: dict[str, Any]) -> str:
        """One execution a turn: a turn is over where a message comes that cannot be part of it."""
        ends_at = {"system": ("Prompt", "Response"), "user": ("Response",)}
        field = {"system": "System", "user": "Prompt", "assistant": "Response"}
        empty = {"System": "", "Prompt": "", "Response": ""}
        text, turn = "", empty
        for message in messages:
            role = message["role"]
            if any(turn[name] for name in ends_at.get(role, ())):
                text, turn = text + self._whole(turn | thinking), empty
            if role in field:
                turn = {**turn, field[role]: message["content"]}
        return str(text + self._open(turn | thinking))


def _thinking(think: Think) -> dict[str, Any]:
    """What templates see of the wish to think. A plain yes is of level `medium`."""
    level = think if isinstance(think, str) else "medium" if think else ""
    return {"Think": bool(think), "ThinkLevel": level, "IsThinkSet": think is not None}


def _refusal(error: Exception) -> InvalidRequest:
    return InvalidRequest(f"template: {error}", "messages")


def _interpreter() -> tuple[Any, Any]:
    """fox's modules that need gotpl. Raises InvalidRequest where it is missing."""
    try:
        importlib.import_module("gotpl")
    except ImportError as error:
        raise InvalidRequest(
            "this model's template is one of Ollama's, which needs the extra `gotemplate`\n"
            'hint: pip install "fox-llm[gotemplate]"',
            "template",
        ) from error
    from fox.chat import go_engine, go_syntax

    return go_syntax, go_engine
