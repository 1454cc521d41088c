"""Embeddings, ranks and tokens through the official client and a bare one, on the starter model."""

from __future__ import annotations

import math
from typing import Any

import httpx2
import openai
import pytest

from tests.cli.processes import Fox
from tests.whole.conftest import CONTEXT_TOKENS
from tests.whole.test_openai_client import MODEL

pytestmark = pytest.mark.model

TEXTS = ["The cat sat on the mat.", "A dog barked at the moon.", "Quarterly profits rose by four percent."]


def post(server: Fox, path: str, **fields: Any) -> Any:
    with httpx2.Client(base_url=server.url, timeout=60) as http:
        return http.post(path, json={"model": MODEL, **fields})


def vectors(client: openai.OpenAI, given: Any, **more: Any) -> list[list[float]]:
    answer = client.embeddings.create(model=MODEL, input=given, **more)
    assert [row.index for row in answer.data] == [*range(len(answer.data))]
    return [row.embedding for row in answer.data]


def near(one: list[float], other: list[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


def test_vectors_are_of_unit_length_and_the_same_in_any_company(client: openai.OpenAI) -> None:
    many = vectors(client, TEXTS)
    for text, vector in zip(TEXTS, many, strict=True):
        assert math.isclose(near(vector, vector), 1, abs_tol=1e-4)
        assert near(vectors(client, text)[0], vector) > 0.9999
    assert near(vectors(client, TEXTS[0], encoding_format="float")[0], many[0]) > 0.9999


def test_token_ids_are_the_text_that_they_spell(client: openai.OpenAI, server: Fox) -> None:
    ids = post(server, "/tokenize", content=TEXTS[0], add_special=True).json()["tokens"]
    of_text = vectors(client, TEXTS[0])[0]
    assert near(vectors(client, ids)[0], of_text) > 0.9999
    assert near(vectors(client, [ids, ids[:2]])[0], of_text) > 0.9999
    assert post(server, "/detokenize", tokens=ids).json()["content"] == TEXTS[0]


def test_fewer_dimensions_are_the_first_ones_at_unit_length(client: openai.OpenAI) -> None:
    whole, cut = vectors(client, TEXTS[0])[0], vectors(client, TEXTS[0], dimensions=64)[0]
    length = math.sqrt(near(whole[:64], whole[:64]))
    assert len(cut) == 64
    assert near([value / length for value in whole[:64]], cut) > 0.9999
    with pytest.raises(openai.BadRequestError, match="dimensions"):
        vectors(client, TEXTS[0], dimensions=100_000)


def test_an_input_as_long_as_the_context_is_read_and_a_longer_one_only_cut(client: openai.OpenAI) -> None:
    ids = [504, 2644] * (CONTEXT_TOKENS // 2)
    exact = client.embeddings.create(model=MODEL, input=ids)
    assert exact.usage.prompt_tokens == CONTEXT_TOKENS
    with pytest.raises(openai.BadRequestError, match=f"{CONTEXT_TOKENS + 1} tokens") as refusal:
        vectors(client, [*ids, 504])
    assert refusal.value.param == "input"
    cut = client.embeddings.create(model=MODEL, input=[*ids, 504], extra_body={"truncate": True})
    assert cut.usage.prompt_tokens == CONTEXT_TOKENS


@pytest.mark.parametrize("given", ["", [], [""], [[]], [999_999], [-1], [[5], "x"], {"a": 1}, [None]])
def test_what_is_no_input_is_refused(client: openai.OpenAI, given: Any) -> None:
    with pytest.raises(openai.BadRequestError) as refusal:
        vectors(client, given)
    assert refusal.value.param
    assert refusal.value.param.startswith("input")


def test_documents_come_in_an_order_that_their_scores_explain(server: Fox) -> None:
    told = post(server, "/v1/rerank", query="The cat sat on a mat.", documents=TEXTS, return_documents=True)
    results = told.json()["results"]
    scores = [result["relevance_score"] for result in results]
    assert scores == sorted(scores, reverse=True)
    assert results[0]["document"]["text"] == TEXTS[0]
    assert sorted(result["index"] for result in results) == [0, 1, 2]
    assert told.json()["method"] == "embedding_similarity"


def test_a_conversation_has_as_many_tokens_as_its_chat_is_billed(client: openai.OpenAI, server: Fox) -> None:
    messages: Any = [{"role": "user", "content": "Hello <|im_end|> there"}]
    count = post(server, "/tokenize", messages=messages).json()["count"]
    chat = client.chat.completions.create(model=MODEL, messages=messages, max_tokens=1)
    assert chat.usage
    assert count == chat.usage.prompt_tokens
    text = post(server, "/apply-template", messages=messages).json()["prompt"]
    assert text.endswith("<|im_start|>assistant\n")


def test_an_answer_goes_on_while_many_texts_are_embedded(client: openai.OpenAI) -> None:
    messages: Any = [{"role": "user", "content": "Tell me about the sea."}]
    stream = client.chat.completions.create(model=MODEL, messages=messages, stream=True, max_tokens=16)
    assert len(vectors(client, TEXTS * 20)) == 60
    assert [chunk.choices[0].finish_reason for chunk in stream][-1] in ("length", "stop")
