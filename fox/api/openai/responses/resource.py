"""What a response says of the request that it answers."""

from __future__ import annotations

import time
import uuid
from typing import Any

from fox.api.openai.responses.schema import Call, Choice, Function, Item, Message, ResponsesRequest, Result
from fox.engine import Engine
from fox.generation import Sampling

DEFAULTS = Sampling()
PREFIXES = {Message: "msg", Call: "fc", Result: "fco"}


def resource(asked: ResponsesRequest, id_: str, engine: Engine) -> dict[str, Any]:
    """A response at its beginning."""
    reasoning, text = asked.reasoning, asked.text
    chosen = asked.tool_choice
    return {
        "id": id_,
        "object": "response",
        "created_at": int(time.time()),
        "completed_at": None,
        "status": "in_progress",
        "background": False,
        "error": None,
        "incomplete_details": None,
        "instructions": asked.instructions,
        "max_output_tokens": asked.max_output_tokens,
        "max_tool_calls": asked.max_tool_calls,
        "model": engine.name,
        "output": [],
        "parallel_tool_calls": asked.parallel_tool_calls is not False,
        "previous_response_id": asked.previous_response_id,
        "prompt_cache_key": asked.prompt_cache_key,
        "reasoning": {
            "effort": reasoning.effort if reasoning else None,
            "summary": reasoning.summary or reasoning.generate_summary if reasoning else None,
        },
        "safety_identifier": asked.safety_identifier,
        "service_tier": "default",
        "store": asked.store is not False,
        "temperature": _or(asked.wish("temperature"), DEFAULTS.temperature),
        "top_p": _or(asked.wish("top_p"), DEFAULTS.top_p),
        "presence_penalty": _or(asked.wish("presence_penalty"), DEFAULTS.presence_penalty),
        "frequency_penalty": _or(asked.wish("frequency_penalty"), DEFAULTS.frequency_penalty),
        "text": {"format": _format(asked), "verbosity": (text and text.verbosity) or "medium"},
        "tool_choice": chosen.model_dump(exclude_none=True)
        if isinstance(chosen, Choice)
        else chosen or "auto",
        "tools": [tool.model_dump() for tool in asked.tools or () if isinstance(tool, Function)],
        "top_logprobs": asked.top_logprobs or 0,
        "truncation": asked.truncation or "disabled",
        "usage": None,
        "user": asked.user,
        "metadata": asked.metadata or {},
    }


def item_fields(item: Item) -> dict[str, Any]:
    """An item that was sent, as it is told again: with an id, its texts in parts."""
    fields = item.model_dump(exclude_none=True)
    prefix = PREFIXES.get(type(item), "item")
    fields = {"id": f"{prefix}_{uuid.uuid4().hex}", "status": "completed", **fields}
    if isinstance(item, Message):
        fields["type"] = "message"
        if isinstance(item.content, str):
            kind = "output_text" if item.role == "assistant" else "input_text"
            fields["content"] = [{"type": kind, "text": item.content}]
    return fields


def _format(asked: ResponsesRequest) -> dict[str, Any]:
    form = asked.text and asked.text.format
    if not form or form.type != "json_schema":
        return {"type": form.type if form else "text"}
    given = form.model_dump(by_alias=True)
    return {"description": None, **given, "name": form.name or "", "strict": bool(form.strict)}


def _or(value: Any, default: Any) -> Any:
    return default if value is None else value
