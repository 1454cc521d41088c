"""Ollama's dialect over fakes: what is said byte for byte, and what the engine is asked."""

from __future__ import annotations

import json
import math
import re
from datetime import datetime
from typing import Any

import httpx2
import msgspec
import pytest
from starlette.applications import Starlette

from fox.errors import ContextExceeded, EngineFailed, QueueFull
from fox.generation import Finish, TokenLogprob, Usage
from fox.registry.recipe import Recipe
from tests.api.fakes import DEAD, FakeEngine, FakeRegistry
from tests.api.wire import asking, in_memory, in_time, serving

pytestmark = pytest.mark.anyio

RAW = "raw mode does not support template, system, or context"
CHAT, GENERATE = "/api/chat", "/api/generate"
HELLO: dict[str, Any] = {"model": "tiny", "messages": [{"role": "user", "content": "hi"}]}
ASKED: dict[str, Any] = {"model": "tiny", "prompt": "hi"}


def lines(answer: httpx2.Response) -> list[dict[str, Any]]:
    """Exactly one object a line, and no empty lines."""
    assert answer.text.endswith("\n")
    return [json.loads(line) for line in answer.text[:-1].split("\n")]


async def test_a_chat_is_one_object_a_line(client: httpx2.AsyncClient) -> None:
    answer = await client.post(CHAT, json=HELLO)
    assert answer.headers["content-type"] == "application/x-ndjson"
    *said, last = lines(answer)
    assert [one["message"] for one in said] == [
        {"role": "assistant", "content": "Hel"},
        {"role": "assistant", "content": "lo"},
    ]
    assert all(one["done"] is False and one["model"] == "tiny" for one in said)
    assert last["message"] == {"role": "assistant", "content": ""}
    assert (last["done"], last["done_reason"]) == (True, "stop")
    assert (last["prompt_eval_count"], last["eval_count"], last["prompt_eval_cached_count"]) == (7, 3, 2)
    for name in ("total_duration", "prompt_eval_duration", "eval_duration", "load_duration"):
        assert isinstance(last[name], int)
        assert last[name] > 0
    for one in (*said, last):
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z", one["created_at"])
        assert datetime.fromisoformat(one["created_at"])


async def test_a_generation_ends_with_the_context_to_go_on_from(client: httpx2.AsyncClient) -> None:
    answer = await client.post(GENERATE, json=ASKED)
    *said, last = lines(answer)
    assert [one["response"] for one in said] == ["Hel", "lo"]
    assert last["response"] == ""
    assert all(isinstance(token, int) for token in last["context"])


async def test_one_that_is_not_streamed_is_one_object(client: httpx2.AsyncClient) -> None:
    chat = await client.post(CHAT, json=HELLO | {"stream": False})
    assert chat.headers["content-type"] == "application/json; charset=utf-8"
    assert chat.json()["message"] == {"role": "assistant", "content": "Hello"}
    generated = (await client.post(GENERATE, json=ASKED | {"stream": False})).json()
    assert (generated["response"], generated["done"]) == ("Hello", True)


@pytest.mark.parametrize(
    "headers", [{}, {"content-type": "application/x-www-form-urlencoded"}, {"content-type": "text/plain"}]
)
async def test_a_body_is_read_whatever_its_type_keys_in_any_case_and_rubbish_behind(
    client: httpx2.AsyncClient, headers: dict[str, str]
) -> None:
    body = b'\n{"MODEL": "tiny", "Messages": [{"Role": "User", "CONTENT": "hi", "x": 1}], "stream": null} trailing'
    answer = await client.post(CHAT, content=body, headers=headers)
    assert lines(answer)[-1]["done"]


