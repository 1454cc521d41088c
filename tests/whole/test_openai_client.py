"""The official client, a real socket, a real child, the real starter model."""

from __future__ import annotations

import threading
from typing import Any

import openai
import pytest

from tests.cli.processes import Fox, comes_true
from tests.whole.conftest import CONTEXT_TOKENS

pytestmark = pytest.mark.model

MODEL = "smollm2:135m"


def ask(client: openai.OpenAI, text: str = "Tell me about the sea.", **more: Any) -> Any:
    messages = [{"role": "user", "content": text}]
    return client.chat.completions.create(**{"model": MODEL, "messages": messages, "max_tokens": 24, **more})


def test_a_chat_is_answered_with_exact_usage(client: openai.OpenAI) -> None:
    answer = ask(client, max_tokens=5)
    choice = answer.choices[0]
    assert choice.message.role == "assistant"
    assert choice.message.content
    assert choice.finish_reason == "length"
    assert answer.usage.completion_tokens == 5
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + 5
    assert answer.system_fingerprint
    assert answer.id.startswith("chatcmpl-")


def test_a_stream_says_what_the_whole_answer_says(client: openai.OpenAI) -> None:
    whole = ask(client, temperature=0).choices[0].message.content
    chunks = list(ask(client, temperature=0, stream=True, stream_options={"include_usage": True}))
    assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == whole
    assert chunks[0].choices[0].delta.role == "assistant"
    assert [c.choices[0].finish_reason for c in chunks if c.choices][-1] == "length"
    assert chunks[-1].usage.completion_tokens == 24
    assert len({(c.id, c.created, c.model, c.system_fingerprint) for c in chunks}) == 1


def test_a_stop_string_ends_an_answer_and_is_not_in_it(client: openai.OpenAI) -> None:
    text = ask(client, temperature=0).choices[0].message.content
    stop = text[8:13]
    cut = ask(client, temperature=0, stop=[stop]).choices[0]
    assert (cut.message.content, cut.finish_reason) == (text[: text.index(stop)], "stop")


def test_a_seed_repeats_an_answer_and_another_gives_another(client: openai.OpenAI) -> None:
    one, same, other = (ask(client, seed=s).choices[0].message.content for s in (1, 1, 2))
    assert one == same != other


def test_two_at_once_answer_as_each_alone(client: openai.OpenAI) -> None:
    topics = ("the sea", "old bread")
    alone = [ask(client, f"Tell me about {t}.", temperature=0).choices[0].message.content for t in topics]
    together: dict[str, str] = {}

    def run(topic: str) -> None:
        together[topic] = ask(client, f"Tell me about {topic}.", temperature=0).choices[0].message.content

    threads = [threading.Thread(target=run, args=(t,)) for t in topics]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [together[t][:12] for t in topics] == [text[:12] for text in alone]


def test_a_client_that_leaves_frees_its_sequence(client: openai.OpenAI, server: Fox) -> None:
    stream = ask(client, stream=True, max_tokens=CONTEXT_TOKENS, extra_body={"ignore_eos": True})
    next(iter(stream))
    stream.close()
    health = f"{server.url}/health"
    with openai.DefaultHttpxClient() as http:
        assert comes_true(lambda: http.get(health).json()["active_requests"] == 0)


def test_the_second_turn_of_a_chat_computes_only_what_is_new(client: openai.OpenAI) -> None:
    messages = [
        {"role": "user", "content": "Name three colours, please, one on each line, and nothing else."}
    ]
    first = ask(client, messages=messages, temperature=0)
    messages += [
        {"role": "assistant", "content": first.choices[0].message.content},
        {"role": "user", "content": "And three animals?"},
    ]
    second = ask(client, messages=messages, temperature=0)
    assert second.usage.prompt_tokens_details.cached_tokens >= first.usage.prompt_tokens


def test_several_choices_share_one_prefill_and_differ(client: openai.OpenAI) -> None:
    text = "Tell me about the sea, the wind, the ships and the gulls. " * 8
    answer = ask(client, text, n=3, seed=5, max_tokens=12)
    assert [choice.index for choice in answer.choices] == [0, 1, 2]
    assert len({choice.message.content for choice in answer.choices}) == 3
    assert answer.usage.completion_tokens == 36
    alone = ask(client, text, seed=6, max_tokens=12).choices[0].message.content
    assert answer.choices[1].message.content[:8] == alone[:8], "choice 1 is what its seed gives alone"
    chunks = list(ask(client, text, n=2, seed=5, max_tokens=12, stream=True))
    for index in range(2):
        said = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices[0].index == index)
        assert said[:8] == answer.choices[index].message.content[:8], "a near tie may fall otherwise later on"


