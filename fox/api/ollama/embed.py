"""POST /api/embed and /api/embeddings: texts to vectors."""

from __future__ import annotations

from array import array
from typing import Any

from starlette.responses import Response

from fox.api.json_text import json_response
from fox.api.ollama.clock import Clock
from fox.api.ollama.schema import MOST_INPUTS, EmbeddingsRequest, EmbedRequest
from fox.engine import Engine, Vectors
from fox.errors import InvalidRequest

ROW_BYTES = 4
MOST_DIMENSIONS = 1 << 20


def texts(given: Any) -> list[str]:
    """The inputs one by one; none where there are none. Raises InvalidRequest."""
    if given in (None, "", []):
        return []
    inputs = [given] if isinstance(given, str) else given
    if not isinstance(inputs, list) or not all(isinstance(text, str) for text in inputs):
        raise InvalidRequest("invalid input type", "input")
    if len(inputs) > MOST_INPUTS:
        raise InvalidRequest(f"`input`: at most {MOST_INPUTS} texts at once", "input")
    return inputs


class Embedding:
    """What one checked request has done."""

    def __init__(self, asked: EmbedRequest, clock: Clock) -> None:
        if not 0 <= asked.dimensions <= MOST_DIMENSIONS:
            raise InvalidRequest("`dimensions`: it should be above 0", "dimensions")
        self._asked = asked
        self._inputs = texts(asked.input)
        self._clock = clock

    async def __call__(self, engine: Engine) -> Response:
        self._clock.loaded()
        fields: dict[str, Any] = {"model": self._asked.asked, "embeddings": []}
        if not self._inputs:
            return json_response(fields)
        try:
            dimensions = self._asked.dimensions
            fewer = dimensions if 0 < dimensions < engine.info.embedding_width else None
            vectors = await engine.embed(self._inputs, dimensions=fewer, truncate=self._asked.truncate)
        except InvalidRequest as error:
            raise _said(error) from None
        fields["embeddings"] = rows(vectors)
        fields["total_duration"] = self._clock.total_ns
        fields["load_duration"] = self._clock.load_ns
        return json_response({**fields, "prompt_eval_count": sum(vectors.tokens)})


class LegacyEmbedding:
    """One text, nothing cut."""

    def __init__(self, asked: EmbeddingsRequest) -> None:
        self._asked = asked

    async def __call__(self, engine: Engine) -> Response:
        if not self._asked.prompt:
            return json_response({"embedding": []})
        vectors = await engine.embed([self._asked.prompt])
        return json_response({"embedding": rows(vectors)[0]})


def rows(vectors: Vectors) -> list[list[float]]:
    size = vectors.width * ROW_BYTES
    return [array("f", vectors.data[at : at + size]).tolist() for at in range(0, len(vectors.data), size)]


def _said(error: InvalidRequest) -> InvalidRequest:
    if "the model reads" in str(error):
        return InvalidRequest("the input length exceeds the context length", "input")
    return error