@pytest.mark.parametrize(
    ("path", "body", "status", "text"),
    [
        (CHAT, b"", 400, "missing request body"),
        (CHAT, b"   ", 400, "missing request body"),
        (CHAT, b"[]", 400, "json: cannot unmarshal array into Go value of type api.ChatRequest"),
        (CHAT, b"{}", 400, "model is required"),
        (GENERATE, b"{}", 404, "model '' not found"),
        (CHAT, {"model": "nope"}, 404, "model 'nope' not found"),
        (GENERATE, {"model": "nope:1b"}, 404, "model 'nope:1b' not found"),
        (CHAT, {"model": "a b"}, 400, "invalid model name"),
        (GENERATE, {"model": "../../etc/passwd"}, 400, "invalid model name"),
        (CHAT, {"model": "x:cloud:local"}, 400, 'use either :local or :cloud, not both: "x:cloud:local"'),
        (CHAT, {"model": "x:cloud"}, 403, "ollama cloud is disabled: remote inference is unavailable"),
        (
            CHAT,
            {"model": "tiny", "messages": "x"},
            400,
            "json: cannot unmarshal string into Go struct field ChatRequest.messages of type []api.Message",
        ),
        (
            GENERATE,
            ASKED | {"prompt": 5},
            400,
            "json: cannot unmarshal number into Go struct field GenerateRequest.prompt of type string",
        ),
        (
            GENERATE,
            ASKED | {"raw": "yes"},
            400,
            "json: cannot unmarshal string into Go struct field GenerateRequest.raw of type bool",
        ),
        (
            GENERATE,
            ASKED | {"raw": True, "system": "s"},
            400,
            RAW,
        ),
        (
            GENERATE,
            ASKED | {"raw": True, "context": [1]},
            400,
            RAW,
        ),
        (CHAT, HELLO | {"think": True}, 400, '"tiny" does not support thinking'),
        (
            CHAT,
            HELLO | {"think": "hard"},
            400,
            'invalid think value: "hard" (must be "high", "medium", "low", "max", true, or false)',
        ),
        (
            CHAT,
            HELLO | {"format": "xml"},
            400,
            'invalid format: "xml"; expected "json" or a valid JSON Schema object',
        ),
        (CHAT, HELLO | {"options": {"num_ctx": "4k"}}, 400, 'option "num_ctx" must be of type integer'),
        (CHAT, HELLO | {"options": {"stop": 5}}, 400, 'option "stop" must be of type array'),
        (CHAT, HELLO | {"keep_alive": "soon"}, 400, 'time: invalid duration "soon"'),
        (CHAT, HELLO | {"keep_alive": True}, 400, "Unsupported type: 'bool'"),
        (CHAT, HELLO | {"top_logprobs": 21}, 400, "top_logprobs must be between 0 and 20"),
        (
            CHAT,
            HELLO | {"tools": [{"type": "function"}]},
            400,
            "`tools`: each tool needs a `function` with a `name`",
        ),
        (CHAT, HELLO | {"tool_choice": "f"}, 400, "`tool_choice`: there is no tool `f`"),
        ("/api/embed", {"model": "nope"}, 404, 'model "nope" not found, try pulling it first'),
        ("/api/embed", {"input": "x"}, 404, "model '' not found"),
        ("/api/embed", {"model": "tiny", "input": 5}, 400, "invalid input type"),
        ("/api/embed", {"model": "tiny", "input": ["a", 5]}, 400, "invalid input type"),
        ("/api/embeddings", {"prompt": "x"}, 400, "model is required"),
        ("/api/show", {}, 400, "model is required"),
        ("/api/show", {"name": "nope"}, 404, "model 'nope:latest' not found"),
        ("/api/copy", {"source": "nope", "destination": "x"}, 404, 'model "nope" not found'),
        ("/api/copy", {"source": "tiny", "destination": "a b"}, 400, 'destination "a b" is invalid'),
        ("/api/copy", {"source": "", "destination": "x"}, 400, 'source "" is invalid'),
        ("/api/create", {"model": "x y", "from": "tiny"}, 400, "invalid model name"),
        ("/api/create", {"from": "tiny"}, 400, "model is required"),
    ],
)
async def test_a_refusal_has_ollamas_status_and_words(
    client: httpx2.AsyncClient, path: str, body: Any, status: int, text: str
) -> None:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    answer = await client.post(path, content=content)
    assert (answer.status_code, answer.json()) == (status, {"error": text})
    assert answer.headers["content-type"].startswith("application/json")


async def test_what_is_not_json_is_refused(client: httpx2.AsyncClient) -> None:
    for body in (b"{", b"nothing", b"\xff\xfe", b'{"model": NaN', b"[" * 100_000):
        answer = await client.post(CHAT, content=body)
        assert answer.status_code == 400, body[:20]
        assert set(answer.json()) == {"error"}


@pytest.mark.parametrize(
    ("error", "status", "text"),
    [
        (QueueFull(3), 503, "server busy, please try again.  maximum pending requests exceeded"),
        (EngineFailed("it died"), 503, "it died"),
        (ContextExceeded("long", "prompt", 9, 8), 400, "the prompt is longer than the context length"),
        (RuntimeError("secret"), 500, "internal error"),
    ],
)
async def test_an_engines_refusal_is_told_before_the_first_byte(
    client: httpx2.AsyncClient, engine: FakeEngine, error: Exception, status: int, text: str
) -> None:
    engine.refusal = error
    answer = await client.post(CHAT, json=HELLO)
    assert answer.status_code == status
    assert answer.json()["error"].startswith(text)


