"""JSON as clients read it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import orjson
from starlette.responses import Response

# JSON lets these through, but line readers that follow Unicode break a line at them.
LINE_ENDS = tuple((end.encode(), f"\\u{ord(end):04x}".encode()) for end in "\x85\u2028\u2029")


def written(value: Any) -> bytes:
    """As JSON. orjson knows no integers above 64 bits, which clients may have sent to be told again."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return json.dumps(value, ensure_ascii=False).encode()


def one_line(value: Any) -> bytes:
    """JSON that no line reader breaks."""
    text = written(value)
    if not text.isascii():
        for end, escaped in LINE_ENDS:
            text = text.replace(end, escaped)
    return text


def json_response(
    fields: Mapping[str, Any] | list[Any], headers: Mapping[str, str] | None = None
) -> Response:
    return Response(written(fields), headers=headers, media_type="application/json")
