"""Completions, infills and cancelling through the official client and a bare one."""

from __future__ import annotations

import json
import threading
from typing import Any

import httpx2
import openai
import pytest

from tests.cli.processes import Fox
from tests.whole.conftest import CONTEXT_TOKENS
from tests.whole.test_openai_client import MODEL

pytestmark = pytest.mark.model

TEXT = "The capital of France is"


def complete(client: openai.OpenAI, prompt: Any = TEXT, **more: Any) -> Any:
    return client.completions.create(
        **{"model": MODEL, "prompt": prompt, "max_tokens": 12, "temperature": 0, **more}
    )


def post(server: Fox, path: str, **fields: Any) -> Any:
    with httpx2.Client(base_url=server.url, timeout=60) as http:
        return http.post(path, json=fields)


def test_a_stream_an_echo_and_token_ids_say_what_the_text_says(client: openai.OpenAI, server: Fox) -> None:
    whole = complete(client).choices[0].text
    assert "Paris" in whole
    assert "".join(chunk.choices[0].text for chunk in complete(client, stream=True)) == whole
    assert complete(client, echo=True).choices[0].text == TEXT + whole
    ids = post(server, "/tokenize", model=MODEL, content=TEXT, add_special=True).json()["tokens"]
    assert complete(client, ids).choices[0].text == whole
    assert complete(client, ids, echo=True).choices[0].text == TEXT + whole
    assert complete(client, [ids, ids]).usage.prompt_tokens == 2 * len(ids)


def test_several_prompts_are_answered_in_their_order(client: openai.OpenAI) -> None:
    prompts = [TEXT, "One, two, three,"]
    alone = [complete(client, prompt).choices[0].text for prompt in prompts]
    together = complete(client, prompts, n=2, temperature=0)
    assert [choice.text[:8] for choice in together.choices] == [text[:8] for text in alone for _ in range(2)]
    assert [choice.index for choice in together.choices] == [0, 1, 2, 3]


def test_the_best_of_several_is_the_likeliest(client: openai.OpenAI) -> None:
    def mean(choice: Any) -> float:
        values = choice.logprobs.token_logprobs
        return sum(values) / len(values)

    asked: dict[str, Any] = {"temperature": 1, "seed": 1, "logprobs": 0, "extra_body": {"ignore_eos": True}}
    every = [mean(choice) for choice in complete(client, n=4, **asked).choices]
    best = complete(client, best_of=4, n=1, **asked)
    assert len(best.choices) == 1
    assert abs(mean(best.choices[0]) - max(every)) < 0.1
    assert best.usage.completion_tokens == 48


def test_log_probabilities_are_of_the_text(client: openai.OpenAI) -> None:
    choice = complete(client, logprobs=2).choices[0]
    assert "".join(choice.logprobs.tokens) == choice.text
    assert all(len(top) == 2 for top in choice.logprobs.top_logprobs)
    for token, offset in zip(choice.logprobs.tokens, choice.logprobs.text_offset, strict=True):
        assert choice.text[offset:].startswith(token)


def test_a_completion_is_bound_by_a_form(client: openai.OpenAI) -> None:
    choice = complete(client, extra_body={"guided_choice": ["Rome", "Berlin"]}).choices[0]
    assert choice.text in ("Rome", "Berlin")


@pytest.mark.parametrize("prompt", ["", [""], [999_999], [[5], [-1]]])
def test_what_is_no_prompt_is_refused(client: openai.OpenAI, prompt: Any) -> None:
    with pytest.raises(openai.BadRequestError) as refusal:
        complete(client, prompt)
    assert refusal.value.param
    assert refusal.value.param.startswith("prompt")


def test_a_gap_is_filled_by_a_model_that_was_trained_for_it(client: openai.OpenAI, server: Fox) -> None:
    with pytest.raises(openai.BadRequestError, match="cannot mark a gap"):
        complete(client, suffix="x")
    filled = complete(client, model="coder", suffix="return x", max_tokens=5, extra_body={"ignore_eos": True})
    assert filled.usage.completion_tokens == 5
    body = {
        "model": "coder",
        "input_prefix": "def f(",
        "input_suffix": "x",
        "n_predict": 5,
        "ignore_eos": True,
    }
    told = post(server, "/infill", **body).json()
    assert (told["tokens_predicted"], told["stop_type"], told["stop"]) == (5, "limit", True)
    lines = post(server, "/infill", **body, temperature=0, stream=True).text.split("\n\n")
    chunks = [json.loads(line.removeprefix("data: ")) for line in lines if line]
    again = post(server, "/infill", **body, temperature=0).json()
    assert "".join(chunk["content"] for chunk in chunks) == again["content"]


def test_an_answer_is_cancelled_from_elsewhere(client: openai.OpenAI, server: Fox) -> None:
    stream = complete(
        client, stream=True, max_tokens=CONTEXT_TOKENS, extra_body={"ignore_eos": True, "id": "endless"}
    )
    first = next(iter(stream))
    assert first.id == "endless"
    slots = httpx2.get(f"{server.url}/slots", timeout=20).json()
    assert any(slot["id_task"] == "endless" for slot in slots)
    assert max(slot["kv_blocks_used"] for slot in slots) > 0
    threading.Timer(0, lambda: post(server, "/v1/cancel/endless")).start()
    with pytest.raises(openai.APIError, match="cancelled"):
        list(stream)


def test_props_tell_the_context_and_the_template(server: Fox, client: openai.OpenAI) -> None:
    told = httpx2.get(f"{server.url}/props", params={"model": MODEL}, timeout=20).json()
    assert told["default_generation_settings"]["n_ctx"] == CONTEXT_TOKENS
    assert "<|im_start|>" in told["chat_template"]
