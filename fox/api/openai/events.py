"""Server-sent events of this dialect."""

from __future__ import annotations

from typing import Any

from fox.api.failures import Refusal, openai_error
from fox.api.json_text import one_line

DONE = b"data: [DONE]\n\n"
PING = b": ping\n\n"
EVENT_STREAM = {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache",
    "x-accel-buffering": "no",
}


def event(fields: dict[str, Any]) -> bytes:
    """One event without a name."""
    return b"data: " + one_line(fields) + b"\n\n"


def broken(told: Refusal) -> bytes:
    """The end of a stream that an error cut short."""
    return event(openai_error(told)) + DONE
