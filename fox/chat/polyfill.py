"""Tools for models whose template knows none: described in the system message, called as the Hermes models do."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

INTRODUCTION = (
    "You may call one or more functions to help with the user's request. They are described here:\n<tools>\n{tools}\n"
    "</tools>\n\nTo call one, write its name and arguments as a JSON object between these tags:\n"
    '<tool_call>\n{{"name": "...", "arguments": {{...}}}}\n</tool_call>'
)

Messages = list[Mapping[str, Any]]


def spell_out_tools(messages: Messages, tools: Sequence[Mapping[str, Any]]) -> Messages:
    """The same conversation in words that every template has: calls and results become text."""
    told = [_told(message) for message in messages]
    if not tools:
        return told
    introduction = INTRODUCTION.format(tools="\n".join(map(_line, tools)))
    if told and told[0].get("role") == "system":
        first = {**told[0], "content": f"{_text(told[0])}\n\n{introduction}"}
        return [first, *told[1:]]
    return [{"role": "system", "content": introduction}, *told]


def _told(message: Mapping[str, Any]) -> Mapping[str, Any]:
    if message.get("role") == "tool":
        return {"role": "user", "content": f"<tool_response>\n{_text(message)}\n</tool_response>"}
    if calls := message.get("tool_calls"):
        parts = [_text(message), *map(_call, calls)]
        kept = {name: value for name, value in message.items() if name != "tool_calls"}
        return {**kept, "content": "\n".join(filter(None, parts))}
    return message


def _call(call: Mapping[str, Any]) -> str:
    function = call["function"]
    arguments = function.get("arguments") or "{}"
    if isinstance(arguments, str):
        with suppress(ValueError):
            arguments = json.loads(arguments)
    return f"<tool_call>\n{_line({'name': function['name'], 'arguments': arguments})}\n</tool_call>"


def _text(message: Mapping[str, Any]) -> str:
    content = message.get("content") or ""
    return content if isinstance(content, str) else "\n".join(str(part.get("text", "")) for part in content)


def _line(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False)
