"""POST /v1/embeddings: texts to vectors."""

from __future__ import annotations

import base64
from array import array
from typing import Annotated, Any, Literal

from pydantic import Field
from starlette.responses import Response

from fox.api.json_text import json_response
from fox.api.openai.inputs import Inputs, each
from fox.api.openai.shapes import ModelName, SecondsOrText, Shape
from fox.engine import Engine, Vectors

ROW_BYTES = 4
MOST_DIMENSIONS = 1 << 20  # of any model


class EmbeddingRequest(Shape):
    """`truncate` cuts inputs that are too long, which are refused otherwise; -1 in `truncate_prompt_tokens` is vLLM's
    way to say so."""

    model: ModelName
    input: Inputs
    encoding_format: Literal["float", "base64"] | None = None
    dimensions: Annotated[int, Field(ge=1, le=MOST_DIMENSIONS)] | None = None
    truncate: bool | None = None
    truncate_prompt_tokens: Literal[-1] | None = None
    keep_alive: SecondsOrText | None = None


async def embed(asked: EmbeddingRequest, engine: Engine) -> Response:
    truncates = bool(asked.truncate) or asked.truncate_prompt_tokens == -1
    vectors = await engine.embed(each(asked.input), dimensions=asked.dimensions, truncate=truncates)
    as_text = asked.encoding_format == "base64"
    data = [
        {
            "object": "embedding",
            "index": at,
            "embedding": base64.b64encode(row).decode() if as_text else _floats(row),
        }
        for at, row in enumerate(_rows(vectors))
    ]
    total = sum(vectors.tokens)
    usage = {"prompt_tokens": total, "total_tokens": total}
    return json_response({"object": "list", "data": data, "model": engine.name, "usage": usage})


def _rows(vectors: Vectors) -> list[bytes]:
    size = vectors.width * ROW_BYTES
    return [vectors.data[at : at + size] for at in range(0, len(vectors.data), size)]


def _floats(row: bytes) -> Any:
    return array("f", row).tolist()