async def test_an_error_after_the_first_byte_is_the_last_line(
    client: httpx2.AsyncClient, engine: FakeEngine
) -> None:
    engine.finish = DEAD
    answer = await client.post(CHAT, json=HELLO)
    assert answer.status_code == 200
    assert lines(answer)[-1] == {"error": "the engine of 'tiny' was killed by SIGKILL"}
    whole = await client.post(CHAT, json=HELLO | {"stream": False})
    assert (whole.status_code, set(whole.json())) == (503, {"error"})


@pytest.mark.parametrize("path", [CHAT, GENERATE])
async def test_an_empty_prompt_loads(client: httpx2.AsyncClient, registry: FakeRegistry, path: str) -> None:
    answer = await client.post(path, json={"model": "tiny", "keep_alive": "10m"})
    told = answer.json()
    assert (told["done"], told["done_reason"], told["model"]) == (True, "load", "tiny")
    assert "total_duration" not in told
    assert registry.terms[-1].keep_alive_s == 600


@pytest.mark.parametrize("path", [CHAT, GENERATE])
@pytest.mark.parametrize("never", [0, "0", "0s", 0.0])
async def test_an_empty_prompt_and_no_stay_unloads(
    client: httpx2.AsyncClient, registry: FakeRegistry, path: str, never: Any
) -> None:
    answer = await client.post(path, json={"model": "tiny", "keep_alive": never})
    assert answer.json()["done_reason"] == "unload"
    assert registry.unloaded == ["tiny"]
    assert not registry.terms


@pytest.mark.parametrize(
    ("said", "meant"), [(None, None), ("", None), (-1, math.inf), ("-1", math.inf), ("90", 90.0), (0, 0.0)]
)
async def test_a_stay_reaches_the_registry_in_either_dialect(
    client: httpx2.AsyncClient, registry: FakeRegistry, said: Any, meant: float | None
) -> None:
    for path in (CHAT, "/v1/chat/completions"):
        await client.post(path, json=HELLO | {"keep_alive": said, "options": {"num_ctx": 64}})
        terms = registry.terms[-1]
        assert (terms.keep_alive_s, terms.context_tokens) == (meant, 64), path


async def test_options_reach_the_engine_over_the_models_own(
    client: httpx2.AsyncClient, engine: FakeEngine, registry: FakeRegistry
) -> None:
    registry.recipes["tiny"] = Recipe(
        parameters={"temperature": 0.1, "top_k": 7, "stop": ["model"], "num_predict": 3}
    )
    options = {
        "temperature": 0,
        "seed": 42.9,
        "stop": "END",
        "num_ctx": 50.0,
        "num_keep": 5,
        "tfs_z": 1,
        "mirostat": None,
    }
    await client.post(CHAT, json=HELLO | {"options": options})
    request = engine.requests[-1]
    assert (request.sampling.temperature, request.sampling.seed, request.stop) == (0.0, 42, ("END",))
    assert (request.window, request.keep) == (50, 5)


async def test_a_models_system_and_messages_stand_before_every_conversation(
    client: httpx2.AsyncClient, engine: FakeEngine, registry: FakeRegistry
) -> None:
    before = ({"role": "user", "content": "1"}, {"role": "assistant", "content": "2"})
    registry.recipes["tiny"] = Recipe(system="S", messages=before)
    for path, body in ((CHAT, HELLO), ("/v1/chat/completions", HELLO), (GENERATE, ASKED)):
        await client.post(path, json=body)
        text = "".join(part.text for part in engine.requests[-1].prompt)
        assert text == "system:S\nuser:1\nassistant:2\nuser:hi\n", path
    await client.post(
        CHAT, json=HELLO | {"messages": [{"role": "system", "content": "mine"}, *HELLO["messages"]]}
    )
    assert "system:S" not in "".join(part.text for part in engine.requests[-1].prompt)
    await client.post(GENERATE, json=ASKED | {"system": "mine"})
    assert "".join(part.text for part in engine.requests[-1].prompt).startswith("system:mine\nuser:1\n")


async def test_raw_prompts_are_verbatim_and_have_no_context(
    client: httpx2.AsyncClient, engine: FakeEngine
) -> None:
    answer = await client.post(GENERATE, json=ASKED | {"raw": True, "prompt": "<s>verbatim"})
    assert "context" not in lines(answer)[-1]
    assert [part.text for part in engine.requests[-1].prompt] == ["<s>verbatim"]
    assert engine.requests[-1].tokens


