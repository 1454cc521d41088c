"""Server-sent events of this dialect."""

from __future__ import annotations

from typing import Any

from fox.api.failures import Refusal, openai_error
from fox.api.openai.shapes import written

DONE = b"data: [DONE]\n\n"
PING = b": ping\n\n"
EVENT_STREAM = {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache",
    "x-accel-buffering": "no",
}
# JSON lets these through, but line readers that follow Unicode break a line at them.
LINE_ENDS = tuple((end.encode(), f"\\u{ord(end):04x}".encode()) for end in "\x85\u2028\u2029")


def event(fields: dict[str, Any]) -> bytes:
    """One event without a name."""
    return b"data: " + one_line(fields) + b"\n\n"


def broken(told: Refusal) -> bytes:
    """The end of a stream that an error cut short."""
    return event(openai_error(told)) + DONE


def one_line(value: Any) -> bytes:
    """JSON that no line reader breaks."""
    text = written(value)
    if not text.isascii():
        for end, escaped in LINE_ENDS:
            text = text.replace(end, escaped)
    return text
