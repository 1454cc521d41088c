"""One of an answer's choices as it comes: its text read into content, thought and tool calls."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

from fox.chat import Arguments, Call, Content, Piece, Reasoning
from fox.chat.reading import Reader, is_object
from fox.generation import Delta, Finish, TokenLogprob

IMPOSSIBLE = -9999.0  # JSON has no infinity; the API's own stand-in for it


class Choice:
    """Follows one choice, and remembers what it was in all."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._content: list[str] = []
        self._reasoning: list[str] = []
        self._calls: list[dict[str, Any]] = []
        self._logprobs: list[TokenLogprob] = []
        self.reasoning_tokens = 0

    def hear(self, delta: Delta) -> list[Piece]:
        """What this delta adds, in pieces that have an id where they begin a call."""
        self._logprobs += delta.logprobs
        pieces = self._keep(self._reader.feed(delta.text))
        if self._is_thought(pieces):
            self.reasoning_tokens += delta.tokens
        return pieces

    def end(self, finish: Finish) -> list[Piece]:
        """What was held back."""
        return self._keep(self._reader.finish(truncated=finish.reason == "length"))

    def reason(self, finish: Finish) -> str:
        return "tool_calls" if self._calls and finish.reason == "stop" else finish.reason

    def message(self) -> dict[str, Any]:
        text: str | None = "".join(self._content)
        message: dict[str, Any] = {"role": "assistant", "content": text, "refusal": None, "annotations": []}
        if self._reasoning:
            message |= thought("".join(self._reasoning))
        if calls := [told for told in map(_call, self._calls) if told]:
            message |= {"content": text or None, "tool_calls": calls}
        return message

    def logprobs(self) -> dict[str, Any] | None:
        return logprobs(self._logprobs) if self._logprobs else None

    def _keep(self, pieces: Sequence[Piece]) -> list[Piece]:
        kept = [self._identified(piece) for piece in pieces]
        for piece in kept:
            match piece:
                case Content(text):
                    self._content.append(text)
                case Reasoning(text):
                    self._reasoning.append(text)
                case Call(_, name, id_):
                    self._calls.append({"id": id_, "name": name, "arguments": []})
                case Arguments(index, text):
                    self._calls[index]["arguments"].append(text)
        return kept

    def _identified(self, piece: Piece) -> Piece:
        """A call has an id of its own."""
        if isinstance(piece, Call) and (not piece.id or any(call["id"] == piece.id for call in self._calls)):
            return Call(piece.index, piece.name, f"call_{uuid.uuid4().hex[:24]}")
        return piece

    def _is_thought(self, pieces: Sequence[Piece]) -> bool:
        """Of a delta that added nothing yet, as what came before it."""
        if pieces:
            return all(isinstance(piece, Reasoning) for piece in pieces)
        return bool(self._reasoning) and not self._content and not self._calls


def delta(piece: Piece) -> dict[str, Any]:
    """A piece as a chunk of a stream tells it."""
    match piece:
        case Content(text):
            return {"content": text}
        case Reasoning(text):
            return thought(text)
        case Call(index, name, id_):
            function = {"name": name, "arguments": ""}
            return {"tool_calls": [{"index": index, "id": id_, "type": "function", "function": function}]}
        case Arguments(index, text):
            return {"tool_calls": [{"index": index, "function": {"arguments": text}}]}


def thought(text: str) -> dict[str, Any]:
    """Under both names that clients know."""
    return {"reasoning_content": text, "reasoning": text}


def logprobs(tokens: Sequence[TokenLogprob]) -> dict[str, Any]:
    content = [
        {**_token(t.piece, t.logprob), "top_logprobs": [_token(piece, value) for piece, value in t.top]}
        for t in tokens
    ]
    return {"content": content, "refusal": None}


def _token(piece: bytes, logprob: float) -> dict[str, Any]:
    told = {"token": piece.decode(errors="replace"), "logprob": max(logprob, IMPOSSIBLE)}
    return {**told, "bytes": list(piece)}


def _call(call: dict[str, Any]) -> dict[str, Any] | None:
    """None where the model was cut off in the middle of the arguments."""
    function = {"name": call["name"], "arguments": "".join(call["arguments"]) or "{}"}
    if not is_object(function["arguments"]):
        return None
    return {"id": call["id"], "type": "function", "function": function}