async def test_no_tokens_at_all_can_be_asked_for(client: httpx2.AsyncClient) -> None:
    (only,) = lines(await client.post(CHAT, json=HELLO | {"options": {"num_predict": 0}}))
    assert (only["message"]["content"], only["done_reason"]) == ("", "length")
    assert "eval_count" not in only


async def test_logprobs_are_told_with_their_pieces(client: httpx2.AsyncClient, engine: FakeEngine) -> None:
    engine.logprobs = (TokenLogprob(b"H", -0.5, ((b"H", -0.5), (b"J", -math.inf))),)
    first = lines(await client.post(CHAT, json=HELLO | {"logprobs": True, "top_logprobs": 2}))[0]
    assert first["logprobs"] == [
        {
            "token": "H",
            "logprob": -0.5,
            "bytes": [72],
            "top_logprobs": [
                {"token": "H", "logprob": -0.5, "bytes": [72]},
                {"token": "J", "logprob": -9999.0, "bytes": [74]},
            ],
        }
    ]
    without = lines(await client.post(CHAT, json=HELLO | {"logprobs": True}))[0]
    assert "top_logprobs" not in without["logprobs"][0]


TOOL = {
    "type": "function",
    "function": {"name": "f", "parameters": {"type": "object", "x-odd": [1]}},
}


async def test_calls_are_told_when_they_are_whole_and_text_at_once(
    client: httpx2.AsyncClient, engine: FakeEngine
) -> None:
    engine.says = ("Well. ", '<tool_call>\n{"name": "f", ', '"arguments": {"a"', ": 1}}\n</tool_call>")
    *said, last = lines(await client.post(CHAT, json=HELLO | {"tools": [TOOL]}))
    texts = [one["message"]["content"] for one in said]
    assert "".join(texts).strip() == "Well."
    calls = [call for one in said for call in one["message"].get("tool_calls", ())]
    assert [call["function"] for call in calls] == [{"index": 0, "name": "f", "arguments": {"a": 1}}]
    assert re.fullmatch(r"call_[a-z0-9]{8}", calls[0]["id"])
    assert last["done_reason"] == "stop"
    whole = (await client.post(CHAT, json=HELLO | {"tools": [TOOL], "stream": False})).json()
    assert whole["message"]["tool_calls"][0]["function"]["arguments"] == {"a": 1}


async def test_a_tools_schema_reaches_the_template_whole(client: httpx2.AsyncClient) -> None:
    answer = await client.post(CHAT, json=HELLO | {"tools": [TOOL], "_debug_render_only": True})
    assert '"x-odd": [1]' in answer.json()["_debug_info"]["rendered_template"]


async def test_history_of_calls_and_results_reaches_the_template(
    client: httpx2.AsyncClient, engine: FakeEngine
) -> None:
    messages = [
        {"role": "user", "content": "hi"},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"function": {"name": "f", "arguments": '{"a": 1}'}}],
        },
        {"role": "tool", "content": "1", "tool_name": "f"},
    ]
    answer = await client.post(CHAT, json={"model": "tiny", "messages": messages, "images": [], "tools": []})
    assert answer.status_code == 200
    assert "tool:1" in "".join(part.text for part in engine.requests[-1].prompt)


async def test_images_are_refused_by_a_model_that_sees_nothing(client: httpx2.AsyncClient) -> None:
    messages = [{"role": "user", "content": "what is this?", "images": ["aGk="]}]
    answer = await client.post(CHAT, json={"model": "tiny", "messages": messages})
    assert answer.status_code == 400
    assert "does not support vision" in answer.json()["error"]
    empty = [{"role": "user", "content": "hi", "images": []}]
    assert (await client.post(CHAT, json={"model": "tiny", "messages": empty})).status_code == 200


async def test_old_messages_go_first_where_all_do_not_fit(
    client: httpx2.AsyncClient, engine: FakeEngine
) -> None:
    old = [{"role": role, "content": "x" * 30} for _ in range(6) for role in ("user", "assistant")]
    messages = [{"role": "system", "content": "stay"}, *old, {"role": "user", "content": "last"}]
    answer = await client.post(CHAT, json={"model": "tiny", "messages": messages})
    text = "".join(part.text for part in engine.requests[-1].prompt)
    assert text.startswith("system:stay\n")
    assert text.endswith("user:last\n")
    assert int(answer.headers["x-fox-truncated"]) > 0
    kept = text.count("x" * 30)
    assert 0 < kept < 12
    await client.post(CHAT, json={"model": "tiny", "messages": messages, "truncate": False})
    assert "".join(part.text for part in engine.requests[-1].prompt).count("x" * 30) == 12
    assert engine.requests[-1].truncate is False


