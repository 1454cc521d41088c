"""Vectors, ranks and tokens: what the engine is asked, and in which words its answer is told."""

from __future__ import annotations

import base64
from array import array
from typing import Any

import httpx2
import msgspec
import pytest
from starlette.applications import Starlette

from fox.errors import EngineFailed, InvalidRequest
from fox.generation import PromptPart
from tests.api.fakes import FakeEngine, FakeRegistry
from tests.api.wire import Visitor, in_time, serving

pytestmark = pytest.mark.anyio

EMBED = "/v1/embeddings"


async def posted(client: httpx2.AsyncClient, path: str, **fields: Any) -> Any:
    answer = await client.post(path, json={"model": "tiny", **fields})
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.parametrize(
    ("given", "inputs"),
    [
        ("ab", ["ab"]),
        (["ab", "c"], ["ab", "c"]),
        ([5, 6, 7], [(5, 6, 7)]),
        ([[5, 6], [7]], [(5, 6), (7,)]),
    ],
)
async def test_inputs_of_every_kind_are_embedded_in_order(
    client: httpx2.AsyncClient, engine: FakeEngine, given: Any, inputs: list[Any]
) -> None:
    told = await posted(client, EMBED, input=given)
    assert engine.errands == [{"inputs": inputs, "dimensions": None, "truncate": False}]
    assert [row["embedding"] for row in told["data"]] == [[len(text), at] for at, text in enumerate(inputs)]
    assert [row["index"] for row in told["data"]] == [*range(len(inputs))]
    total = sum(map(len, inputs))
    assert told["usage"] == {"prompt_tokens": total, "total_tokens": total}
    assert (told["object"], told["model"]) == ("list", "tiny")


async def test_base64_says_what_floats_say(client: httpx2.AsyncClient) -> None:
    floats, text = [
        (await posted(client, EMBED, input=["ab", "abc"], encoding_format=how))["data"]
        for how in ("float", "base64")
    ]
    for one, other in zip(floats, text, strict=True):
        assert array("f", base64.b64decode(other["embedding"])).tolist() == one["embedding"]


@pytest.mark.parametrize("more", [{"truncate": True}, {"truncate_prompt_tokens": -1}])
async def test_dimensions_and_truncation_reach_the_engine(
    client: httpx2.AsyncClient, engine: FakeEngine, more: dict[str, Any]
) -> None:
    told = await posted(client, EMBED, input="abc", dimensions=1, **more)
    assert engine.errands == [{"inputs": ["abc"], "dimensions": 1, "truncate": True}]
    assert told["data"][0]["embedding"] == [3.0]


@pytest.mark.parametrize("path", ["/rerank", "/v1/rerank"])
async def test_documents_come_ranked_and_a_similarity_is_called_one(
    client: httpx2.AsyncClient, engine: FakeEngine, path: str
) -> None:
    asked = {"query": "q", "documents": ["a", {"text": "b"}, "c"], "top_n": 2, "return_documents": True}
    told = await client.post(path, json=asked)
    assert told.json()["results"] == [
        {"index": 2, "relevance_score": 2.0, "document": {"text": "c"}},
        {"index": 1, "relevance_score": 1.0, "document": {"text": "b"}},
    ]
    assert told.json()["method"] == "embedding_similarity"
    assert "does not rank" in told.headers["x-fox-warning"]
    assert engine.errands == [{"inputs": ["a", "b", "c"], "query": "q", "truncate": True}]
    engine.info = msgspec.structs.replace(engine.info, pooling="rank")
    told = await client.post(path, json=asked)
    assert told.json()["method"] == "cross_encoder"
    assert "x-fox-warning" not in told.headers


async def test_a_text_is_tokenized_in_the_words_of_both_servers(
    client: httpx2.AsyncClient, engine: FakeEngine
) -> None:
    bare = await posted(client, "/tokenize", content="hé")
    assert bare == {"tokens": [104, 0xC3, 0xA9], "count": 3, "max_model_len": 100}
    assert engine.errands.pop() == {"prompt": (PromptPart("hé", special=True),), "begins": False}
    pieces = await posted(client, "/tokenize", content="hé", with_pieces=True, add_special=True)
    assert pieces["tokens"] == [
        {"id": 104, "piece": "h"},
        {"id": 0xC3, "piece": [0xC3]},
        {"id": 0xA9, "piece": [0xA9]},
    ]
    assert engine.errands.pop()["begins"] is True
    told = await posted(client, "/tokenize", prompt="hi", return_token_strs=True)
    assert told["token_strs"] == ["h", "i"]
    assert engine.errands.pop()["begins"] is True


async def test_a_conversation_is_tokenized_as_its_chat_would_be(
    client: httpx2.AsyncClient, engine: FakeEngine
) -> None:
    messages = [{"role": "user", "content": "a</s>"}]
    told = await posted(client, "/tokenize", messages=messages)
    assert bytes(told["tokens"]) == b"user:a</s>\n"
    assert PromptPart("</s>", special=False) in engine.errands[0]["prompt"], "no user can forge an end"


async def test_tokens_become_text_under_both_names(client: httpx2.AsyncClient) -> None:
    told = await posted(client, "/detokenize", tokens=[*"hé".encode()])
    assert told == {"content": "hé", "prompt": "hé"}
    assert (await posted(client, "/detokenize", tokens=[]))["content"] == ""


async def test_a_template_is_applied(client: httpx2.AsyncClient) -> None:
    told = await client.post("/apply-template", json={"messages": [{"role": "user", "content": "hi"}]})
    assert told.json() == {"prompt": "user:hi\n"}


async def test_without_a_name_the_only_model_is_meant(
    registry: FakeRegistry, client: httpx2.AsyncClient
) -> None:
    registry.engines["other"] = FakeEngine("other")
    told = await client.post("/detokenize", json={"tokens": [65]})
    assert (told.status_code, told.json()["error"]["param"]) == (400, "model")
    registry.engines["other"].alive = False
    assert (await client.post("/detokenize", json={"tokens": [65]})).json()["content"] == "A"


@pytest.mark.parametrize(
    ("refusal", "status"), [(InvalidRequest("`input`: no", "input"), 400), (EngineFailed("died"), 503)]
)
async def test_what_the_engine_says_against_it_is_told(
    client: httpx2.AsyncClient, engine: FakeEngine, registry: FakeRegistry, refusal: Exception, status: int
) -> None:
    engine.refusal = refusal
    told = await client.post(EMBED, json={"model": "tiny", "input": "x"})
    assert (told.status_code, told.json()["error"]["message"]) == (status, str(refusal))
    assert registry.leases == 0


async def test_a_client_that_leaves_abandons_its_errand(
    app: Starlette, engine: FakeEngine, registry: FakeRegistry
) -> None:
    engine.accepts.clear()
    async with serving(app) as port:
        visitor = await Visitor.ask(port, EMBED, input="x")
        await in_time(engine.asked.wait())
        await visitor.leave()
        await in_time(engine.abandoned.wait())
    assert registry.leases == 0
