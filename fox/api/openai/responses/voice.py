"""A response in OpenAI's words: the sequence of events, or one body."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from starlette.responses import Response

from fox.api.answer import Listener
from fox.api.failures import Refusal, openai_error
from fox.api.json_text import json_response, one_line
from fox.api.openai.choice import Choice, logprobs
from fox.api.openai.events import EVENT_STREAM, PING
from fox.api.openai.responses.output import Output
from fox.api.openai.usage import usage_fields
from fox.chat.reading import Reader
from fox.generation import Delta, Finish

Keep = Callable[[dict[str, Any]], None]


class ResponsesVoice(Listener):
    """One response, of which `fields` are known from the start. `keep` is told of it once it is whole. `headers` say
    what was not done as it was asked."""

    ping = PING

    def __init__(
        self, fields: dict[str, Any], reader: Reader, keep: Keep, headers: dict[str, str], *, summarized: bool
    ) -> None:
        self._fields = fields
        self._choice = Choice(reader)
        self._keep = keep
        self._headers = headers
        self._output = Output(summarized=summarized)
        self._sequence = 0

    @property
    def headers(self) -> dict[str, str]:
        return EVENT_STREAM | self._headers

    @property
    def opening(self) -> bytes:
        response = self._response("in_progress")
        types = ("response.created", "response.in_progress")
        return self._told({"type": type_, "response": response} for type_ in types)

    def piece(self, came: Delta, choice: int) -> bytes:
        pieces = self._choice.hear(came)
        return self._told(self._output.hear(pieces, _logprobs(came)))

    def finished(self, finish: Finish, choice: int) -> bytes:
        rest = self._told(self._output.hear(self._choice.end(finish)))
        return rest + self._told(self._output.close(_status(finish)))

    async def ending(self, finishes: Sequence[Finish]) -> bytes:
        response = self._whole(finishes[0])
        return self._told([{"type": f"response.{response['status']}", "response": response}])

    async def whole(self, said: Sequence[Sequence[Delta]], finishes: Sequence[Finish]) -> Response:
        for came in said[0]:
            _drain(self._output.hear(self._choice.hear(came), _logprobs(came)))
        _drain(self._output.hear(self._choice.end(finishes[0])))
        _drain(self._output.close(_status(finishes[0])))
        return json_response(self._whole(finishes[0]), self._headers)

    def broken(self, told: Refusal) -> bytes:
        """A failed response, and the error that clients raise."""
        error = openai_error(told)["error"]
        response = self._response("failed") | {"error": {"code": told.code, "message": told.message}}
        failed = {"type": "response.failed", "response": response}
        return self._told([failed, {**error, "type": "error", "error": error}])

    def _whole(self, finish: Finish) -> dict[str, Any]:
        """The end of it, which is kept."""
        usage = usage_fields([finish], self._choice.reasoning_tokens)
        status = _status(finish)
        response = self._response(status) | {
            "completed_at": int(time.time()) if status == "completed" else None,
            "incomplete_details": None if status == "completed" else {"reason": "max_output_tokens"},
            "output": self._output.items,
            "usage": {
                "input_tokens": usage["prompt_tokens"],
                "input_tokens_details": usage["prompt_tokens_details"],
                "output_tokens": usage["completion_tokens"],
                "output_tokens_details": usage["completion_tokens_details"],
                "total_tokens": usage["total_tokens"],
            },
        }
        self._keep(response)
        return response

    def _response(self, status: str) -> dict[str, Any]:
        return {**self._fields, "status": status, "output": self._output.items}

    def _told(self, events: Iterable[dict[str, Any]]) -> bytes:
        return b"".join(self._event(fields) for fields in events)

    def _event(self, fields: dict[str, Any]) -> bytes:
        numbered = {"type": fields["type"], "sequence_number": self._sequence, **fields}
        self._sequence += 1
        return b"event: %b\ndata: %b\n\n" % (fields["type"].encode(), one_line(numbered))


def _status(finish: Finish) -> str:
    return "incomplete" if finish.reason == "length" else "completed"


def _logprobs(came: Delta) -> list[dict[str, Any]]:
    return logprobs(came.logprobs)["content"] if came.logprobs else []


def _drain(events: Iterable[Any]) -> None:
    for _ in events:
        pass
