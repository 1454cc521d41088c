"""Chats that are not streamed: the body that comes back, and what the engine was asked."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import httpx2
import msgspec
import pytest

from fox.api import ApiOptions, create_app
from fox.generation import Finish, PromptPart, Sampling, Usage
from tests.api.fakes import STOP, FakeEngine, FakeRegistry
from tests.api.wire import CHAT, HELLO, in_memory

pytestmark = pytest.mark.anyio


async def ask(client: httpx2.AsyncClient, **fields: Any) -> dict[str, Any]:
    answer = await client.post(CHAT, json=HELLO | fields)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


async def prompt(client: httpx2.AsyncClient, engine: FakeEngine, messages: list[dict[str, Any]]) -> str:
    await ask(client, messages=messages)
    return "".join(part.text for part in engine.requests[-1].prompt)


async def test_an_answer_has_every_field_of_the_dialect(client: httpx2.AsyncClient) -> None:
    body = await ask(client)
    assert body.pop("id").startswith("chatcmpl-")
    assert abs(body.pop("created") - time.time()) < 5
    assert body.pop("system_fingerprint").startswith("fp_")
    assert body == {
        "object": "chat.completion",
        "model": "tiny",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "Hello", "refusal": None, "annotations": []},
                "logprobs": None,
                "finish_reason": "stop",
            }
        ],
        "usage": {
            "prompt_tokens": 7,
            "completion_tokens": 3,
            "total_tokens": 10,
            "prompt_tokens_details": {"cached_tokens": 2},
            "completion_tokens_details": {"reasoning_tokens": 0},
        },
        "service_tier": "default",
    }


@pytest.mark.parametrize("stream", [False, True])
async def test_what_was_cut_from_a_prompt_is_told(
    client: httpx2.AsyncClient, engine: FakeEngine, caplog: pytest.LogCaptureFixture, stream: bool
) -> None:
    whole = await client.post(CHAT, json=HELLO | {"stream": stream})
    assert "x-fox-truncated" not in whole.headers
    engine.truncates = 12
    cut = await client.post(CHAT, json=HELLO | {"stream": stream})
    assert cut.headers["x-fox-truncated"] == "12"
    assert "12 tokens were cut from the prompt" in caplog.text


async def test_an_answer_that_reached_its_limit_says_so(
    client: httpx2.AsyncClient, engine: FakeEngine
) -> None:
    engine.finish = Finish("length", Usage(1, 1))
    assert (await ask(client))["choices"][0]["finish_reason"] == "length"


async def test_text_beside_the_finish_belongs_to_the_answer(
    client: httpx2.AsyncClient, engine: FakeEngine
) -> None:
    engine.says = None
    asking = asyncio.create_task(ask(client))
    generation = await engine.generations.get()
    generation.say("a", "")
    generation.say_last("b", STOP)
    assert (await asking)["choices"][0]["message"]["content"] == "ab"


async def test_the_resolved_name_is_told_whatever_was_asked_for(client: httpx2.AsyncClient) -> None:
    assert (await ask(client, model=" tiny:latest "))["model"] == "tiny"


async def test_ids_differ_and_the_fingerprint_stays(client: httpx2.AsyncClient) -> None:
    one, other = await ask(client), await ask(client)
    assert one["id"] != other["id"]
    assert one["system_fingerprint"] == other["system_fingerprint"]


async def test_the_fingerprint_changes_with_the_model() -> None:
    app = create_app(FakeRegistry(FakeEngine("a"), FakeEngine("b")), ApiOptions())  # type: ignore[arg-type]
    async with in_memory(app) as client:
        prints = {(await ask(client, model=name))["system_fingerprint"] for name in "ab"}
    assert len(prints) == 2


async def test_a_request_that_wishes_nothing_gets_the_defaults(
    client: httpx2.AsyncClient, engine: FakeEngine
) -> None:
    await ask(client)
    request = engine.requests[0]
    assert request.sampling == Sampling()
    assert (request.max_tokens, request.min_tokens, request.ignore_eos, request.stop) == (None, 0, False, ())
    assert request.prompt == (PromptPart("user:hi\n", special=True),)


NULLS = [
    "stream", "stream_options", "max_tokens", "max_completion_tokens", "min_tokens", "ignore_eos",
    "stop", "temperature", "top_p", "top_k", "min_p", "seed", "presence_penalty", "frequency_penalty",
    "repeat_penalty", "repetition_penalty", "repeat_last_n", "logit_bias", "n", "tools", "tool_choice",
    "functions", "response_format", "logprobs", "top_logprobs", "modalities", "user", "metadata",
]  # fmt: skip


async def test_null_is_the_same_as_absent(client: httpx2.AsyncClient, engine: FakeEngine) -> None:
    await ask(client, **dict.fromkeys(NULLS))
    await ask(client, stream_options={"include_usage": None})
    assert engine.requests[0].sampling == Sampling()


HARMLESS: list[dict[str, Any]] = [
    {"tools": []},
    {"tools": [], "tool_choice": "auto"},
    {"tools": [{"type": "function", "function": {"name": "f"}}], "tool_choice": "none"},
    {"functions": []},
    {"n": 1},
    {"response_format": {"type": "text"}},
    {"logprobs": False, "top_logprobs": 0},
    {"logprobs": True},
    {"modalities": ["text"]},
    {"stream": False, "stream_options": {"include_usage": True}},
    {"user": "u", "metadata": {"a": "b"}, "store": False, "parallel_tool_calls": False},
    {"unknown": {"deep": [1, {"a": None}]}, "num_ctx": 4096},
    {"logit_bias": {}},
    {"stop": []},
]


@pytest.mark.parametrize("fields", HARMLESS, ids=json.dumps)
async def test_what_changes_nothing_is_accepted(
    client: httpx2.AsyncClient, engine: FakeEngine, fields: dict[str, Any]
) -> None:
    await ask(client, **fields)
    assert engine.requests[0].sampling == Sampling()
    assert engine.requests[0].stop == ()


WISHES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"temperature": 0}, {"temperature": 0.0}),
    ({"temperature": 100}, {"temperature": 100.0}),
    ({"temperature": 1e-40}, {"temperature": 0.0}),
    ({"top_p": 0.5}, {"top_p": 0.5}),
    ({"top_p": 1}, {"top_p": 1.0}),
    ({"top_k": 0}, {"top_k": 0}),
    ({"top_k": -1}, {"top_k": -1}),
    ({"top_k": 10**30}, {"top_k": 0x7FFFFFFF}),
    ({"min_p": 0.1}, {"min_p": 0.1}),
    ({"seed": 42}, {"seed": 42}),
    ({"seed": -1}, {"seed": None}),
    ({"seed": -2}, {"seed": 0xFFFFFFFE}),
    ({"seed": 1 << 32}, {"seed": 0}),
    ({"seed": 10**30}, {"seed": 10**30 & 0xFFFFFFFF}),
    ({"presence_penalty": -2, "frequency_penalty": 2}, {"presence_penalty": -2.0, "frequency_penalty": 2.0}),
    ({"repeat_penalty": 1.1}, {"repeat_penalty": 1.1}),
    ({"repetition_penalty": 1.2}, {"repeat_penalty": 1.2}),
    ({"repeat_penalty": 1.1, "repetition_penalty": 1.2}, {"repeat_penalty": 1.1}),
    ({"repeat_last_n": -1}, {"repeat_last_n": -1}),
    ({"repeat_last_n": 10**30}, {"repeat_last_n": 100}),
    ({"logit_bias": {"7": -100, "0049": 5}}, {"logit_bias": ((7, -100.0), (49, 5.0))}),
]


@pytest.mark.parametrize(("asked", "wanted"), WISHES, ids=lambda wish: json.dumps(wish)[:60])
async def test_a_sampling_wish_reaches_the_engine(
    client: httpx2.AsyncClient, engine: FakeEngine, asked: dict[str, Any], wanted: dict[str, Any]
) -> None:
    await ask(client, **asked)
    assert engine.requests[0].sampling == Sampling(**wanted)


LIMITS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"max_tokens": 5}, {"max_tokens": 5}),
    ({"max_completion_tokens": 6}, {"max_tokens": 6}),
    ({"max_tokens": 5, "max_completion_tokens": 6}, {"max_tokens": 6}),
    ({"max_tokens": 128_000}, {"max_tokens": 100}),
    ({"max_tokens": 10**30}, {"max_tokens": 100}),
    ({"max_tokens": -1}, {"max_tokens": None}),
    ({"max_tokens": 5, "max_completion_tokens": -1}, {"max_tokens": None}),
    ({"min_tokens": 3}, {"min_tokens": 3}),
    ({"min_tokens": 10**30}, {"min_tokens": 100}),
    ({"ignore_eos": True}, {"ignore_eos": True}),
    ({"stop": "x"}, {"stop": ("x",)}),
    ({"stop": ["x", "", "y"]}, {"stop": ("x", "y")}),
    ({"stop": ""}, {"stop": ()}),
    ({"stop": ["s"] * 16}, {"stop": ("s",) * 16}),
]


@pytest.mark.parametrize(("asked", "wanted"), LIMITS, ids=lambda wish: json.dumps(wish)[:60])
async def test_a_limit_reaches_the_engine(
    client: httpx2.AsyncClient, engine: FakeEngine, asked: dict[str, Any], wanted: dict[str, Any]
) -> None:
    await ask(client, **asked)
    request = engine.requests[0]
    assert {name: getattr(request, name) for name in wanted} == wanted


CONVERSATIONS: list[tuple[list[dict[str, Any]], str]] = [
    ([{"role": "developer", "content": "d"}, {"role": "user", "content": "u"}], "system:d\nuser:u\n"),
    (
        [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}],
        "user:a\nb\n",
    ),
    ([{"role": "user", "content": ""}], "user:\n"),
    ([{"role": "user", "content": []}], "user:\n"),
    ([{"role": "function", "name": "f", "content": "1"}], "tool:1\n"),
    ([{"role": "tool", "content": None}], "tool:\n"),
    ([{"role": "assistant", "content": None}], "assistant:\n"),
    (
        [{"role": "assistant", "content": None, "tool_calls": [{"id": "c", "function": {"name": "f"}}]}],
        "assistant:\n",
    ),
]


@pytest.mark.parametrize(("messages", "rendered"), CONVERSATIONS)
async def test_messages_become_the_prompt(
    client: httpx2.AsyncClient, engine: FakeEngine, messages: list[dict[str, Any]], rendered: str
) -> None:
    assert await prompt(client, engine, messages) == rendered


async def test_a_template_gets_tool_calls_and_names(client: httpx2.AsyncClient, engine: FakeEngine) -> None:
    template = (
        "{% if tools %}{% endif %}{% for m in messages %}{{ m.name is defined }}"
        "{% for call in m.tool_calls or [] %}{{ call.function.arguments.x }}{% endfor %}{% endfor %}"
    )
    engine.info = msgspec.structs.replace(engine.info, chat_template=template)
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"x": 5}'}}
    turns = [{"role": "assistant", "tool_calls": [call]}, {"role": "tool", "name": "f", "content": "1"}]
    assert await prompt(client, engine, turns) == "False5True"


@pytest.mark.parametrize(
    "content_type", [None, "text/plain", "application/x-www-form-urlencoded", "nonsense"]
)
async def test_any_content_type_or_none_will_do(client: httpx2.AsyncClient, content_type: str | None) -> None:
    headers = {} if content_type is None else {"content-type": content_type}
    answer = await client.post(CHAT, content=json.dumps(HELLO), headers=headers)
    assert answer.status_code == 200


async def test_authorization_without_a_key_is_no_key(client: httpx2.AsyncClient) -> None:
    answer = await client.post(CHAT, json=HELLO, headers={"authorization": "Bearer"})
    assert answer.status_code == 200


async def test_a_system_prompt_is_said_first_where_there_is_none() -> None:
    engine = FakeEngine()
    app = create_app(FakeRegistry(engine), ApiOptions(system_prompt="Be brief."))  # type: ignore[arg-type]
    user = {"role": "user", "content": "u"}
    async with in_memory(app) as client:
        assert await prompt(client, engine, [user]) == "system:Be brief.\nuser:u\n"
        for role in ("system", "developer"):
            own = {"role": role, "content": "own"}
            assert await prompt(client, engine, [own, user]) == "system:own\nuser:u\n"


async def test_a_template_is_compiled_once_an_engine(
    client: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fox.api import templates

    compiled = []
    plain = templates.ChatModel
    monkeypatch.setattr(templates, "ChatModel", lambda *a, **k: compiled.append(a) or plain(*a, **k))
    await ask(client)
    await ask(client)
    assert len(compiled) == 1


async def test_the_generation_is_over_and_the_lease_returned_when_the_answer_is(
    client: httpx2.AsyncClient, engine: FakeEngine, registry: FakeRegistry
) -> None:
    await ask(client)
    assert (await engine.generations.get()).cancels == 1
    assert registry.leases == 0
