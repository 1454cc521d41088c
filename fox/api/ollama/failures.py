"""What an error is in Ollama's words. Some clients compare them letter by letter."""

from __future__ import annotations

from starlette.responses import Response

from fox.api.failures import Refusal
from fox.api.json_text import one_line

TOO_LONG = (
    "the prompt is longer than the context length currently available to the model; shorten the prompt, adjust the "
    "context length in settings, or use a model with a longer context length"
)
BUSY = "server busy, please try again.  maximum pending requests exceeded"
SAID = {
    "context_length_exceeded": (400, TOO_LONG),
    "queue_full": (503, BUSY),
    "cancelled": (499, "request canceled"),
}


def ollama_response(told: Refusal) -> Response:
    status, text = _said(told)
    return error_response(status, text, told.headers)


def error_response(status: int, text: str, headers: dict[str, str] | None = None) -> Response:
    return Response(one_line({"error": text}), status, headers, "application/json; charset=utf-8")


def error_line(told: Refusal) -> bytes:
    """The end of a stream that an error cut short."""
    return one_line({"error": _said(told)[1]}) + b"\n"


def _said(told: Refusal) -> tuple[int, str]:
    return SAID.get(told.code, (told.row.status, told.message))