async def test_embeddings_have_both_shapes(client: httpx2.AsyncClient, engine: FakeEngine) -> None:
    answer = (
        await client.post("/api/embed", json={"model": "tiny", "input": ["ab", "c"], "truncate": False})
    ).json()
    assert answer["embeddings"] == [[2.0, 0.0], [1.0, 1.0]]
    assert {"model", "embeddings", "total_duration", "prompt_eval_count"} <= set(answer)
    assert engine.errands[-1]["truncate"] is False
    old = (await client.post("/api/embeddings", json={"model": "tiny", "prompt": "abc"})).json()
    assert old == {"embedding": [3.0, 0.0]}
    for nothing in ("", [], None):
        empty = (await client.post("/api/embed", json={"model": "tiny", "input": nothing})).json()
        assert empty == {"model": "tiny", "embeddings": []}
    assert (await client.post("/api/embeddings", json={"model": "tiny"})).json() == {"embedding": []}


async def test_a_quiet_stream_says_nothing_in_a_whole_line(app: Starlette, engine: FakeEngine) -> None:
    engine.says = None
    from fox.api import answer

    async with (
        serving(app) as port,
        asking(port) as client,
        client.stream("POST", CHAT, json=HELLO) as response,
    ):
        generation = await in_time(engine.generations.get())
        generation.say("x", finish=Finish("stop", Usage(1, 1, 0)))
        body = await response.aread()
    assert all(json.loads(line) for line in body.splitlines())
    assert answer.PING_S == 15


async def test_a_client_that_leaves_ends_its_generation(app: Starlette, engine: FakeEngine) -> None:
    engine.says = None
    async with serving(app) as port, asking(port) as client:
        async with client.stream("POST", CHAT, json=HELLO):
            generation = await in_time(engine.generations.get())
            generation.say("x")
        await in_time(generation.cancelled.wait())


@pytest.mark.parametrize(
    ("method", "path", "status", "text"),
    [
        ("GET", "/api/nothing", 404, "404 page not found"),
        ("GET", "/api/chat", 405, "405 method not allowed"),
        ("PUT", "/api/tags", 405, "405 method not allowed"),
    ],
)
async def test_an_unknown_route_is_told_as_gin_tells_it(
    client: httpx2.AsyncClient, method: str, path: str, status: int, text: str
) -> None:
    answer = await client.request(method, path)
    assert (answer.status_code, answer.text) == (status, text)


async def test_heartbeats_and_accounts_are_answered(client: httpx2.AsyncClient) -> None:
    assert (await client.head("/")).status_code == 200
    assert (await client.get("/")).text == "Ollama is running"
    assert (await client.head("/api/tags")).status_code == 200
    version = (await client.get("/api/version")).json()["version"]
    assert tuple(map(int, version.split("."))) >= (0, 35, 0)
    assert (await client.get("/api/status")).json()["cloud"]["disabled"] is True
    assert (await client.post("/api/me")).status_code == 401
    assert (await client.get("/api/experimental/model-recommendations")).json() == {"recommendations": []}
    refused = await client.post("/api/experimental/web_search", json={})
    assert (refused.status_code, refused.json()["error"]) == (
        403,
        "ollama cloud is disabled: web search is unavailable",
    )


async def test_thoughts_are_told_beside_the_text() -> None:
    engine = FakeEngine(says=("<think>", "hm", "</think>", "yes"))
    template = (
        "{% if enable_thinking %}<think></think>{% endif %}{% for m in messages %}{{ m.content }}{% endfor %}"
    )
    engine.info = msgspec.structs.replace(engine.info, chat_template=template)
    from fox.api import ApiOptions, create_app

    async with in_memory(create_app(FakeRegistry(engine), ApiOptions())) as client:  # type: ignore[arg-type]
        *said, _ = lines(await client.post(CHAT, json=HELLO))
        assert "".join(one["message"].get("thinking", "") for one in said) == "hm"
        assert "".join(one["message"]["content"] for one in said) == "yes"
        *said, _ = lines(await client.post(GENERATE, json=ASKED))
        assert "".join(one.get("thinking", "") for one in said) == "hm"
        assert "".join(one["response"] for one in said) == "yes"