def test_log_probabilities_come_with_the_text_they_are_of(client: openai.OpenAI) -> None:
    asked: dict[str, Any] = {"logprobs": True, "top_logprobs": 3, "temperature": 0, "max_tokens": 8}
    whole = ask(client, **asked).choices[0]
    tokens = whole.logprobs.content
    assert bytes(b for token in tokens for b in token.bytes).decode() == whole.message.content
    assert all(len(t.top_logprobs) == 3 and t.top_logprobs[0].token == t.token for t in tokens)
    chunks = [c.choices[0] for c in ask(client, **asked, stream=True)]
    streamed = [token.token for c in chunks if c.logprobs for token in c.logprobs.content]
    assert streamed == [token.token for token in tokens]


def test_a_priority_out_of_range_is_refused(client: openai.OpenAI) -> None:
    for more in ({"extra_body": {"priority": 256}}, {"extra_headers": {"X-Fox-Priority": "high"}}):
        with pytest.raises(openai.BadRequestError, match="priority"):
            ask(client, **more)
    assert ask(client, max_tokens=1, extra_headers={"X-Fox-Priority": "255"}).choices


def test_models_are_listed_and_found(client: openai.OpenAI) -> None:
    assert {MODEL, "twin", "truncated"} <= {model.id for model in client.models.list()}
    assert client.models.retrieve(MODEL).object == "model"


@pytest.mark.parametrize(
    ("more", "status", "code"),
    [
        ({"model": "nobody"}, 404, "model_not_found"),
        ({"messages": []}, 400, "invalid_request"),
        ({"temperature": -1}, 400, "invalid_request"),
        ({"logit_bias": {"9999999": 1}}, 400, "invalid_request"),
        ({"messages": [{"role": "user", "content": "word " * 4000}]}, 400, "context_length_exceeded"),
        ({"model": "truncated"}, 503, "model_load_failed"),
        ({"model": "noise"}, 503, "model_load_failed"),
        ({"model": "alien"}, 503, "model_load_failed"),
        ({"model": "folder"}, 503, "model_load_failed"),
    ],
)
def test_what_cannot_be_done_is_refused_and_disturbs_nothing(
    client: openai.OpenAI, more: dict[str, Any], status: int, code: str
) -> None:
    with pytest.raises(openai.APIStatusError) as refusal:
        ask(client, **more)
    assert refusal.value.status_code == status
    assert refusal.value.code == code
    assert refusal.value.message
    assert ask(client, max_tokens=1).choices


def test_a_killed_engine_ends_its_streams_with_an_error_and_no_others(
    client: openai.OpenAI, server: Fox
) -> None:
    ask(client, model="twin", max_tokens=1)
    victim = max(server.children(), key=lambda child: child.create_time())
    other = ask(client, stream=True, max_tokens=40, extra_body={"ignore_eos": True})
    next(iter(other))
    stream = ask(
        client, model="twin", stream=True, max_tokens=CONTEXT_TOKENS, extra_body={"ignore_eos": True}
    )
    next(iter(stream))
    victim.kill()
    with pytest.raises(openai.APIError, match="killed by SIGKILL"):
        list(stream)
    assert [c.choices[0].finish_reason for c in other if c.choices][-1] == "length"
    assert ask(client, model="twin", max_tokens=1).choices, "the next request loads it anew"


def test_how_far_a_long_prompt_is_read_is_told_where_it_is_asked_for(client: openai.OpenAI) -> None:
    text = "quince " * 400
    more: dict[str, Any] = {"stream": True, "max_tokens": 2}
    chunks = list(ask(client, text, **more, extra_body={"return_progress": True, "cache_prompt": False}))
    told = [chunk.prompt_progress for chunk in chunks if getattr(chunk, "prompt_progress", None)]
    assert told
    assert [one["processed"] for one in told] == sorted({one["processed"] for one in told})
    assert all(0 < one["processed"] < one["total"] and one["cache"] == 0 for one in told)
    assert not any(getattr(chunk, "prompt_progress", None) for chunk in ask(client, text, **more))
