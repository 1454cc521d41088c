"""The routes for watchers and command lines, and the lists of models."""

from __future__ import annotations

import time

import httpx2
import pytest
from prometheus_client.parser import text_string_to_metric_families
from starlette.applications import Starlette

from fox.api import ApiOptions, create_app
from fox.engine import EngineStats
from tests.api.fakes import FakeEngine, FakeRegistry
from tests.api.test_refusals import is_refusal
from tests.api.wire import asking, in_memory, serving

pytestmark = pytest.mark.anyio


def app_of(*engines: FakeEngine) -> Starlette:
    return create_app(FakeRegistry(*engines), ApiOptions(ollama_version="0.99.0"))  # type: ignore[arg-type]


async def test_the_root_says_what_ollamas_clients_wait_for(client: httpx2.AsyncClient) -> None:
    answer = await client.get("/")
    assert (answer.status_code, answer.text) == (200, "Ollama is running")
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"


async def test_the_version_is_the_options() -> None:
    async with in_memory(app_of()) as client:
        assert (await client.get("/api/version")).json() == {"version": "0.99.0"}


async def test_health_works_before_any_model_is_loaded() -> None:
    async with in_memory(app_of()) as client:
        answer = await client.get("/health")
    body = answer.json()
    assert abs(body.pop("started_at") - time.time()) < 5
    assert answer.status_code == 200
    assert body == {
        "status": "ok",
        "kv_cache_usage": 0.0,
        "queue_depth": 0,
        "active_requests": 0,
        "model_name": None,
    }


async def test_health_speaks_for_all_engines() -> None:
    a, b = FakeEngine("a"), FakeEngine("b")
    a.stats, b.stats = EngineStats(1, 2, 0.25), EngineStats(3, 4, 0.5)
    async with in_memory(app_of(a, b)) as client:
        body = (await client.get("/health")).json()
    assert (body["active_requests"], body["queue_depth"], body["kv_cache_usage"]) == (4, 6, 0.5)
    assert body["model_name"] == "a"


async def test_models_are_listed_in_openais_shape(client: httpx2.AsyncClient) -> None:
    model = {"id": "tiny", "object": "model", "created": 1_700_000_000, "owned_by": "fox"}
    assert (await client.get("/v1/models")).json() == {"object": "list", "data": [model]}
    assert (await client.get("/v1/models/tiny")).json() == model
    assert (await client.get("/v1/models/tiny:latest")).json() == model


@pytest.mark.parametrize("path", ["hf.co/a/b:Q4", "hf.co%2Fa%2Fb%3AQ4", "hf.co/a%2Fb:Q4"])
async def test_a_model_id_may_hold_slashes_and_be_percent_encoded(path: str) -> None:
    async with serving(app_of(FakeEngine("hf.co/a/b:Q4"))) as port, asking(port) as client:
        assert (await client.get(f"/v1/models/{path}")).json()["id"] == "hf.co/a/b:Q4"


@pytest.mark.parametrize("name", ["nobody", "a/b", "%00", "%ff", ""])
async def test_a_model_that_is_not_there_is_not_found(app: Starlette, name: str) -> None:
    async with serving(app) as port, asking(port) as client:
        answer = await client.get(f"/v1/models/{name}")
        assert is_refusal(answer, 404, "model_not_found")["param"] == "model"


GETS = ["/", "/health", "/metrics", "/api/version", "/api/ps", "/v1/models", "/v1/models/tiny"]


@pytest.mark.parametrize("path", GETS)
async def test_head_answers_wherever_get_does(app: Starlette, path: str) -> None:
    async with serving(app) as port, asking(port) as client:
        head = await client.head(path)
        assert (head.status_code, head.content) == (200, b"")
        assert head.headers["content-type"] == (await client.get(path)).headers["content-type"]


@pytest.mark.parametrize("path", ["/nothing", "/v1", "/v1/chat", "/health/", "/v1/chat/completions/"])
async def test_an_unknown_path_is_not_found(client: httpx2.AsyncClient, path: str) -> None:
    assert "there is no `/" in is_refusal(await client.get(path), 404, "not_found")["message"]


WRONG = [(path, "POST", "GET, HEAD") for path in GETS] + [
    ("/v1/chat/completions", method, "POST") for method in ("GET", "HEAD", "PUT", "DELETE", "OPTIONS")
]


@pytest.mark.parametrize(("path", "method", "allow"), WRONG)
async def test_a_wrong_method_is_told_the_right_ones(
    app: Starlette, path: str, method: str, allow: str
) -> None:
    async with serving(app) as port, asking(port) as client:
        answer = await client.request(method, path)
        assert answer.status_code == 405
        assert ", ".join(sorted(answer.headers["allow"].split(", "))) == allow
        if path.startswith("/api/"):
            assert answer.text == "405 method not allowed"
        elif method != "HEAD":
            is_refusal(answer, 405, "method_not_allowed")


@pytest.mark.parametrize("accept", ["", "*/*", "text/plain;version=1.0.0;escaping=allow-utf-8"])
async def test_metrics_pass_prometheus_own_parser(client: httpx2.AsyncClient, accept: str) -> None:
    answer = await client.get("/metrics", headers={"accept": accept})
    assert answer.headers["content-type"].startswith("text/plain; version=")
    names = {family.name for family in text_string_to_metric_families(answer.text)}
    assert {
        "ferrumox_requests",
        "ferrumox_requests_rejected",
        "ferrumox_request_latency_seconds",
        "ferrumox_tokens_generated",
        "ferrumox_queue_depth",
        "ferrumox_active_requests",
        "ferrumox_models",
        "ferrumox_kv_cache_usage_ratio",
        "ferrumox_ttft_seconds",
    } <= names


async def test_metrics_pass_the_openmetrics_parser(client: httpx2.AsyncClient) -> None:
    from prometheus_client.openmetrics import parser

    answer = await client.get("/metrics", headers={"accept": "application/openmetrics-text; version=1.0.0"})
    assert answer.headers["content-type"].startswith("application/openmetrics-text")
    assert list(parser.text_string_to_metric_families(answer.text))


async def test_two_apps_in_one_process_count_apart() -> None:
    for _ in range(2):
        async with in_memory(app_of()) as client:
            assert (await client.get("/metrics")).status_code == 200
