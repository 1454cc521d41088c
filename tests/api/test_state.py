"""What a model is, what an engine is at, an end to that, and the description of it all."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import httpx2
import jsonschema
import msgspec
import pytest
from starlette.applications import Starlette

from fox.engine import EngineStats
from fox.generation import Finish
from tests.api.fakes import FakeEngine, FakeRegistry
from tests.api.wire import CHAT, HELLO, asking, events, in_time, serving

pytestmark = pytest.mark.anyio


async def test_props_describe_the_only_model_or_a_named_one(
    client: httpx2.AsyncClient, engine: FakeEngine
) -> None:
    engine.spec = SimpleNamespace(path=None)
    for path in ("/props", "/props?model=tiny"):
        told = (await client.get(path)).json()
        assert told["total_slots"] == 4
        assert told["default_generation_settings"]["n_ctx"] == 100
        assert told["default_generation_settings"]["params"]["temperature"] == 0.8
        assert told["chat_template"] == engine.info.chat_template
    assert (await client.get("/props?model=nobody")).status_code == 404


async def test_slots_tell_what_is_being_answered_and_the_blocks_it_takes(
    client: httpx2.AsyncClient, engine: FakeEngine
) -> None:
    engine.stats = msgspec.structs.replace(EngineStats(), blocks_held=3, blocks_total=8)
    engine.says = None
    answering = asyncio.create_task(client.post(CHAT, json=HELLO | {"id": "mine"}))
    generation = await in_time(engine.generations.get())
    slots = (await client.get("/slots")).json()
    assert [slot["is_processing"] for slot in slots] == [True, False, False, False]
    assert slots[0]["id_task"] == "mine"
    assert {(slot["kv_blocks_used"], slot["kv_blocks_total"]) for slot in slots} == {(3, 8)}
    generation.say("x", finish=Finish("stop"))
    assert (await answering).status_code == 200


@pytest.mark.parametrize("stream", [False, True])
async def test_an_answer_is_cancelled_by_its_id_and_says_so(
    app: Starlette, engine: FakeEngine, registry: FakeRegistry, stream: bool
) -> None:
    engine.says = None
    async with serving(app) as port, asking(port) as client:
        body = HELLO | {"id": "mine", "n": 2, "stream": stream}
        answering = asyncio.create_task(client.post(CHAT, json=body))
        for _ in range(2):
            await in_time(engine.generations.get())
        told = await client.post("/v1/cancel/mine")
        assert (told.status_code, told.json()["cancelled"]) == (200, True)
        assert sorted(engine.cancelled) == ["mine", "mine#1"]
        answer = await in_time(answering)
        if stream:
            assert events(answer.text.splitlines())[-2]["error"]["code"] == "cancelled"
        else:
            assert (answer.status_code, answer.json()["error"]["code"]) == (499, "cancelled")
        assert (await client.post("/v1/cancel/mine")).status_code == 404
    assert registry.leases == 0


@pytest.mark.parametrize("id_", ["nobody", "min", "mine%231", "%00", "a/b"])
async def test_an_id_that_nobody_has_is_not_found(
    client: httpx2.AsyncClient, engine: FakeEngine, id_: str
) -> None:
    told = await client.post(f"/v1/cancel/{id_}")
    assert (told.status_code, told.json()["error"]["code"]) == (404, "not_found")


async def test_the_description_names_every_route_and_shape(
    app: Starlette, client: httpx2.AsyncClient
) -> None:
    told = (await client.get("/openapi.json")).json()
    assert told["openapi"] == "3.1.0"
    paths = {route.path.replace(":path}", "}") for route in app.routes}  # type: ignore[attr-defined]
    assert set(told["paths"]) == paths
    page = (await client.get("/docs")).text
    for path, methods in told["paths"].items():
        assert f"<code>{path}</code>" in page
        assert all(one["summary"] for one in methods.values())


@pytest.mark.parametrize(
    ("path", "good", "bad"),
    [
        (CHAT, HELLO, {"messages": []}),
        ("/v1/completions", {"model": "tiny", "prompt": ["a", "b"]}, {"prompt": {}}),
        ("/v1/embeddings", {"model": "tiny", "input": [[1], [2]]}, {"input": []}),
        ("/rerank", {"query": "a", "documents": ["b", {"text": "c"}]}, {"documents": [5]}),
    ],
)
async def test_the_described_shapes_say_what_is_refused(
    client: httpx2.AsyncClient, path: str, good: dict[str, Any], bad: dict[str, Any]
) -> None:
    told = (await client.get("/openapi.json")).json()
    schema = told["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"]
    checker = jsonschema.Draft202012Validator({**schema, "components": told["components"]})
    assert checker.is_valid(good)
    assert (await client.post(path, json=good)).status_code == 200
    assert not checker.is_valid(good | bad)
    assert (await client.post(path, json=good | bad)).status_code == 400


async def test_head_answers_wherever_get_does(app: Starlette, client: httpx2.AsyncClient) -> None:
    described = (await client.get("/openapi.json")).json()["paths"]
    for path in (path for path, methods in described.items() if "get" in methods and "{" not in path):
        if path != "/props":
            got, headed = await client.get(path), await client.head(path)
            assert (headed.status_code, headed.content) == (got.status_code, b""), path
