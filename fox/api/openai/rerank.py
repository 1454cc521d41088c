"""POST /v1/rerank and /rerank: documents in the order of how well they answer a query, in Cohere's and Jina's shape.

Models that are made for it (pooling `rank`) score each pair. Others embed both, and the score is how near the vectors
are; `method` and a header say so.
"""

from __future__ import annotations

import uuid
from array import array
from typing import Annotated, Any

from pydantic import Field, StringConstraints
from starlette.responses import Response

from fox.api.json_text import json_response
from fox.api.openai.shapes import Mapped, ModelName, ObjectOrOne, One, Shape
from fox.engine import Engine

MOST_DOCUMENTS = 2048

Text = Annotated[str, StringConstraints(min_length=1)]


class Document(Shape):
    text: Text


AnyDocument = Annotated[Annotated[Text, One] | Annotated[Document, Mapped], ObjectOrOne]


class RerankRequest(Shape):
    """`truncate`: false refuses what is too long, which is cut otherwise."""

    model: ModelName | None = None
    query: Text
    documents: Annotated[list[AnyDocument], Field(min_length=1, max_length=MOST_DOCUMENTS)]
    top_n: Annotated[int, Field(ge=1)] | None = None
    return_documents: bool | None = None
    truncate: bool | None = None


async def rerank(asked: RerankRequest, engine: Engine) -> Response:
    texts = [each if isinstance(each, str) else each.text for each in asked.documents]
    scored = await engine.embed(texts, query=asked.query, truncate=asked.truncate is not False)
    ranked = sorted(enumerate(array("f", scored.data)), key=lambda pair: -pair[1])[: asked.top_n]
    results: list[dict[str, Any]] = [{"index": at, "relevance_score": score} for at, score in ranked]
    if asked.return_documents:
        results = [{**result, "document": {"text": texts[result["index"]]}} for result in results]
    total = sum(scored.tokens)
    ranks = engine.info.pooling == "rank"
    fields = {
        "id": f"rerank-{uuid.uuid4().hex}",
        "object": "list",
        "model": engine.name,
        "method": "cross_encoder" if ranks else "embedding_similarity",
        "results": results,
        "usage": {"prompt_tokens": total, "total_tokens": total},
    }
    says = "the model does not rank: these are similarities of embeddings"
    return json_response(fields, {} if ranks else {"x-fox-warning": says})
