"""A chat's answer in OpenAI's words: chunks of a stream, or one body.

A chunk of text is a prefix and a suffix made once a stream, around the text: 0.3 us, where a pydantic object takes 10.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import orjson
from starlette.responses import Response

from fox.api.answer import Listener
from fox.api.json_text import one_line
from fox.api.openai.choice import Choice, delta, logprobs
from fox.api.openai.events import DONE, EVENT_STREAM, PING, event
from fox.api.openai.usage import Stopwatch, fingerprint, usage_fields
from fox.chat import Content, Piece
from fox.chat.reading import Reader
from fox.engine import Engine
from fox.generation import Delta, Finish, Progress


class ChatVoice(Listener):
    """One answer of one engine, with a reader for each of its choices. All its chunks have the same id, time and
    fingerprint."""

    headers = EVENT_STREAM
    ping = PING

    def __init__(
        self, id_: str, engine: Engine, readers: Sequence[Reader], *, include_usage: bool, timings: bool
    ) -> None:
        self._fields = {
            "id": id_,
            "created": int(time.time()),
            "model": engine.name,
            "system_fingerprint": fingerprint(engine.name, engine.info),
        }
        self._began = time.perf_counter()
        self._include_usage = include_usage
        self._watch = Stopwatch() if timings else None
        self._choices = [Choice(reader) for reader in readers]
        self._around = [
            self._chunk({"content": ""}, None, i).split(b'""', 1) for i in range(len(self._choices))
        ]

    @property
    def opening(self) -> bytes:
        first = {"role": "assistant", "content": ""}
        return b"".join(self._chunk(first, None, i) for i in range(len(self._choices)))

    def piece(self, came: Delta, choice: int) -> bytes:
        """The hot path: once a token and stream."""
        pieces = self._choices[choice].hear(came)
        if came.progress:
            return self._chunk({}, None, choice, prompt_progress=self._progress(came.progress))
        if not (self._watch or came.logprobs):
            return b"".join([self._told(piece, choice) for piece in pieces])
        more: dict[str, Any] = {}
        if self._watch:
            self._watch.heard(came.tokens)
            more["timings"] = self._watch.timings()
        told = logprobs(came.logprobs) if came.logprobs else None
        deltas = [delta(piece) for piece in pieces] or [{"content": ""}]
        first = self._chunk(deltas[0], None, choice, told, **more)
        return first + b"".join(self._chunk(rest, None, choice) for rest in deltas[1:])

    def finished(self, finish: Finish, choice: int) -> bytes:
        ended = self._choices[choice]
        rest = b"".join([self._told(piece, choice) for piece in ended.end(finish)])
        return rest + self._chunk({}, ended.reason(finish), choice, **self._timings(finish))

    async def ending(self, finishes: Sequence[Finish]) -> bytes:
        if not self._include_usage:
            return DONE
        return self._event({"choices": [], "usage": self._usage(finishes)}) + DONE

    async def whole(self, said: Sequence[Sequence[Delta]], finishes: Sequence[Finish]) -> Response:
        for choice, deltas, finish in zip(self._choices, said, finishes, strict=True):
            for came in deltas:
                choice.hear(came)
            choice.end(finish)
        fields = {
            **self._fields,
            "object": "chat.completion",
            "choices": [
                _choice(i, *pair) for i, pair in enumerate(zip(self._choices, finishes, strict=True))
            ],
            "usage": self._usage(finishes),
            "service_tier": "default",
            **self._timings(finishes[0]),
        }
        return Response(orjson.dumps(fields), media_type="application/json")

    def _progress(self, known: Progress) -> dict[str, Any]:
        """llama.cpp's. The time is since this answer began."""
        spent = round((time.perf_counter() - self._began) * 1e3)
        fields = {"total": known.total, "cache": known.cached, "processed": known.processed}
        return {**fields, "time_ms": spent}

    def _told(self, piece: Piece, choice: int) -> bytes:
        if isinstance(piece, Content):
            prefix, suffix = self._around[choice]
            return prefix + one_line(piece.text) + suffix
        return self._chunk(delta(piece), None, choice)

    def _chunk(
        self,
        told: dict[str, Any],
        finish_reason: str | None,
        index: int,
        logprobs: dict[str, Any] | None = None,
        **more: Any,
    ) -> bytes:
        choice = {"index": index, "delta": told, "logprobs": logprobs, "finish_reason": finish_reason}
        fields: dict[str, Any] = {"choices": [choice], **more}
        return self._event(fields | {"usage": None} if self._include_usage else fields)

    def _event(self, fields: dict[str, Any]) -> bytes:
        return event({**self._fields, "object": "chat.completion.chunk", **fields})

    def _usage(self, finishes: Sequence[Finish]) -> dict[str, Any]:
        return usage_fields(finishes, sum(choice.reasoning_tokens for choice in self._choices))

    def _timings(self, finish: Finish) -> dict[str, Any]:
        return {"timings": self._watch.timings(finish.usage)} if self._watch else {}


def _choice(index: int, choice: Choice, finish: Finish) -> dict[str, Any]:
    return {
        "index": index,
        "message": choice.message(),
        "logprobs": choice.logprobs(),
        "finish_reason": choice.reason(finish),
    }
