"""Answers in Ollama's words: one JSON object a line, or one in all."""

from __future__ import annotations

import random
import string
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol

import orjson
from starlette.responses import Response

from fox.api.json_text import one_line
from fox.api.ollama.asking import Wanted
from fox.api.ollama.clock import now
from fox.chat import Arguments, Call, Content, Piece, Reasoning
from fox.chat.reading import Reader, is_object
from fox.generation import Delta, Finish, TokenLogprob

NDJSON = "application/x-ndjson"
JSON = "application/json; charset=utf-8"
ID_CHARS = string.ascii_lowercase + string.digits
IMPOSSIBLE = -9999.0  # JSON has no infinity

Remember = Callable[[str], Awaitable[list[int]]]


class Wording(Protocol):
    """How one route words what was said."""

    def said(self, text: str = "", thought: str = "", calls: Sequence[dict[str, Any]] = ()) -> dict[str, Any]:
        """The fields that carry it."""


class Chatting:
    """/api/chat."""

    @staticmethod
    def said(text: str = "", thought: str = "", calls: Sequence[dict[str, Any]] = ()) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": text}
        if thought:
            message["thinking"] = thought
        if calls:
            message["tool_calls"] = list(calls)
        return {"message": message}


class Generating:
    """/api/generate."""

    @staticmethod
    def said(text: str = "", thought: str = "", calls: Sequence[dict[str, Any]] = ()) -> dict[str, Any]:
        fields: dict[str, Any] = {"response": text}
        if thought:
            fields["thinking"] = thought
        if calls:
            fields["tool_calls"] = list(calls)
        return fields


class Calls:
    """Tool calls as they come; each is told once it is whole."""

    def __init__(self) -> None:
        self._begun: list[tuple[Call, list[str]]] = []
        self._told = 0

    def hear(self, piece: Call | Arguments) -> list[dict[str, Any]]:
        if isinstance(piece, Call):
            whole = self.rest()
            self._begun.append((piece, []))
            return whole
        self._begun[piece.index][1].append(piece.text)
        return self.rest() if piece.text.rstrip().endswith("}") else []

    def rest(self) -> list[dict[str, Any]]:
        """Those that are whole and were not told yet."""
        found = []
        for index, (call, parts) in enumerate(self._begun[self._told :], self._told):
            arguments = "".join(parts) or "{}"
            if not is_object(arguments):
                break
            function = {"index": index, "name": call.name, "arguments": orjson.loads(arguments)}
            found.append({"id": call.id or _call_id(), "function": function})
            self._told = index + 1
        return found


