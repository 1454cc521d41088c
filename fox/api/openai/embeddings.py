"""POST /v1/embeddings: texts to vectors."""

from __future__ import annotations

import base64
from array import array
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, StringConstraints, Tag
from starlette.responses import Response

from fox.api.openai.shapes import ModelName, Shape, TokenIds, json_response
from fox.engine import Engine, Vectors

MOST_INPUTS = 16_384
ROW_BYTES = 4


def _kind(value: object) -> str:
    if not isinstance(value, list):
        return "<one>"
    first = value[0] if value else ""
    return "<tokens>" if isinstance(first, int) else "<token lists>" if isinstance(first, list) else "<list>"


Text = Annotated[str, StringConstraints(min_length=1)]
Texts = Annotated[list[Text], Field(min_length=1, max_length=MOST_INPUTS)]
Tokens = Annotated[TokenIds, Field(min_length=1)]
TokenLists = Annotated[list[Tokens], Field(min_length=1, max_length=MOST_INPUTS)]
Input = Annotated[
    Annotated[Text, Tag("<one>")]
    | Annotated[Texts, Tag("<list>")]
    | Annotated[Tokens, Tag("<tokens>")]
    | Annotated[TokenLists, Tag("<token lists>")],
    Discriminator(_kind),
]


class EmbeddingRequest(Shape):
    """`truncate` cuts inputs that are too long, which are refused otherwise; -1 in `truncate_prompt_tokens` is vLLM's
    way to say so."""

    model: ModelName
    input: Input
    encoding_format: Literal["float", "base64"] | None = None
    dimensions: Annotated[int, Field(ge=1)] | None = None
    truncate: bool | None = None
    truncate_prompt_tokens: Annotated[int, Field(ge=-1)] | None = None

    @property
    def inputs(self) -> list[str | tuple[int, ...]]:
        match self.input:
            case str(text):
                return [text]
            case [int(), *_]:
                return [tuple(self.input)]  # type: ignore[arg-type]
        return [each if isinstance(each, str) else tuple(each) for each in self.input]  # type: ignore[arg-type]


async def embed(asked: EmbeddingRequest, engine: Engine) -> Response:
    truncates = bool(asked.truncate) or asked.truncate_prompt_tokens == -1
    vectors = await engine.embed(asked.inputs, dimensions=asked.dimensions, truncate=truncates)
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
