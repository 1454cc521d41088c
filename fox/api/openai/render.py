"""An answer in OpenAI's words: chunks of a stream, or one body.

A chunk is a prefix and a suffix made once a stream, around the text: 0.3 us, where a pydantic object takes 10.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import orjson
from starlette.responses import Response

from fox import __version__
from fox.api.failures import Refusal, openai_error
from fox.engine import Engine
from fox.generation import Delta, Finish, ModelInfo, TokenLogprob, Usage

DONE = b"data: [DONE]\n\n"
PING = b": ping\n\n"
EVENT_STREAM = {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache",
    "x-accel-buffering": "no",
}
# JSON lets these through, but line readers that follow Unicode break a line at them.
IMPOSSIBLE = -9999.0  # JSON has no infinity; the API's own stand-in for it
LINE_ENDS = tuple((end.encode(), f"\\u{ord(end):04x}".encode()) for end in "\x85\u2028\u2029")


class ChatVoice:
    """One answer of one engine. All its chunks have the same id, time and fingerprint."""

    headers = EVENT_STREAM
    ping = PING

    def __init__(self, id_: str, engine: Engine, *, choices: int, include_usage: bool) -> None:
        self._fields = {
            "id": id_,
            "created": int(time.time()),
            "model": engine.name,
            "system_fingerprint": fingerprint(engine.name, engine.info),
        }
        self._include_usage = include_usage
        self._around = [self._chunk({"content": ""}, None, i).split(b'""', 1) for i in range(choices)]

    @property
    def opening(self) -> bytes:
        first = {"role": "assistant", "content": ""}
        return b"".join(self._chunk(first, None, i) for i in range(len(self._around)))

    def piece(self, delta: Delta, choice: int) -> bytes:
        """The hot path: once a token and stream."""
        content = _one_line(orjson.dumps(delta.text), delta.text)
        prefix, suffix = self._around[choice]
        if delta.logprobs:
            told = b'"logprobs":' + _one_line(orjson.dumps(_logprobs(delta.logprobs)), None)
            suffix = suffix.replace(b'"logprobs":null', told, 1)
        return prefix + content + suffix

    def finished(self, finish: Finish, choice: int) -> bytes:
        return self._chunk({}, finish.reason, choice)

    def ending(self, finishes: Sequence[Finish]) -> bytes:
        if not self._include_usage:
            return DONE
        return self._event({"choices": [], "usage": usage_fields(finishes)}) + DONE

    def whole(self, said: Sequence[Sequence[Delta]], finishes: Sequence[Finish]) -> Response:
        told = enumerate(zip(said, finishes, strict=True))
        fields = {
            **self._fields,
            "object": "chat.completion",
            "choices": [_choice(index, deltas, finish) for index, (deltas, finish) in told],
            "usage": usage_fields(finishes),
        }
        return Response(orjson.dumps(fields), media_type="application/json")

    def _chunk(self, delta: dict[str, str], finish_reason: str | None, index: int) -> bytes:
        choice = {"index": index, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
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


def _choice(index: int, deltas: Sequence[Delta], finish: Finish) -> dict[str, Any]:
    text = "".join(delta.text for delta in deltas)
    message: dict[str, Any] = {"role": "assistant", "content": text, "refusal": None, "annotations": []}
    tokens = [token for delta in deltas for token in delta.logprobs]
    logprobs = _logprobs(tokens) if tokens else None
    return {"index": index, "message": message, "logprobs": logprobs, "finish_reason": finish.reason}


def _logprobs(tokens: Sequence[TokenLogprob]) -> dict[str, Any]:
    content = [
        {**_token(t.piece, t.logprob), "top_logprobs": [_token(piece, value) for piece, value in t.top]}
        for t in tokens
    ]
    return {"content": content, "refusal": None}


def _token(piece: bytes, logprob: float) -> dict[str, Any]:
    told = {"token": piece.decode(errors="replace"), "logprob": max(logprob, IMPOSSIBLE)}
    return {**told, "bytes": list(piece)}


def _one_line(json: bytes, text: str | None) -> bytes:
    """JSON that no line reader breaks; `text` is what it was made of, if that is worth a look first."""
    if text is None or not text.isascii():
        for end, escaped in LINE_ENDS:
            json = json.replace(end, escaped)
    return json


def usage_fields(finishes: Sequence[Finish]) -> dict[str, Any]:
    """The prompt counts once, however many answers it has; so does what was found of it."""
    usages = [finish.usage or Usage(0, 0) for finish in finishes]
    generated = sum(usage.completion_tokens for usage in usages)
    return {
        "prompt_tokens": usages[0].prompt_tokens,
        "completion_tokens": generated,
        "total_tokens": usages[0].prompt_tokens + generated,
        "prompt_tokens_details": {"cached_tokens": min(usage.cached_tokens for usage in usages)},
    }


@lru_cache(maxsize=64)
def fingerprint(name: str, info: ModelInfo) -> str:
    """Changes with fox and with the model: equal seeds need not give equal answers under another."""
    what = f"{__version__} {name} {info.architecture} {info.parameters} {info.weights_bytes}"
    return f"fp_{hashlib.sha256(what.encode()).hexdigest()[:12]}"
