"""An answer in OpenAI's words: chunks of a stream, or one body.

A chunk is a prefix and a suffix made once a stream, around the text: 0.3 us, where a pydantic object takes 10.
"""

from __future__ import annotations

import hashlib
import time
from functools import lru_cache
from typing import Any

import orjson
from starlette.responses import Response

from fox import __version__
from fox.api.failures import Refusal, openai_error
from fox.engine import Engine
from fox.generation import Finish, ModelInfo, Usage

DONE = b"data: [DONE]\n\n"
PING = b": ping\n\n"
EVENT_STREAM = {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache",
    "x-accel-buffering": "no",
}
# JSON lets these through, but line readers that follow Unicode break a line at them.
LINE_ENDS = tuple((end.encode(), f"\\u{ord(end):04x}".encode()) for end in "\x85\u2028\u2029")


class ChatVoice:
    """One answer of one engine. All its chunks have the same id, time and fingerprint."""

    headers = EVENT_STREAM
    ping = PING

    def __init__(self, id_: str, engine: Engine, *, include_usage: bool) -> None:
        self._fields = {
            "id": id_,
            "created": int(time.time()),
            "model": engine.name,
            "system_fingerprint": fingerprint(engine.name, engine.info),
        }
        self._include_usage = include_usage
        self._prefix, self._suffix = self._chunk({"content": ""}, None).split(b'""', 1)

    @property
    def opening(self) -> bytes:
        return self._chunk({"role": "assistant", "content": ""}, None)

    def piece(self, text: str) -> bytes:
        """The hot path: once a token and stream."""
        content = orjson.dumps(text)
        if not text.isascii():
            for end, escaped in LINE_ENDS:
                content = content.replace(end, escaped)
        return self._prefix + content + self._suffix

    def ending(self, finish: Finish) -> bytes:
        usage = self._event({"choices": [], "usage": usage_fields(finish)}) if self._include_usage else b""
        return self._chunk({}, finish.reason) + usage + DONE

    def whole(self, text: str, finish: Finish) -> Response:
        message: dict[str, Any] = {"role": "assistant", "content": text, "refusal": None, "annotations": []}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish.reason}
        fields = {
            **self._fields,
            "object": "chat.completion",
            "choices": [choice],
            "usage": usage_fields(finish),
        }
        return Response(orjson.dumps(fields), media_type="application/json")

    def _chunk(self, delta: dict[str, str], finish_reason: str | None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        fields: dict[str, Any] = {"choices": [choice]}
        return self._event(fields | {"usage": None} if self._include_usage else fields)

    def _event(self, fields: dict[str, Any]) -> bytes:
        return event({**self._fields, "object": "chat.completion.chunk", **fields})


def event(fields: dict[str, Any]) -> bytes:
    """One server-sent event."""
    return b"data: " + orjson.dumps(fields) + b"\n\n"


def broken(told: Refusal) -> bytes:
    """The end of a stream that an error cut short."""
    return event(openai_error(told)) + DONE


def usage_fields(finish: Finish) -> dict[str, Any]:
    usage = finish.usage or Usage(0, 0)
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
    }


@lru_cache(maxsize=64)
def fingerprint(name: str, info: ModelInfo) -> str:
    """Changes with fox and with the model: equal seeds need not give equal answers under another."""
    what = f"{__version__} {name} {info.architecture} {info.parameters} {info.weights_bytes}"
    return f"fp_{hashlib.sha256(what.encode()).hexdigest()[:12]}"
