"""A completion's answers in OpenAI's words: chunks of a stream, or one body."""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from starlette.responses import Response

from fox.api.answer import Listener
from fox.api.json_text import json_response
from fox.api.openai.choice import IMPOSSIBLE
from fox.api.openai.events import DONE, EVENT_STREAM, PING, event
from fox.api.openai.text_schema import CompletionRequest
from fox.api.openai.usage import Stopwatch, fingerprint, usage_fields
from fox.engine import Engine
from fox.generation import Delta, Finish, TokenLogprob


class TextVoice(Listener):
    """Answers to prompts, of each the best of those that were made. `echoes`: what comes before each prompt's
    answers. All chunks have the same id, time and fingerprint."""

    headers = EVENT_STREAM
    ping = PING

    def __init__(self, id_: str, engine: Engine, asked: CompletionRequest, echoes: Sequence[str]) -> None:
        self._fields = {
            "id": id_,
            "object": "text_completion",
            "created": int(time.time()),
            "model": engine.name,
            "system_fingerprint": fingerprint(engine.name, engine.info),
        }
        self._echoes = echoes
        self._made, self._wanted = asked.made, asked.wanted
        self._logprobs = asked.logprobs is not None
        self._include_usage = asked.includes_usage
        self._watch = Stopwatch() if asked.timings_per_token else None
        self._offsets = [0] * (len(echoes) * asked.made)

    @property
    def opening(self) -> bytes:
        told = enumerate(text for text in self._echoes for _ in range(self._made))
        return b"".join(self._chunk(text, None, index) for index, text in told if text)

    def piece(self, came: Delta, choice: int) -> bytes:
        more: dict[str, Any] = {}
        if self._watch:
            self._watch.heard(came.tokens)
            more["timings"] = self._watch.timings()
        told = None
        if self._logprobs and came.logprobs:
            told = _logprobs(came.logprobs, self._offsets[choice])
            self._offsets[choice] += sum(len(_text(token.piece)) for token in came.logprobs)
        return self._chunk(came.text, None, choice, told, **more)

    def finished(self, finish: Finish, choice: int) -> bytes:
        return self._chunk("", finish.reason, choice, **self._timings(finish))

    async def ending(self, finishes: Sequence[Finish]) -> bytes:
        if not self._include_usage:
            return DONE
        return event({**self._fields, "choices": [], "usage": self._usage(finishes)}) + DONE

    async def whole(self, said: Sequence[Sequence[Delta]], finishes: Sequence[Finish]) -> Response:
        choices: list[dict[str, Any]] = []
        for at, echo in enumerate(self._echoes):
            group = range(at * self._made, (at + 1) * self._made)
            if self._made > self._wanted:
                group = sorted(group, key=lambda made: -_mean(said[made]))[: self._wanted]  # type: ignore[assignment]
            for made in group:
                tokens = [token for came in said[made] for token in came.logprobs]
                choices.append(
                    {
                        "index": len(choices),
                        "text": echo + "".join(came.text for came in said[made]),
                        "logprobs": _logprobs(tokens, 0) if self._logprobs else None,
                        "finish_reason": finishes[made].reason,
                    }
                )
        fields = {**self._fields, "choices": choices, "usage": self._usage(finishes)}
        return json_response({**fields, **self._timings(finishes[0])})

    def _chunk(
        self,
        text: str,
        finish_reason: str | None,
        index: int,
        logprobs: dict[str, Any] | None = None,
        **more: Any,
    ) -> bytes:
        choice = {"index": index, "text": text, "logprobs": logprobs, "finish_reason": finish_reason}
        fields: dict[str, Any] = {**self._fields, "choices": [choice], **more}
        return event(fields | {"usage": None} if self._include_usage else fields)

    def _usage(self, finishes: Sequence[Finish]) -> dict[str, Any]:
        return usage_fields(finishes, prompts=len(self._echoes))

    def _timings(self, finish: Finish) -> dict[str, Any]:
        return {"timings": self._watch.timings(finish.usage)} if self._watch else {}


def _mean(said: Sequence[Delta]) -> float:
    """The log probability of a token, on the average: long answers are as good as short ones."""
    values = [token.logprob for came in said for token in came.logprobs]
    return sum(values) / len(values) if values else 0.0


def _logprobs(tokens: Sequence[TokenLogprob], offset: int) -> dict[str, Any]:
    """In the form of completions: lists side by side. `offset`: characters of the answer before them."""
    texts = [_text(token.piece) for token in tokens]
    return {
        "tokens": texts,
        "token_logprobs": [max(token.logprob, IMPOSSIBLE) for token in tokens],
        "top_logprobs": [
            {_text(piece): max(value, IMPOSSIBLE) for piece, value in token.top} for token in tokens
        ],
        "text_offset": list(accumulate(map(len, texts[:-1]), initial=offset)) if texts else [],
    }


def _text(piece: bytes) -> str:
    """As the API spells what is no text of its own."""
    try:
        return piece.decode()
    except UnicodeDecodeError:
        return "bytes:" + "".join(f"\\x{byte:02x}" for byte in piece)
