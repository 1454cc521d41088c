"""Every route that takes a body refuses the same nonsense in the same words, and none of it reaches an engine."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import pytest

from tests.api.fakes import FakeEngine, FakeRegistry
from tests.api.test_refusals import BODIES, is_refusal

pytestmark = pytest.mark.anyio

MESSAGES = [{"role": "user", "content": "hi"}]
# the least that each route answers, its required fields first
ROUTES: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {"model": "tiny", "messages": MESSAGES},
    "/v1/completions": {"model": "tiny", "prompt": "hi"},
    "/v1/responses": {"model": "tiny", "input": "hi"},
    "/v1/embeddings": {"model": "tiny", "input": "hi"},
    "/v1/rerank": {"query": "hi", "documents": ["a"]},
    "/rerank": {"query": "hi", "documents": ["a"]},
    "/detokenize": {"tokens": [1]},
    "/apply-template": {"messages": MESSAGES},
    "/infill": {"input_prefix": "a", "input_suffix": "b"},
}
GENERATING = ("/v1/chat/completions", "/v1/completions", "/v1/responses", "/infill")
HUGE = int("9" * 400)
DEEP: Any = "x"
for _ in range(90):
    DEEP = [DEEP]
NONSENSE: list[Any] = [None, True, 5, 1.5, HUGE, "", [], {}, [None], [{}], [True], {"": None}, DEEP]
RIGHT = {  # what of it a field takes
    "model": (),
    "messages": (),
    "prompt": ("''",),
    "input": (),
    "query": (),
    "documents": (),
    "tokens": ("[]",),
    "input_prefix": ("''",),
    "input_suffix": ("''",),
}
WRONG = [
    (path, field, value)
    for path, body in ROUTES.items()
    for field in body
    for value in NONSENSE
    if repr(value) not in RIGHT[field]
    and not (path == "/v1/responses" and field == "input" and value == "")
    and not (path == "/v1/embeddings" and field == "model" and value == "")
]


@pytest.mark.parametrize(("path", "field", "value"), WRONG)
async def test_a_required_field_that_is_nonsense_is_named(
    client: httpx2.AsyncClient, engine: FakeEngine, path: str, field: str, value: Any
) -> None:
    answer = await client.post(path, content=json.dumps(ROUTES[path] | {field: value}))
    error = is_refusal(answer, 400, "invalid_request")
    if value != HUGE:
        assert error["param"].startswith(field), error
    assert engine.requests == []
    assert engine.errands == []


@pytest.mark.parametrize(
    ("path", "field"), [(path, field) for path, body in ROUTES.items() for field in body]
)
async def test_a_required_field_that_is_missing_is_named(
    client: httpx2.AsyncClient, path: str, field: str
) -> None:
    body = {name: value for name, value in ROUTES[path].items() if name != field}
    error = is_refusal(await client.post(path, json=body), 400, "invalid_request")
    assert error["param"] == field
    assert "is required" in error["message"]


@pytest.mark.parametrize("path", ROUTES)
@pytest.mark.parametrize(("body", "says"), [row[1:] for row in BODIES], ids=[row[0] for row in BODIES])
async def test_a_body_that_is_no_object_is_refused(
    client: httpx2.AsyncClient, engine: FakeEngine, path: str, body: bytes, says: str
) -> None:
    error = is_refusal(await client.post(path, content=body), 400, "invalid_request")
    assert error["param"] is None
    assert says in error["message"]
    assert engine.errands == []


@pytest.mark.parametrize("path", ROUTES)
async def test_a_body_over_the_limit_is_refused(client: httpx2.AsyncClient, path: str) -> None:
    body = ROUTES[path] | {"user": "x" * (1 << 20)}
    is_refusal(await client.post(path, json=body), 413, "body_too_large")


@pytest.mark.parametrize("path", ROUTES)
async def test_an_unknown_model_is_not_found(client: httpx2.AsyncClient, path: str) -> None:
    error = is_refusal(
        await client.post(path, json=ROUTES[path] | {"model": "nobody"}), 404, "model_not_found"
    )
    assert error["param"] == "model"


@pytest.mark.parametrize("path", ROUTES)
async def test_no_route_answers_to_another_method(client: httpx2.AsyncClient, path: str) -> None:
    assert (await client.put(path, json=ROUTES[path])).status_code == 405
    assert (await client.get(path)).status_code == 405


@pytest.mark.parametrize("path", ROUTES)
async def test_a_server_that_drains_takes_nothing_new(
    client: httpx2.AsyncClient, app: Any, path: str
) -> None:
    app.state.draining = True
    answer = await client.post(path, json=ROUTES[path])
    is_refusal(answer, 503, "draining")
    assert answer.headers["retry-after"]


WISHES: list[tuple[str, Any]] = [
    ("temperature", -0.1),
    ("temperature", "warm"),
    ("temperature", float("nan")),
    ("top_p", 0),
    ("top_k", -2),
    ("min_p", 1.1),
    ("typical_p", 0),
    ("seed", "x"),
    ("repeat_penalty", 0),
    ("presence_penalty", 3),
    ("mirostat", 3),
    ("xtc_probability", 2),
    ("dry_allowed_length", 0),
    ("logit_bias", {"x": 1}),
    ("logit_bias", {"1": 101}),
    ("stop", 5),
    ("stop", ["x"] * 17),
    ("stop_token_ids", [-1]),
    ("stream", "yes"),
    ("stream_options", 5),
    ("min_tokens", -1),
    ("grammar", 5),
    ("json_schema", "x"),
    ("guided_choice", []),
    ("guided_json", 5),
    ("structured_outputs", []),
    ("priority", 256),
    ("id", "a b"),
    ("id", "a#1"),
    ("options", 5),
    ("options", {"temperature": -1}),
    ("keep_alive", []),
    ("response_format", {"type": "xml"}),
]


@pytest.mark.parametrize("path", GENERATING)
@pytest.mark.parametrize(("field", "value"), WISHES)
async def test_a_wish_that_is_nonsense_is_named(
    client: httpx2.AsyncClient, engine: FakeEngine, path: str, field: str, value: Any
) -> None:
    answer = await client.post(path, content=json.dumps(ROUTES[path] | {field: value}))
    assert is_refusal(answer, 400, "invalid_request")["param"].startswith(field)
    assert engine.requests == []


@pytest.mark.parametrize("path", ROUTES)
async def test_what_is_unknown_is_ignored_and_null_is_absent(
    client: httpx2.AsyncClient, registry: FakeRegistry, path: str
) -> None:
    body = {"no_such_field": {"a": [1]}, "stream": None, "temperature": None, "user": "me", **ROUTES[path]}
    answer = await client.post(
        path, json=body, headers={"content-type": "text/plain", "authorization": "Bearer"}
    )
    expected = 400 if path == "/infill" else 200  # the fake marks no gaps
    assert answer.status_code == expected, answer.text
    assert registry.leases == 0


@pytest.mark.parametrize("priority", ["256", "0000999", "02559", "0" * 4 + "9" * 4400, "-1", "1.0", "٣"])
async def test_a_priority_that_is_none_is_refused(client: httpx2.AsyncClient, priority: str) -> None:
    path = "/v1/completions"
    answer = await client.post(path, json=ROUTES[path], headers={"x-fox-priority": priority.encode()})  # type: ignore[dict-item]
    assert is_refusal(answer, 400, "invalid_request")["param"] == "x-fox-priority"
