"""Streams, over a real socket: which events come, in what order, and how a stream ends."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import pytest
from starlette.applications import Starlette

from fox.api import answer
from fox.generation import Finish, TokenLogprob, Usage
from tests.api.fakes import DEAD, STOP, FakeEngine
from tests.api.wire import CHAT, HELLO, Visitor, asking, events, in_time, said, serving

pytestmark = pytest.mark.anyio

STREAM = HELLO | {"stream": True}


async def ask(app: Starlette, **fields: Any) -> tuple[httpx2.Response, list[Any]]:
    async with serving(app) as port, asking(port) as client:
        response = await client.post(CHAT, json=STREAM | fields)
        return response, events(response.text.splitlines())


def choice(delta: dict[str, str], finish: str | None = None) -> list[dict[str, Any]]:
    return [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}]


async def test_a_stream_has_role_deltas_finish_and_done_in_that_order(app: Starlette) -> None:
    response, chunks = await ask(app)
    assert response.status_code == 200
    assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert response.headers["cache-control"] == "no-cache"
    assert [chunk if chunk == "[DONE]" else chunk["choices"] for chunk in chunks] == [
        choice({"role": "assistant", "content": ""}),
        choice({"content": "Hel"}),
        choice({"content": "lo"}),
        choice({}, "stop"),
        "[DONE]",
    ]
    assert not any("usage" in chunk for chunk in chunks)


async def test_a_piece_carries_the_log_probabilities_of_its_tokens(
    app: Starlette, engine: FakeEngine
) -> None:
    told = (TokenLogprob("é\u2028".encode()[:1], -0.5, ((b"a", -0.5), (b"b", float("-inf")))),)
    engine.logprobs = told
    _, chunks = await ask(app, logprobs=True, top_logprobs=2)
    assert engine.requests[0].logprobs == 2
    assert chunks[1]["choices"][0]["logprobs"] == {
        "content": [
            {
                "token": "\ufffd",
                "logprob": -0.5,
                "bytes": [195],
                "top_logprobs": [
                    {"token": "a", "logprob": -0.5, "bytes": [97]},
                    {"token": "b", "logprob": -9999.0, "bytes": [98]},
                ],
            }
        ],
        "refusal": None,
    }
    assert chunks[1]["choices"][0]["delta"] == {"content": "Hel"}


async def test_all_chunks_have_one_id_time_model_and_fingerprint(app: Starlette, engine: FakeEngine) -> None:
    _, chunks = await ask(app, stream_options={"include_usage": True})
    heads = {(c["id"], c["object"], c["created"], c["model"], c["system_fingerprint"]) for c in chunks[:-1]}
    ((id_, kind, _, model, fingerprint),) = heads
    assert id_ == engine.requests[0].id
    assert (kind, model, fingerprint[:3]) == ("chat.completion.chunk", "tiny", "fp_")


async def test_a_usage_chunk_comes_only_when_asked_for(app: Starlette) -> None:
    _, chunks = await ask(app, stream_options={"include_usage": True})
    *others, usage, done = chunks
    assert done == "[DONE]"
    assert all(chunk["usage"] is None and chunk["choices"] for chunk in others)
    assert usage["choices"] == []
    assert usage["usage"] == {
        "prompt_tokens": 7,
        "completion_tokens": 3,
        "total_tokens": 10,
        "prompt_tokens_details": {"cached_tokens": 2},
        "completion_tokens_details": {"reasoning_tokens": 0},
    }


async def test_an_empty_delta_is_not_sent(app: Starlette, engine: FakeEngine) -> None:
    engine.says = ("", "a", "", "")
    _, chunks = await ask(app)
    assert len(chunks) == 4


async def test_text_beside_the_finish_is_sent_before_it(app: Starlette, engine: FakeEngine) -> None:
    engine.says = None
    async with serving(app) as port:
        visitor = await Visitor.ask(port, stream=True)
        (await in_time(engine.generations.get())).say_last("last", Finish("length", Usage(1, 1)))
        heard = (await visitor.hear(b"[DONE]")).decode()
        assert heard.index('"content":"last"') < heard.index('"finish_reason":"length"')
        await visitor.leave()


TEXTS = [
    '"quoted" \\ back',
    "line\nbreak\r\n\ttab\x00\x1f",
    "日本語 🦊 é",
    "a\u2028b\u2029c\x85d",
    "</s><|im_end|>",
    "data: x\n\n",
]


@pytest.mark.parametrize("text", TEXTS, ids=ascii)
async def test_any_text_survives_also_a_client_that_breaks_lines_at_unicodes_line_ends(
    app: Starlette, engine: FakeEngine, text: str
) -> None:
    engine.says = (text,)
    _, chunks = await ask(app)
    assert said(chunks) == text
    assert len(chunks) == 4


async def test_the_head_comes_before_the_first_token(app: Starlette, engine: FakeEngine) -> None:
    engine.says = None
    async with serving(app) as port:
        visitor = await Visitor.ask(port, stream=True)
        assert b'"role":"assistant"' in await visitor.hear(b"\n\n\r\n")
        generation = await in_time(engine.generations.get())
        generation.say("now", finish=STOP)
        assert b'"content":"now"' in await visitor.hear(b"[DONE]")
        await visitor.leave()


@pytest.mark.parametrize("include_usage", [False, True])
async def test_a_death_in_mid_stream_is_an_error_event_and_then_done(
    app: Starlette, engine: FakeEngine, include_usage: bool
) -> None:
    engine.says, engine.finish = ("Hel",), DEAD
    response, chunks = await ask(app, stream_options={"include_usage": include_usage})
    assert response.status_code == 200
    *_, piece, error, done = chunks
    assert piece["choices"] == choice({"content": "Hel"})
    assert error == {
        "error": {
            "message": "the engine of 'tiny' was killed by SIGKILL",
            "type": "server_error",
            "param": None,
            "code": "engine_failed",
        }
    }
    assert done == "[DONE]"


async def test_a_crash_in_mid_stream_is_logged_and_told_cleanly(
    app: Starlette, engine: FakeEngine, caplog: pytest.LogCaptureFixture
) -> None:
    engine.says = None
    async with serving(app) as port:
        visitor = await Visitor.ask(port, stream=True)
        generation = await in_time(engine.generations.get())
        generation.crash(RuntimeError("/secret/path"))
        heard = await visitor.hear(b"[DONE]")
        assert b'"code":"internal_error"' in heard
        assert b"secret" not in heard
        assert generation.cancels == 1
        await visitor.leave()
    assert "/secret/path" in caplog.text


async def test_a_stream_that_ends_without_a_finish_is_an_error(app: Starlette, engine: FakeEngine) -> None:
    engine.says = None
    async with serving(app) as port:
        visitor = await Visitor.ask(port, stream=True)
        (await in_time(engine.generations.get())).end_without_a_finish()
        assert b"without a finish" in await visitor.hear(b"[DONE]")
        await visitor.leave()


async def test_pings_come_while_nothing_else_does(
    app: Starlette, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answer, "PING_S", 0.01)
    engine.says = None
    async with serving(app) as port:
        visitor = await Visitor.ask(port, stream=True)
        for _ in range(3):
            await visitor.hear(b": ping\n\n")
        generation = await in_time(engine.generations.get())
        generation.say("a")
        await visitor.hear(b'"content":"a"')
        await visitor.hear(b": ping\n\n")
        generation.say(finish=STOP)
        await visitor.hear(b"[DONE]\n\n\r\n0\r\n\r\n")
        await visitor.leave()


async def test_no_ping_comes_while_tokens_do(app: Starlette, engine: FakeEngine) -> None:
    response, _ = await ask(app)
    assert "ping" not in response.text


async def test_the_connection_is_kept_for_the_next_question(app: Starlette) -> None:
    async with serving(app) as port, asking(port) as client:
        for _ in range(3):
            response = await client.post(CHAT, json=STREAM)
            assert response.text.endswith("data: [DONE]\n\n")
            assert "connection" not in response.headers


async def test_the_openai_client_reads_it(app: Starlette) -> None:
    import openai

    async with serving(app) as port:
        client = openai.AsyncOpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="none")
        async with client:
            stream = await client.chat.completions.create(**json.loads(json.dumps(STREAM)))
            texts = [chunk.choices[0].delta.content async for chunk in stream]
    assert texts == ["", "Hel", "lo", None]
