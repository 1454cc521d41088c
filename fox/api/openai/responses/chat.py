"""A request for a response as the body of the chat that answers it."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from fox.api.failures import renamed_fields
from fox.api.openai.responses.items import messages
from fox.api.openai.responses.schema import Item, ResponsesRequest
from fox.api.openai.wishes import Wishes
from fox.errors import InvalidRequest

LOGPROBS = "message.output_text.logprobs"
SAME = {*Wishes.model_fields, "chat_template_kwargs", "reasoning_budget", "parallel_tool_calls"}
SAME -= {"response_format"}  # here it is called `text.format`
# a chat's fields, and those of a response that they come from
NAMES = {
    "prompt": "input",
    "messages": "input",
    "response_format.json_schema.schema": "text.format.schema",
    "response_format.json_schema": "text.format",
    "response_format": "text.format",
    "tool_choice.function.name": "tool_choice.name",
    "max_completion_tokens": "max_output_tokens",
}


def chat_body(asked: ResponsesRequest, items: Sequence[tuple[str, Item]]) -> dict[str, Any]:
    """`items`: the conversation, each with the field that it came in. Raises InvalidRequest."""
    given = asked.model_dump(by_alias=True, exclude_none=True, exclude={"input", "metadata"})
    body: dict[str, Any] = {name: given[name] for name in SAME if name in given}
    body |= dict(_wishes(given))
    body["id"] = asked.id or f"resp_{uuid.uuid4().hex}"
    body["messages"] = messages(items, asked.instructions)
    return body


@contextmanager
def renaming() -> Iterator[None]:
    """What is said against a field of the chat is said against that of the response."""
    try:
        yield
    except InvalidRequest as error:
        message, param = renamed_fields(str(error), error.param, NAMES)
        raise type(error)(message, param, *error.args[2:]) from None


def _wishes(given: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    yield "max_completion_tokens", given.get("max_output_tokens")
    yield "reasoning_effort", given.get("reasoning", {}).get("effort")
    yield "tools", [_tool(tool) for tool in given.get("tools", ()) if tool["type"] == "function"]
    yield "tool_choice", _choice(given.get("tool_choice"))
    if form := given.get("text", {}).get("format"):
        named = {name: value for name, value in form.items() if name != "type"}
        yield "response_format", {"type": form["type"], "json_schema": named}
    if given.get("top_logprobs") or LOGPROBS in given.get("include", ()):
        yield "logprobs", True
        yield "top_logprobs", given.get("top_logprobs", 0)
    if "truncation" in given:
        yield "truncate", given["truncation"] == "auto"


def _tool(tool: dict[str, Any]) -> dict[str, Any]:
    return {"type": "function", "function": {name: value for name, value in tool.items() if name != "type"}}


def _choice(chosen: Any) -> Any:
    if not isinstance(chosen, dict):
        return chosen
    if chosen["type"] == "function":
        return {"type": "function", "function": {"name": chosen.get("name")}}
    return {
        "type": "allowed_tools",
        "allowed_tools": {"mode": chosen["mode"], "tools": chosen.get("tools", [])},
    }
