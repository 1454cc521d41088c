"""Completions and infills: what the engine is asked, and in which words its answers are told."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import msgspec
import pytest

from fox.generation import Delta, Finish, GenerationRequest, PromptPart, TokenLogprob, Usage
from tests.api.fakes import FakeEngine, FakeGeneration
from tests.api.wire import events

pytestmark = pytest.mark.anyio

COMPLETE = "/v1/completions"
GAP = ("<pre>", "<suf>", "<mid>")


def asked(**fields: Any) -> dict[str, Any]:
    return {"model": "tiny", "prompt": "Once", **fields}


async def completed(client: httpx2.AsyncClient, **fields: Any) -> Any:
    answer = await client.post(COMPLETE, json=asked(**fields))
    assert answer.status_code == 200, answer.text
    return answer.json()


async def refused(client: httpx2.AsyncClient, **fields: Any) -> tuple[str, str]:
    answer = await client.post(COMPLETE, json=asked(**fields))
    assert answer.status_code == 400, answer.text
    error = answer.json()["error"]
    return error["param"], error["message"]


def parts(request: GenerationRequest) -> Any:
    return request.tokens or tuple(part.text for part in request.prompt)


async def test_a_text_is_told_whole(client: httpx2.AsyncClient, engine: FakeEngine) -> None:
    told = await completed(client, max_tokens=5)
    assert told["object"] == "text_completion"
    assert told["id"].startswith("cmpl-")
    assert told["choices"] == [{"index": 0, "text": "Hello", "logprobs": None, "finish_reason": "stop"}]
    assert (told["usage"]["prompt_tokens"], told["usage"]["completion_tokens"]) == (7, 3)
    assert engine.requests[0].prompt == (PromptPart("Once", special=True),)
    assert engine.requests[0].max_tokens == 5
    assert engine.requests[0].logprobs is None


async def test_a_stream_says_the_same(client: httpx2.AsyncClient) -> None:
    answer = await client.post(COMPLETE, json=asked(stream=True, stream_options={"include_usage": True}))
    chunks = events(answer.text.splitlines())
    assert chunks[-1] == "[DONE]"
    assert "".join(chunk["choices"][0]["text"] for chunk in chunks[:-2]) == "Hello"
    assert chunks[-3]["choices"][0]["finish_reason"] == "stop"
    assert chunks[-2]["usage"]["completion_tokens"] == 3
    assert {chunk["object"] for chunk in chunks[:-1]} == {"text_completion"}


@pytest.mark.parametrize(
    ("prompt", "read"),
    [
        (["a", "b"], [("a",), ("b",)]),
        ([5, 6], [(5, 6)]),
        ([[5], [6, 7]], [(5,), (6, 7)]),
        ("", [("",)]),
    ],
)
async def test_prompts_of_every_kind_are_answered_in_order(
    client: httpx2.AsyncClient, engine: FakeEngine, prompt: Any, read: list[Any]
) -> None:
    told = await completed(client, prompt=prompt, n=2, seed=3)
    assert [parts(request) for request in engine.requests] == [one for one in read for _ in range(2)]
    assert [request.sampling.seed for request in engine.requests] == [3, 4] * len(read)
    assert len({request.id for request in engine.requests}) == 2 * len(read)
    assert [choice["index"] for choice in told["choices"]] == [*range(2 * len(read))]
    assert told["usage"]["prompt_tokens"] == 7 * len(read), "a prompt counts once"
    assert told["usage"]["completion_tokens"] == 6 * len(read)


@pytest.mark.parametrize("prompt", ["Hi ", [*b"Hi "]])
async def test_an_echo_says_the_prompt_first(client: httpx2.AsyncClient, prompt: Any) -> None:
    assert (await completed(client, prompt=prompt, echo=True))["choices"][0]["text"] == "Hi Hello"
    answer = await client.post(COMPLETE, json=asked(prompt=prompt, echo=True, stream=True))
    assert [chunk["choices"][0]["text"] for chunk in events(answer.text.splitlines())[:-1]][:2] == [
        "Hi ",
        "Hel",
    ]


async def test_log_probabilities_lie_side_by_side(client: httpx2.AsyncClient, engine: FakeEngine) -> None:
    engine.says = ("ab",)
    engine.logprobs = (
        TokenLogprob(b"a", -0.5, ((b"a", -0.5), (b"\xff", float("-inf")))),
        TokenLogprob(b"b", -1.0, ((b"b", -1.0),)),
    )
    expected = {
        "tokens": ["a", "b"],
        "token_logprobs": [-0.5, -1.0],
        "top_logprobs": [{"a": -0.5, "bytes:\\xff": -9999.0}, {"b": -1.0}],
        "text_offset": [0, 1],
    }
    assert (await completed(client, logprobs=2))["choices"][0]["logprobs"] == expected
    assert engine.requests[0].logprobs == 2
    engine.says = ("ab", "ab")
    answer = await client.post(COMPLETE, json=asked(logprobs=2, stream=True))
    told = [chunk["choices"][0]["logprobs"] for chunk in events(answer.text.splitlines())[:-1]]
    assert told[:2] == [expected, expected | {"text_offset": [2, 3]}]


async def test_the_likeliest_of_several_are_told(client: httpx2.AsyncClient, engine: FakeEngine) -> None:
    class Scored(FakeEngine):
        async def submit(self, request: GenerationRequest) -> FakeGeneration:
            generation = await super().submit(request)
            at = len(self.requests)
            token = TokenLogprob(b"x", [-3.0, -1.0, -2.0][at - 1])
            generation._deltas.put_nowait(
                Delta(request.id, str(at), 1, Finish("stop", Usage(7, 1)), logprobs=(token,))
            )
            return generation

    engine.__class__ = Scored
    engine.says = None
    told = await completed(client, best_of=3, n=2)
    assert [choice["text"] for choice in told["choices"]] == ["2", "3"]
    assert [choice["index"] for choice in told["choices"]] == [0, 1]
    assert told["choices"][0]["logprobs"] is None
    assert told["usage"]["completion_tokens"] == 3, "what was made, not what was told"


async def test_a_gap_is_marked_where_the_vocabulary_can(
    client: httpx2.AsyncClient, engine: FakeEngine
) -> None:
    assert (await refused(client, suffix="end"))[0] == "suffix"
    engine.info = msgspec.structs.replace(engine.info, fim=GAP)
    await completed(client, suffix="end<suf>")
    assert engine.requests[-1].prompt == (
        PromptPart("<pre>", special=True),
        PromptPart("Once", special=False),
        PromptPart("<suf>", special=True),
        PromptPart("end<suf>", special=False),
        PromptPart("<mid>", special=True),
    )


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"n": 3, "best_of": 2}, "best_of"),
        ({"best_of": 2, "stream": True}, "best_of"),
        ({"best_of": 9}, "best_of"),
        ({"echo": True, "logprobs": 1}, "logprobs"),
        ({"logprobs": 21}, "logprobs"),
        ({"logprobs": True}, "logprobs"),
        ({"prompt": None}, "prompt"),
        ({"prompt": []}, "prompt"),
        ({"prompt": [[]]}, "prompt[0]"),
        ({"prompt": [[1], "a"]}, "prompt[1]"),
        ({"prompt": [1, "a"]}, "prompt[1]"),
        ({"prompt": [-1]}, "prompt[0]"),
        ({"prompt": [1 << 31]}, "prompt[0]"),
        ({"prompt": 5}, "prompt"),
        ({"prompt": {"text": "x"}}, "prompt"),
        ({"prompt": ["x"] * 513}, "prompt"),
        ({"prompt": ["x"] * 100, "n": 8}, "prompt"),
        ({"prompt": [1, 2], "suffix": "x"}, "suffix"),
        ({"suffix": 5}, "suffix"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"min_tokens": 5, "max_tokens": 4}, "min_tokens"),
        ({"grammar": "root ::= 'x'", "json_schema": {}}, "grammar"),
        ({"response_format": {"type": "xml"}}, "response_format.type"),
    ],
)
async def test_what_cannot_be_completed_is_refused(
    client: httpx2.AsyncClient, engine: FakeEngine, fields: dict[str, Any], param: str
) -> None:
    told, message = await refused(client, **fields)
    assert told == param
    assert f"`{param}`" in message
    assert engine.requests == []


async def test_a_form_binds_a_completion(client: httpx2.AsyncClient, engine: FakeEngine) -> None:
    await completed(client, response_format={"type": "json_object"})
    grammar = engine.requests[0].grammar
    assert grammar
    assert (grammar.kind, grammar.starts) == ("json", ())


# infill


async def test_an_infill_is_asked_and_told_in_llama_cpps_words(
    client: httpx2.AsyncClient, engine: FakeEngine
) -> None:
    engine.info = msgspec.structs.replace(engine.info, fim=GAP)
    body: dict[str, Any] = {
        "input_prefix": "def f(",
        "input_suffix": "return x",
        "prompt": "x",
        "n_predict": 9,
        "input_extra": [{"filename": "a.py", "text": "import b"}],
    }
    told = (await client.post("/infill", json=body)).json()
    assert (told["content"], told["stop"], told["stop_type"]) == ("Hello", True, "eos")
    assert (told["tokens_predicted"], told["tokens_evaluated"], told["tokens_cached"]) == (3, 7, 2)
    request = engine.requests[0]
    assert "".join(part.text for part in request.prompt) == (
        "a.py\nimport b\n\n<pre>def f(<suf>return x<mid>x"
    )
    assert {part.text for part in request.prompt if part.special} == set(GAP)
    assert request.max_tokens == 9
    streamed = await client.post("/infill", json=body | {"stream": True})
    chunks = [json.loads(line[6:]) for line in streamed.text.splitlines() if line]
    assert "".join(chunk["content"] for chunk in chunks) == "Hello"
    assert [chunk["stop"] for chunk in chunks] == [False, False, True]


async def test_an_infill_needs_tokens_that_mark_a_gap(client: httpx2.AsyncClient) -> None:
    told = await client.post("/infill", json={"input_prefix": "a", "input_suffix": "b"})
    assert (told.status_code, told.json()["error"]["param"]) == (400, "input_suffix")
