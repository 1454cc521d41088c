"""What is refused, with which status, and which field the refusal names. Nothing of it reaches an engine."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import msgspec
import pytest

from fox.errors import InvalidRequest
from tests.api.fakes import FakeEngine, FakeRegistry
from tests.api.wire import CHAT, HELLO

pytestmark = pytest.mark.anyio

USER = {"role": "user", "content": "hi"}
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
AUDIO = {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
ABSENT = object()


def tool(**fields: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": "f", **fields}}


def json_schema(schema: Any) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"schema": schema}}


# field, value, the param that is named (None: the field itself), a part of the message
FIELDS: list[tuple[str, Any, str | None, str]] = [
    ("model", ABSENT, None, "is required"),
    ("model", None, None, "valid string"),
    ("model", "", None, "at least 1 character"),
    ("model", "  ", None, "at least 1 character"),
    ("model", 5, None, "valid string"),
    ("messages", ABSENT, None, "is required"),
    ("messages", None, None, "valid array"),
    ("messages", [], None, "at least 1 item"),
    ("messages", "hi", None, "valid array"),
    ("messages", {"0": USER}, None, "valid array"),
    ("messages", ["hi"], "messages[0]", "object"),
    ("messages", [USER, {}], "messages[1].role", "is required"),
    ("messages", [{"role": "robot", "content": "x"}], "messages[0].role", "'assistant'"),
    ("messages", [{"role": 1, "content": "x"}], "messages[0].role", "'user'"),
    ("messages", [{"role": "user"}], "messages[0].content", "needs content"),
    ("messages", [{"role": "user", "content": None}], "messages[0].content", "needs content"),
    ("messages", [{"role": "system", "content": None}], "messages[0].content", "needs content"),
    ("messages", [{"role": "user", "content": 5}], "messages[0].content", "valid string"),
    ("messages", [{"role": "user", "content": {"text": "x"}}], "messages[0].content", "valid string"),
    ("messages", [{"role": "user", "content": ["x"]}], "messages[0].content[0]", "object"),
    ("messages", [{"role": "user", "content": [{"type": "text"}]}], "messages[0].content[0].text", "is required"),
    ("messages", [{"role": "user", "content": [IMAGE]}], "messages[0].content[0].type", "type `text`"),
    ("messages", [USER, {"role": "user", "content": [AUDIO]}], "messages[1].content[0].type", "type `text`"),
    ("messages", [USER | {"name": 5}], "messages[0].name", "valid string"),
    ("messages", [USER | {"tool_calls": "f"}], "messages[0].tool_calls", "valid array"),
    ("messages", [USER | {"tool_calls": [{}]}], "messages[0].tool_calls[0].function", "is required"),
    ("stream", "yes", None, "valid boolean"),
    ("stream", 1, None, "valid boolean"),
    ("stream_options", [], None, "object"),
    ("stream_options", {"include_usage": "yes"}, "stream_options.include_usage", "valid boolean"),
    ("max_tokens", 0, None, "at least 1"),
    ("max_tokens", -2, None, "at least 1"),
    ("max_tokens", "5", None, "valid integer"),
    ("max_tokens", True, None, "valid integer"),
    ("max_tokens", 1.5, None, "valid integer"),
    ("max_completion_tokens", 0, None, "at least 1"),
    ("max_completion_tokens", [5], None, "valid integer"),
    ("min_tokens", -1, None, "greater than or equal to 0"),
    ("min_tokens", "1", None, "valid integer"),
    ("ignore_eos", "true", None, "valid boolean"),
    ("temperature", -0.1, None, "greater than or equal to 0"),
    ("temperature", 101, None, "less than or equal to 100"),
    ("temperature", "0.5", None, "valid number"),
    ("temperature", True, None, "valid number"),
    ("temperature", float("nan"), None, "finite"),
    ("temperature", float("inf"), None, "finite"),
    ("temperature", float("-inf"), None, "finite"),
    ("top_p", 0, None, "greater than 0"),
    ("top_p", 1.1, None, "less than or equal to 1"),
    ("top_p", float("nan"), None, "finite"),
    ("top_k", -2, None, "greater than or equal to -1"),
    ("top_k", 1.5, None, "valid integer"),
    ("min_p", -0.1, None, "greater than or equal to 0"),
    ("min_p", 2, None, "less than or equal to 1"),
    ("seed", "42", None, "valid integer"),
    ("seed", 1.5, None, "valid integer"),
    ("seed", False, None, "valid integer"),
    ("presence_penalty", 2.1, None, "less than or equal to 2"),
    ("frequency_penalty", -2.1, None, "greater than or equal to -2"),
    ("repeat_penalty", 0, None, "greater than 0"),
    ("repeat_penalty", 1e300, None, "less than or equal to 100"),
    ("repetition_penalty", -1, None, "greater than 0"),
    ("repeat_last_n", -2, None, "greater than or equal to -1"),
    ("stop", 5, None, "valid string"),
    ("stop", {"a": "b"}, None, "valid string"),
    ("stop", ["a", None], "stop[1]", "valid string"),
    ("stop", ["a"] * 17, None, "at most 16 items"),
    ("stop", "a" * 1025, None, "at most 1024 characters"),
    ("stop", ["a" * 1025], "stop[0]", "at most 1024 characters"),
    ("logit_bias", [[5, 1]], None, "object"),
    ("logit_bias", {"hello": 1}, None, "token ids"),
    ("logit_bias", {"-1": 1}, None, "token ids"),
    ("logit_bias", {"٣": 1}, None, "token ids"),
    ("logit_bias", {"9" * 30: 1}, None, "token ids"),
    ("logit_bias", {"5": 101}, None, "less than or equal to 100"),
    ("logit_bias", {"5": True}, None, "valid number"),
    ("logit_bias", {"5": float("nan")}, None, "finite"),
    ("n", 9, None, "less than or equal to 8"),
    ("n", 0, None, "greater than or equal to 1"),
    ("n", True, None, "valid integer"),
    ("tools", {}, None, "valid array"),
    ("tools", ["f"], "tools[0]", "object"),
    ("tools", [{}], "tools[0].type", "is required"),
    ("tools", [{"type": "function"}], "tools[0].function", "is required"),
    ("tools", [{"type": "function", "function": {}}], "tools[0].function.name", "is required"),
    ("tools", [{"type": "function", "function": {"name": ""}}], "tools[0].function.name", "at least 1 character"),
    ("tools", [{"type": "function", "function": {"name": "a b"}}], "tools[0].function.name", "match pattern"),
    ("tools", [{"type": "function", "function": {"name": "f\n"}}], "tools[0].function.name", "match pattern"),
    ("tools", [{"type": "function", "function": {"name": 5}}], "tools[0].function.name", "valid string"),
    ("tools", [TOOL, {"type": "web_search"}], "tools[1].type", "'function'"),
    ("tools", [tool(parameters=[])], "tools[0].function.parameters", "object"),
    ("tools", [tool(strict=1)], "tools[0].function.strict", "valid boolean"),
    ("tools", [TOOL, TOOL], None, "named `f`"),
    ("parallel_tool_calls", "no", None, "valid boolean"),
    ("reasoning_effort", "huge", None, "'low'"),
    ("reasoning_effort", 5, None, "'low'"),
    ("reasoning", "high", None, "object"),
    ("think", "yes", None, "'low'"),
    ("think", 1, None, "valid boolean"),
    ("reasoning_budget", -2, None, "greater than or equal to -1"),
    ("chat_template_kwargs", [], None, "object"),
    ("prediction", {"type": "content"}, "prediction.content", "is required"),
    ("prediction", "text", None, "object"),
    ("stop_token_ids", ["a"], "stop_token_ids[0]", "valid integer"),
    ("stop_token_ids", [-1], "stop_token_ids[0]", "greater than or equal to 0"),
    ("options", [], None, "object"),
    ("options", {"temperature": "hot"}, "options.temperature", "valid number"),
    ("options", {"num_predict": "5"}, "options.num_predict", "valid integer"),
    ("id", "a b", None, "match pattern"),
    ("id", "", None, "at least 1 character"),
    ("guided_choice", [], None, "at least 1 item"),
    ("guided_choice", [5], "guided_choice[0]", "valid string"),
    ("guided_json", "{", None, "not valid JSON"),
    ("guided_json", "[1]", None, "a JSON object"),
    ("guided_json", 5, None, "valid string"),
    ("guided_regex", 5, None, "valid string"),
    ("structured_outputs", "json", None, "object"),
    ("structured_outputs", {"regex": "a", "json": {}}, "structured_outputs.regex", "already"),
    ("grammar", {}, None, "valid string"),
    ("json_schema", "{}", None, "object"),
    ("timings_per_token", "yes", None, "valid boolean"),
    ("continue_final_message", True, None, "from the assistant"),
    ("tool_choice", "required", None, "no `tools`"),
    ("tool_choice", {"type": "function", "function": {"name": "f"}}, None, "no `tools`"),
    ("tool_choice", "sometimes", None, "'auto'"),
    ("tool_choice", 5, None, "'auto'"),
    ("functions", [{"name": "f"}], None, "`tools`"),
    ("response_format", {"type": "xml"}, "response_format.type", "'json_object'"),
    ("response_format", {"type": "json_schema"}, "response_format.json_schema", "is required"),
    ("response_format", {"type": "json_schema", "json_schema": []}, "response_format.json_schema", "object"),
    ("response_format", json_schema(5), "response_format.json_schema.schema", "object"),
    ("response_format", {}, "response_format.type", "is required"),
    ("response_format", "json", None, "object"),
    ("logprobs", 5, None, "valid boolean"),
    ("top_logprobs", 3, None, "`logprobs` must be true"),
    ("top_logprobs", 21, None, "less than or equal to 20"),
    ("modalities", ["text", "audio"], None, "nothing but `text`"),
    ("modalities", ["audio"], None, "nothing but `text`"),
    ("modalities", "text", None, "valid array"),
]  # fmt: skip


def is_refusal(answer: httpx2.Response, status: int, code: str) -> dict[str, Any]:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"
    assert set(answer.json()) == {"error"}
    error: dict[str, Any] = answer.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert error["code"] == code
    return error


def readable(value: object) -> str:
    return "absent" if value is ABSENT else repr(value)[:40]


@pytest.mark.parametrize(("field", "value", "param", "says"), FIELDS, ids=readable)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_a_field_is_refused(
    client: httpx2.AsyncClient,
    engine: FakeEngine,
    *,
    stream: bool,
    field: str,
    value: Any,
    param: str | None,
    says: str,
) -> None:
    body = {"stream": stream, **HELLO, field: value}
    if value is ABSENT:
        del body[field]
    error = is_refusal(await client.post(CHAT, content=json.dumps(body)), 400, "invalid_request")
    assert error["type"] == "invalid_request_error"
    assert error["param"] == (param or field)
    assert says in error["message"]
    assert f"`{param or field}`" in error["message"]
    assert engine.requests == []


MODEL = json.dumps(HELLO)[:-1].encode()
BODIES: list[tuple[str, bytes, str]] = [
    ("empty", b"", "not valid JSON"),
    ("blank", b" \n", "not valid JSON"),
    ("words", b"hello", "not valid JSON"),
    ("cut short", MODEL, "not valid JSON"),
    ("a comma too many", MODEL + b",}", "not valid JSON"),
    ("two objects", MODEL + b"}{}", "not valid JSON"),
    ("single quotes", b"{'model': 'tiny'}", "not valid JSON"),
    ("a form", b"model=tiny&messages=hi", "not valid JSON"),
    ("invalid UTF-8", MODEL + b', "x": "\xff"}', "not valid JSON"),
    ("UTF-16", json.dumps(HELLO).encode("utf-16"), "not valid JSON"),
    ("half a surrogate pair", MODEL + b', "x": "\\ud800"}', "not valid JSON"),
    ("deep lists", MODEL + b', "x": ' + b"[" * 50_000 + b"]" * 50_000 + b"}", "recursion"),
    ("deep objects", MODEL + b', "x": ' + b'{"a":' * 50_000 + b"1" + b"}" * 50_000 + b"}", "recursion"),
    ("a number of 5000 digits", MODEL + b', "seed": ' + b"9" * 5000 + b"}", "not valid JSON"),
    ("null", b"null", "a JSON object"),
    ("a list", b"[]", "a JSON object"),
    ("a text", b'"hello"', "a JSON object"),
    ("a number", b"5", "a JSON object"),
]


@pytest.mark.parametrize(("body", "says"), [row[1:] for row in BODIES], ids=[row[0] for row in BODIES])
async def test_a_body_is_refused(
    client: httpx2.AsyncClient, engine: FakeEngine, body: bytes, says: str
) -> None:
    error = is_refusal(await client.post(CHAT, content=body), 400, "invalid_request")
    assert error["param"] is None
    assert says in error["message"]
    assert engine.requests == []


async def test_min_tokens_above_the_limit_are_refused(client: httpx2.AsyncClient) -> None:
    answer = await client.post(CHAT, json=HELLO | {"min_tokens": 6, "max_completion_tokens": 5})
    assert is_refusal(answer, 400, "invalid_request")["param"] == "min_tokens"


async def test_a_body_over_the_limit_is_refused(client: httpx2.AsyncClient, engine: FakeEngine) -> None:
    big = json.dumps(HELLO | {"user": "x" * (1 << 20)}).encode()

    async def in_pieces():  # type: ignore[no-untyped-def]
        for at in range(0, len(big), 65536):
            yield big[at : at + 65536]

    for content in (big, in_pieces()):
        error = is_refusal(await client.post(CHAT, content=content), 413, "body_too_large")
        assert error["message"] == "the body is larger than 1 MiB"
    assert engine.requests == []


async def test_a_body_at_the_limit_is_read(client: httpx2.AsyncClient) -> None:
    body = json.dumps(HELLO).encode().ljust(1 << 20)
    assert (await client.post(CHAT, content=body)).status_code == 200


async def test_an_unknown_model_is_not_found(client: httpx2.AsyncClient) -> None:
    error = is_refusal(await client.post(CHAT, json=HELLO | {"model": "nobody"}), 404, "model_not_found")
    assert error["param"] == "model"
    assert error["message"] == "model 'nobody' not found"


async def test_a_template_that_raises_is_refused(client: httpx2.AsyncClient, engine: FakeEngine) -> None:
    template = "{{ raise_exception('roles must alternate') }}"
    engine.info = msgspec.structs.replace(engine.info, chat_template=template)
    error = is_refusal(await client.post(CHAT, json=HELLO), 400, "invalid_request")
    assert error["param"] == "messages"
    assert "roles must alternate" in error["message"]
    assert engine.requests == []


async def test_what_the_engine_refuses_is_told_before_the_first_byte(
    client: httpx2.AsyncClient, engine: FakeEngine, registry: FakeRegistry
) -> None:
    engine.refusal = InvalidRequest("token 99 is not in the vocabulary of 50", "logit_bias")
    for stream in (False, True):
        answer = await client.post(CHAT, json=HELLO | {"stream": stream, "logit_bias": {"99": 1}})
        assert is_refusal(answer, 400, "invalid_request")["param"] == "logit_bias"
    assert registry.leases == 0
