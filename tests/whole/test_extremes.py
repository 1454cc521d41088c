"""No field of any route, set to a number that no one planned for, is an error of the server's own."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import pytest

from fox.api.openai.embeddings import EmbeddingRequest
from fox.api.openai.rerank import RerankRequest
from fox.api.openai.responses.schema import ResponsesRequest
from fox.api.openai.schema import ChatRequest
from fox.api.openai.shapes import Shape
from fox.api.openai.text_schema import CompletionRequest
from tests.cli.processes import Fox
from tests.whole.test_openai_client import MODEL

pytestmark = [pytest.mark.model, pytest.mark.slow]

ROUTES: dict[str, tuple[type[Shape], dict[str, Any]]] = {
    "/v1/chat/completions": (
        ChatRequest,
        {"messages": [{"role": "user", "content": "hi"}], "max_completion_tokens": 1},
    ),
    "/v1/completions": (CompletionRequest, {"prompt": "hi", "max_tokens": 1}),
    "/v1/responses": (ResponsesRequest, {"input": "hi", "max_output_tokens": 1}),
    "/v1/embeddings": (EmbeddingRequest, {"input": "hi"}),
    "/v1/rerank": (RerankRequest, {"query": "a", "documents": ["b"]}),
}
LIMITS = {"max_tokens", "max_completion_tokens", "max_output_tokens"}  # no one waits for so many
EXTREMES: list[Any] = [10**30, -(10**30), 1 << 63, 1e308, -1, 0, [10**30], {"a": 10**30}]


@pytest.mark.parametrize("path", ROUTES)
def test_extremes_are_refused_or_answered(server: Fox, path: str) -> None:
    shape, body = ROUTES[path]
    with httpx2.Client(base_url=server.url, timeout=60) as client:
        for field in sorted(shape.model_fields.keys() - LIMITS):
            for value in EXTREMES:
                answer = client.post(path, content=json.dumps({"model": MODEL, **body, field: value}))
                assert answer.status_code in (200, 400, 404), (field, value, answer.text)
