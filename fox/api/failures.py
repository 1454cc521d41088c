"""What an error is over HTTP: one table of status, type and code, and OpenAI's body for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import orjson
from starlette.exceptions import HTTPException
from starlette.responses import Response

from fox import errors
from fox.registry.store import BadDigestError, DigestMismatchError, StoreError


class BodyTooLarge(errors.FoxError):
    """The body is longer than the server reads. `args`: the limit in MiB."""

    code = "body_too_large"

    def __str__(self) -> str:
        return f"the body is larger than {self.args[0]} MiB"


class UnknownEncoding(errors.FoxError):
    """The body is packed in a way that is not known here. `args`: its name."""

    code = "unknown_encoding"

    def __str__(self) -> str:
        return f"`content-encoding`: a body may be gzip, deflate or zstd, not {self.args[0]!r}"


class CloudOff(errors.FoxError):
    """The model, or the service, is one of Ollama's cloud. `args`: what is not available."""

    code = "cloud_disabled"

    def __str__(self) -> str:
        return f"ollama cloud is disabled: {self.args[0]} is unavailable"


@dataclass(frozen=True)
class Row:
    """`retry_after_s`: when it makes sense to ask again, None where it does not."""

    status: int
    type: str
    retry_after_s: int | None = None


@dataclass(frozen=True)
class Refusal:
    """One error as every dialect may tell it."""

    row: Row
    code: str
    message: str
    param: str | None = None

    @property
    def headers(self) -> dict[str, str]:
        after_s = self.row.retry_after_s
        return {} if after_s is None else {"retry-after": str(after_s)}


def renamed(told: Refusal, names: Mapping[str, str]) -> Refusal:
    """Fields of the engine, or of another dialect, become a dialect's own."""
    message, param = renamed_fields(told.message, told.param, names)
    return replace(told, message=message, param=param)


def renamed_fields(message: str, param: str | None, names: Mapping[str, str]) -> tuple[str, str | None]:
    if param is None or param not in names:
        return message, param
    return message.replace(f"`{param}`", f"`{names[param]}`"), names[param]


INVALID, SERVER = "invalid_request_error", "server_error"

# An engine that failed is 503, not 500: the next request loads it anew, so asking again makes sense.
TABLE: dict[type[Exception], Row] = {
    errors.InvalidRequest: Row(400, INVALID),
    BadDigestError: Row(400, INVALID),
    DigestMismatchError: Row(400, INVALID),
    CloudOff: Row(403, INVALID),
    errors.ModelNotFound: Row(404, INVALID),
    errors.RequestNotFound: Row(404, INVALID),
    BodyTooLarge: Row(413, INVALID),
    UnknownEncoding: Row(415, INVALID),
    errors.QueueFull: Row(429, "rate_limit_error", 1),
    errors.Cancelled: Row(499, INVALID),
    StoreError: Row(500, SERVER),
    errors.EngineFailed: Row(503, SERVER, 1),
    errors.ModelLoadFailed: Row(503, SERVER, 5),
    errors.Draining: Row(503, SERVER, 5),
    Exception: Row(500, SERVER),
}
INTERNAL = "internal error: the server's log tells more"
HTTP_CODES = {404: "not_found", 405: "method_not_allowed"}


def refusal(error: Exception) -> Refusal:
    """How an error is told. One that is no FoxError keeps its text to itself: it may name paths and internals."""
    row = next(TABLE[cls] for cls in type(error).__mro__ if cls in TABLE)
    if not isinstance(error, errors.FoxError):
        return Refusal(row, errors.FoxError.code, INTERNAL)
    return Refusal(row, error.code, str(error), _param(error))


def http_refusal(error: HTTPException, method: str, path: str) -> Refusal:
    """How the router's own errors are told."""
    message = {
        404: f"there is no `{path}` here",
        405: f"`{path}` does not answer to {method}",
    }.get(error.status_code, str(error.detail))
    code = HTTP_CODES.get(error.status_code, "http_error")
    return Refusal(Row(error.status_code, INVALID), code, message)


def openai_error(told: Refusal) -> dict[str, Any]:
    """OpenAI's error object, as in a body and in a stream's error event."""
    fields = {"message": told.message, "type": told.row.type, "param": told.param, "code": told.code}
    return {"error": fields}


def openai_response(told: Refusal) -> Response:
    body = orjson.dumps(openai_error(told))
    return Response(body, told.row.status, told.headers, media_type="application/json")


def _param(error: errors.FoxError) -> str | None:
    if isinstance(error, errors.ModelNotFound | errors.ModelLoadFailed):
        return "model"
    return error.param if isinstance(error, errors.InvalidRequest) else None