class Voice:
    """One answer. `remember` gives the `context` that it ends with."""

    opening = b""

    def __init__(
        self,
        wanted: Wanted,
        wording: Wording,
        reader: Reader,
        *,
        headers: dict[str, str] | None = None,
        remember: Remember | None = None,
    ) -> None:
        self.headers = {"content-type": NDJSON, **(headers or {})}
        self._notes = headers or {}
        self._model = one_line(wanted.asked.asked)
        self._wording = wording
        self._reader = reader
        self._clock = wanted.clock
        self._remember = remember
        self._silent = wanted.silent
        self._tops = wanted.asked.top_logprobs
        self._calls = Calls()
        self._text: list[str] = []
        self._around = one_line(wording.said()).split(b'""', 1)

    @property
    def ping(self) -> bytes:
        """A line that says nothing: a comment or an empty line is an error to Ollama's clients."""
        return self._line(self._wording.said())

    def heard(self, delta: Delta) -> None:
        if delta.tokens:
            self._clock.heard()

    def piece(self, delta: Delta, choice: int) -> bytes:
        """The hot path: once a token."""
        if self._silent or not (delta.text or delta.logprobs):
            return b""
        self._text.append(delta.text)
        pieces = self._reader.feed(delta.text)
        if not delta.logprobs:
            return b"".join(map(self._told, pieces))
        first, *rest = pieces or [Content("")]
        told = self._line({**self._fields(first), "logprobs": self._logprobs(delta.logprobs)})
        return told + b"".join(map(self._told, rest))

    def finished(self, finish: Finish, choice: int) -> bytes:
        if self._silent:
            return b""
        pieces = self._reader.finish(truncated=finish.reason == "length")
        calls = [] if finish.reason == "length" else self._calls.rest()
        told = b"".join(map(self._told, pieces))
        calls += self._calls.rest()
        return told + (self._line(self._wording.said(calls=calls)) if calls else b"")

    async def ending(self, finishes: Sequence[Finish]) -> bytes:
        return self._line({**self._wording.said(), **await self._end(finishes[0])}, done=True)

    async def whole(self, said: Sequence[Sequence[Delta]], finishes: Sequence[Finish]) -> Response:
        texts: dict[type[Piece], list[str]] = {Content: [], Reasoning: []}
        calls: list[dict[str, Any]] = []
        logprobs: list[TokenLogprob] = []
        for delta in () if self._silent else said[0]:
            self._text.append(delta.text)
            logprobs += delta.logprobs
            calls += self._gather(self._reader.feed(delta.text), texts)
        if not self._silent:
            calls += self._gather(self._reader.finish(truncated=finishes[0].reason == "length"), texts)
            calls += self._calls.rest()
        fields = self._wording.said("".join(texts[Content]), "".join(texts[Reasoning]), calls)
        if logprobs:
            fields["logprobs"] = self._logprobs(logprobs)
        line = self._line({**fields, **await self._end(finishes[0])}, done=True)
        return Response(line.rstrip(b"\n"), headers=self._notes, media_type=JSON)

    def _gather(self, pieces: Sequence[Piece], texts: dict[type[Piece], list[str]]) -> list[dict[str, Any]]:
        calls: list[dict[str, Any]] = []
        for piece in pieces:
            if isinstance(piece, Content | Reasoning):
                texts[type(piece)].append(piece.text)
            else:
                calls += self._calls.hear(piece)
        return calls

    def _told(self, piece: Piece) -> bytes:
        if isinstance(piece, Content):
            prefix, suffix = self._around
            return self._begin() + prefix[1:] + one_line(piece.text) + suffix[:-1] + b',"done":false}\n'
        fields = self._fields(piece)
        return self._line(fields) if fields else b""

    def _fields(self, piece: Piece) -> dict[str, Any]:
        """Nothing where a call is not whole yet."""
        if isinstance(piece, Content):
            return self._wording.said(piece.text)
        if isinstance(piece, Reasoning):
            return self._wording.said(thought=piece.text)
        calls = self._calls.hear(piece)
        return self._wording.said(calls=calls) if calls else {}

    async def _end(self, finish: Finish) -> dict[str, Any]:
        fields: dict[str, Any] = {"done_reason": "length" if self._silent else finish.reason}
        if self._remember:
            fields["context"] = await self._remember("".join(self._text))
        stats = self._clock.stats(finish)
        if self._silent:
            stats.pop("eval_count", None)
        return fields | stats

    def _begin(self) -> bytes:
        return b'{"model":' + self._model + b',"created_at":"' + now().encode() + b'",'

    def _line(self, fields: dict[str, Any], *, done: bool = False) -> bytes:
        ends = b',"done":true}\n' if done else b',"done":false}\n'
        return self._begin() + one_line(fields)[1:-1] + ends

    def _logprobs(self, tokens: Sequence[TokenLogprob]) -> list[dict[str, Any]]:
        told = []
        for token in tokens:
            fields = _token(token.piece, token.logprob)
            if self._tops:
                fields["top_logprobs"] = [_token(piece, value) for piece, value in token.top]
            told.append(fields)
        return told


def _token(piece: bytes, logprob: float) -> dict[str, Any]:
    return {
        "token": piece.decode(errors="replace"),
        "logprob": max(logprob, IMPOSSIBLE),
        "bytes": list(piece),
    }


def _call_id() -> str:
    return "call_" + "".join(random.choices(ID_CHARS, k=8))  # noqa: S311 - a name, no secret
