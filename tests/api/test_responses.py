"""Responses: what the engine is asked, the sequence of events, and what is kept."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import msgspec
import pytest

from fox.api.openai.responses.store import Kept, Store
from fox.generation import Finish, PromptPart, TokenLogprob, Usage
from tests.api.fakes import DEAD, TEMPLATE, FakeEngine

pytestmark = pytest.mark.anyio

RESPOND = "/v1/responses"
TOOL = {
    "type": "function",
    "name": "look",
    "parameters": {"type": "object", "properties": {"at": {"type": "string"}}, "required": ["at"]},
}
THINKING = TEMPLATE + "<think>\n{# </think> #}"  # the prompt opens the thought
HERMES = TEMPLATE + "{# <tool_call> #}{% if tools %}<tool_call>{% endif %}"
CALL = ("<tool_call>\n", '{"name": "look", "arguments": {"at": "sea"}}', "\n</tool_call>")


def asked(**fields: Any) -> dict[str, Any]:
    return {"model": "tiny", "input": "hi", **fields}


async def responded(client: httpx2.AsyncClient, **fields: Any) -> Any:
    answer = await client.post(RESPOND, json=asked(**fields))
    assert answer.status_code == 200, answer.text
    return answer.json()


async def streamed(client: httpx2.AsyncClient, **fields: Any) -> list[dict[str, Any]]:
    answer = await client.post(RESPOND, json=asked(stream=True, **fields))
    assert answer.status_code == 200, answer.text
    told = []
    for block in filter(None, answer.text.split("\n\n")):
        name, data = block.split("\n")
        event = json.loads(data.removeprefix("data: "))
        assert name == f"event: {event['type']}"
        told.append(event)
    assert [event["sequence_number"] for event in told] == [*range(len(told))]
    return told


async def refused(client: httpx2.AsyncClient, **fields: Any) -> tuple[str, str]:
    answer = await client.post(RESPOND, json=asked(**fields))
    assert answer.status_code == 400, answer.text
    error = answer.json()["error"]
    return error["param"], error["message"]


def prompt(engine: FakeEngine) -> str:
    return "".join(part.text for part in engine.requests[-1].prompt)


def with_template(engine: FakeEngine, template: str, *controls: str) -> None:
    engine.info = msgspec.structs.replace(
        engine.info, chat_template=template, control_tokens=(*engine.info.control_tokens, *controls)
    )


async def test_an_answer_is_an_item(client: httpx2.AsyncClient, engine: FakeEngine) -> None:
    told = await responded(client, instructions="be kind", max_output_tokens=9, metadata={"a": "b"})
    assert (told["object"], told["status"], told["error"]) == ("response", "completed", None)
    (item,) = told["output"]
    assert (item["type"], item["role"], item["status"]) == ("message", "assistant", "completed")
    assert item["content"] == [{"type": "output_text", "text": "Hello", "annotations": [], "logprobs": []}]
    assert told["usage"] == {
        "input_tokens": 7,
        "input_tokens_details": {"cached_tokens": 2},
        "output_tokens": 3,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 10,
    }
    assert (told["instructions"], told["max_output_tokens"], told["metadata"]) == ("be kind", 9, {"a": "b"})
    assert prompt(engine) == "system:be kind\nuser:hi\n"
    assert engine.requests[0].max_tokens == 9


async def test_a_stream_tells_the_same_in_its_order(client: httpx2.AsyncClient) -> None:
    events = await streamed(client)
    assert [event["type"] for event in events] == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]
    assert events[0]["response"]["status"] == "in_progress"
    assert events[2]["item"]["content"] == []
    assert [event["delta"] for event in events[4:6]] == ["Hel", "lo"]
    assert events[6]["text"] == events[7]["part"]["text"] == "Hello"
    assert events[8]["item"] == events[9]["response"]["output"][0]
    assert {event["item_id"] for event in events if "item_id" in event} == {events[8]["item"]["id"]}
    assert events[9]["response"]["usage"]["output_tokens"] == 3


async def test_an_answer_without_room_is_incomplete(client: httpx2.AsyncClient, engine: FakeEngine) -> None:
    engine.finish = Finish("length", Usage(7, 3))
    told = await responded(client)
    assert (told["status"], told["incomplete_details"]) == ("incomplete", {"reason": "max_output_tokens"})
    assert told["output"][0]["status"] == "incomplete"
    assert (await streamed(client))[-1]["type"] == "response.incomplete"


@pytest.mark.parametrize(
    ("summary", "types", "where"),
    [
        (
            None,
            ["content_part.added", "reasoning_text.delta", "reasoning_text.done", "content_part.done"],
            "content",
        ),
        (
            "auto",
            [
                "reasoning_summary_part.added",
                "reasoning_summary_text.delta",
                "reasoning_summary_text.done",
                "reasoning_summary_part.done",
            ],
            "summary",
        ),
    ],
)
async def test_a_thought_is_an_item_before_the_answer(
    client: httpx2.AsyncClient, engine: FakeEngine, summary: str | None, types: list[str], where: str
) -> None:
    with_template(engine, THINKING, "<think>", "</think>")
    engine.says = ("hm", "</think>", "yes")
    reasoning = {"summary": summary}
    events = [
        event["type"].removeprefix("response.") for event in await streamed(client, reasoning=reasoning)
    ]
    assert events[3:7] == types
    told = await responded(client, reasoning=reasoning)
    thought, answer = told["output"]
    assert (thought["type"], answer["type"]) == ("reasoning", "message")
    assert thought[where][0]["text"].strip() == "hm"
    assert answer["content"][0]["text"] == "yes"
    assert told["usage"]["output_tokens_details"]["reasoning_tokens"] > 0


async def test_a_call_is_an_item_whose_arguments_stream(
    client: httpx2.AsyncClient, engine: FakeEngine
) -> None:
    with_template(engine, HERMES)
    engine.says = ("Let me. ", *CALL)
    events = await streamed(client, tools=[TOOL])
    types = [event["type"].removeprefix("response.") for event in events]
    assert types[types.index("output_text.done") :] == [
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "output_item.added",
        *["function_call_arguments.delta"] * types.count("function_call_arguments.delta"),
        "function_call_arguments.done",
        "output_item.done",
        "completed",
    ]
    item = events[-2]["item"]
    assert (item["type"], item["name"], item["status"]) == ("function_call", "look", "completed")
    assert json.loads(item["arguments"]) == {"at": "sea"}
    deltas = [e["delta"] for e in events if e["type"] == "response.function_call_arguments.delta"]
    assert "".join(deltas) == item["arguments"]
    assert item["call_id"].startswith("call_")
    assert item["id"].startswith("fc_")
    assert {event.get("output_index", 0) for event in events} == {0, 1}


async def test_a_whole_conversation_is_read(client: httpx2.AsyncClient, engine: FakeEngine) -> None:
    template = (
        "{% if tools %}<tool_call>{% endif %}{% for m in messages %}"
        "{{ m.role }}:{{ m.reasoning_content or '' }}|{{ m.content }}"
        "{% for c in m.tool_calls or [] %}[{{ c.function.name }} {{ c.function.arguments.at }}]{% endfor %}"
        "{% if m.tool_call_id %}({{ m.tool_call_id }}){% endif %}{{ '\n' }}{% endfor %}"
    )
    with_template(engine, template)
    conversation = [
        {"role": "developer", "content": "be brief"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "look"}]},
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}]},
        {"type": "message", "role": "assistant", "phase": "commentary", "content": "I look."},
        {"type": "function_call", "call_id": "c1", "name": "look", "arguments": '{"at": "sea"}'},
        {"type": "function_call", "call_id": "c2", "name": "look", "arguments": '{"at": "sky"}'},
        {"type": "function_call_output", "call_id": "c2", "output": "blue"},
        {"type": "function_call_output", "call_id": "c1", "output": [{"type": "input_text", "text": "wet"}]},
        {"type": "web_search_call", "id": "ws_1", "status": "completed"},
        {"role": "user", "content": "so?"},
    ]
    answer = await client.post(RESPOND, json=asked(input=conversation, instructions="be kind", tools=[TOOL]))
    assert prompt(engine) == (
        "<tool_call>system:|be kind\n\nbe brief\nuser:|look\nassistant:hm|I look.[look sea][look sky]\n"
        "tool:|blue(c2)\ntool:|wet(c1)\nuser:|so?\n"
    )
    assert answer.headers["x-fox-warning"] == "not told to the model: web_search_call"


async def test_the_next_turn_builds_on_what_is_kept(client: httpx2.AsyncClient, engine: FakeEngine) -> None:
    first = await responded(client, instructions="be kind")
    second = await responded(client, input="and?", previous_response_id=first["id"])
    assert prompt(engine) == "user:hi\nassistant:Hello\nuser:and?\n", "instructions are those of a request"
    assert second["previous_response_id"] == first["id"]
    await responded(client, input="more", previous_response_id=second["id"])
    assert prompt(engine) == "user:hi\nassistant:Hello\nuser:and?\nassistant:Hello\nuser:more\n"
    reference = [{"type": "item_reference", "id": first["output"][0]["id"]}, {"role": "user", "content": "x"}]
    await responded(client, input=reference)
    assert prompt(engine) == "assistant:Hello\nuser:x\n"


async def test_a_call_that_is_kept_is_answered_by_its_id(
    client: httpx2.AsyncClient, engine: FakeEngine
) -> None:
    with_template(engine, HERMES)
    engine.says = CALL
    first = await responded(client, tools=[TOOL])
    (call,) = first["output"]
    engine.says = ("wet",)
    result = {"type": "function_call_output", "call_id": call["call_id"], "output": "water"}
    told = await responded(client, input=[result], previous_response_id=first["id"], tools=[TOOL])
    assert told["output"][0]["content"][0]["text"] == "wet"


async def test_what_is_kept_is_told_again_and_dropped(client: httpx2.AsyncClient) -> None:
    kept = await responded(client)
    path = f"{RESPOND}/{kept['id']}"
    assert (await client.get(path)).json() == kept
    items = (await client.get(f"{path}/input_items")).json()
    assert items["data"][0]["content"] == [{"type": "input_text", "text": "hi"}]
    assert (items["object"], items["first_id"], items["has_more"]) == ("list", items["data"][0]["id"], False)
    assert (await client.delete(path)).json() == {"id": kept["id"], "object": "response", "deleted": True}
    for method, gone in (("GET", path), ("DELETE", path), ("GET", f"{path}/input_items")):
        assert (await client.request(method, gone)).status_code == 404
    unkept = await responded(client, store=False)
    assert (await client.get(f"{RESPOND}/{unkept['id']}")).status_code == 404
    assert (await refused(client, previous_response_id=unkept["id"]))[0] == "previous_response_id"


async def test_what_streamed_is_kept_too(client: httpx2.AsyncClient) -> None:
    last = (await streamed(client))[-1]["response"]
    assert (await client.get(f"{RESPOND}/{last['id']}")).json() == last


def test_the_oldest_makes_room() -> None:
    store = Store(most=2, most_bytes=10)

    def kept(id_: str, size: int) -> Kept:
        return Kept({"id": id_, "output": [{"id": f"of {id_}"}]}, (), (), size)

    for id_ in "abc":
        store.keep(kept(id_, 3))
    assert [store.find(id_) is not None for id_ in "abc"] == [False, True, True]
    assert store.item("of a") is None
    assert store.item("of b") == ({"id": "of b"}, 3)
    store.keep(kept("d", 8))
    assert [store.find(id_) is not None for id_ in "cd"] == [False, True]
    store.keep(kept("e", 99))
    assert store.find("e") is not None
    store.drop("e")
    store.drop("e")
    assert (store.find("e"), store.item("of e")) == (None, None)
    for _ in range(5):
        store.keep(kept("f", 4))
    store.keep(kept("g", 4))
    assert [store.find(id_) is not None for id_ in "fg"] == [True, True], (
        "one that comes again is counted once"
    )


async def test_a_conversation_holds_as_much_as_all_its_turns(
    client: httpx2.AsyncClient, monkeypatch: Any
) -> None:
    monkeypatch.setattr("fox.api.openai.responses.question.MOST_BYTES", 50_000)
    first = await responded(client, input="x" * 20_000)
    reference = {"type": "item_reference", "id": first["output"][0]["id"]}
    assert (await client.post(RESPOND, json=asked(input=[reference]))).status_code == 200
    param, message = await refused(client, input=[reference] * 3)
    assert (param, "too large together" in message) == ("input", True)


async def test_an_id_that_comes_again_replaces_what_was_kept(client: httpx2.AsyncClient) -> None:
    for text in ("one", "two"):
        await responded(client, id="mine", input=text)
    items = (await client.get(f"{RESPOND}/mine/input_items")).json()["data"]
    assert items[0]["content"][0]["text"] == "two"


@pytest.mark.parametrize("kind", ["b\r\nx: y", "", "x" * 65, "a b"])
async def test_types_that_a_header_cannot_tell_are_refused(client: httpx2.AsyncClient, kind: str) -> None:
    assert (await refused(client, tools=[{"type": kind}]))[0] == "tools[0].type"
    assert (await refused(client, input=[{"type": f"{kind}\n_call"}, USER]))[0] == "input[0].type"


async def test_tokens_without_a_limit_are_minus_one(client: httpx2.AsyncClient, engine: FakeEngine) -> None:
    assert (await responded(client, max_output_tokens=-1))["max_output_tokens"] == -1
    assert engine.requests[0].max_tokens is None


async def test_log_probabilities_of_what_is_held_back_come_with_the_next_text(
    client: httpx2.AsyncClient, engine: FakeEngine
) -> None:
    with_template(engine, HERMES + "{# <think> </think> #}", "<think>", "</think>")
    engine.says = ("\n", "a")
    engine.logprobs = (TokenLogprob(b"t", -0.5),)
    told = await responded(client, top_logprobs=1)
    assert len(told["output"][0]["content"][0]["logprobs"]) == 2


async def test_a_form_binds_a_response_and_is_told_again(
    client: httpx2.AsyncClient, engine: FakeEngine
) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    form = {"type": "json_schema", "name": "thing", "schema": schema, "strict": True}
    told = await responded(client, text={"format": form})
    grammar = engine.requests[0].grammar
    assert grammar
    assert grammar.kind == "json"
    assert told["text"]["format"]["schema"] == schema
    await responded(client, text={"format": {"type": "json_object"}})
    assert engine.requests[1].grammar
    await responded(client, text={"format": {"type": "text"}, "verbosity": "low"})
    assert engine.requests[2].grammar is None


async def test_tools_of_others_are_skipped_with_a_word(
    client: httpx2.AsyncClient, engine: FakeEngine
) -> None:
    tools = [TOOL, {"type": "web_search"}, {"type": "namespace", "name": "n", "tools": []}]
    body = asked(
        tools=tools,
        include=["reasoning.encrypted_content"],
        store=False,
        prompt_cache_key="k",
        parallel_tool_calls=False,
        reasoning={"effort": "low", "summary": "auto"},
    )
    for stream in (False, True):
        answer = await client.post(RESPOND, json=body | {"stream": stream})
        assert answer.status_code == 200
        assert answer.headers["x-fox-warning"] == "not told to the model: namespace, web_search"
    assert "look" in prompt(engine)
    engine.warnings = ("`format` is not honoured",)
    for stream in (False, True):
        answer = await client.post(RESPOND, json=body | {"stream": stream})
        assert answer.headers["x-fox-warning"] == (
            "not told to the model: namespace, web_search; `format` is not honoured"
        )


async def test_log_probabilities_are_told_where_they_are_asked_for(
    client: httpx2.AsyncClient, engine: FakeEngine
) -> None:
    engine.says = ("a",)
    engine.logprobs = (TokenLogprob(b"a", -0.5, ((b"a", -0.5),)),)
    told = await responded(client, top_logprobs=1)
    assert told["output"][0]["content"][0]["logprobs"][0]["token"] == "a"
    events = await streamed(client, include=["message.output_text.logprobs"])
    deltas = [event for event in events if event["type"] == "response.output_text.delta"]
    assert deltas[0]["logprobs"][0]["logprob"] == -0.5


async def test_a_failure_midway_is_told_in_events(client: httpx2.AsyncClient, engine: FakeEngine) -> None:
    engine.finish = DEAD
    events = await streamed(client)
    failed, error = events[-2:]
    assert (failed["type"], failed["response"]["status"]) == ("response.failed", "failed")
    assert failed["response"]["error"]["code"] == "engine_failed"
    assert (error["type"], error["error"]["code"]) == ("error", "engine_failed")
    assert (await client.get(f"{RESPOND}/{failed['response']['id']}")).status_code == 404


async def test_truncation_is_passed_on(client: httpx2.AsyncClient, engine: FakeEngine) -> None:
    for truncation, truncate in ((None, None), ("auto", True), ("disabled", False)):
        await responded(client, truncation=truncation)
        assert engine.requests[-1].truncate is truncate


USER = {"role": "user", "content": "hi"}


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"input": None}, "input"),
        ({"input": []}, "input"),
        ({"input": 5}, "input"),
        ({"input": [5]}, "input[0]"),
        ({"input": [{"role": "robot", "content": "x"}]}, "input[0].role"),
        ({"input": [{"role": "user"}]}, "input[0].content"),
        ({"input": [USER, {"type": "nonsense"}]}, "input[1].type"),
        (
            {"input": [{"type": "message", "role": "user", "content": [{"type": "input_image"}]}]},
            "input[0].content[0].type",
        ),
        ({"input": [{"type": "function_call", "name": "f", "arguments": "{}"}]}, "input[0].call_id"),
        (
            {"input": [{"type": "function_call", "call_id": "c", "name": "f", "arguments": {}}]},
            "input[0].arguments",
        ),
        ({"input": [{"type": "function_call_output", "call_id": "c", "output": "x"}]}, "input[0].call_id"),
        ({"input": [{"type": "item_reference", "id": "nobody"}]}, "input[0].id"),
        ({"previous_response_id": "nobody"}, "previous_response_id"),
        ({"previous_response_id": ""}, "previous_response_id"),
        ({"background": True}, "background"),
        ({"conversation": "conv_1"}, "conversation"),
        ({"prompt": {"id": "p"}}, "prompt"),
        ({"n": 2}, "n"),
        ({"max_output_tokens": 0}, "max_output_tokens"),
        ({"temperature": -1}, "temperature"),
        ({"truncation": "some"}, "truncation"),
        ({"tools": [{"type": "function"}]}, "tools[0].name"),
        ({"tools": [{"type": "function", "name": "a b"}]}, "tools[0].name"),
        ({"tools": [5]}, "tools[0]"),
        ({"tools": [TOOL, TOOL]}, "tools"),
        ({"tools": [TOOL], "tool_choice": {"type": "function", "name": "other"}}, "tool_choice"),
        ({"tools": [TOOL], "tool_choice": {"type": "function"}}, "tool_choice.name"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"tools": [{"type": "web_search"}], "tool_choice": {"type": "web_search"}}, "tool_choice.type"),
        ({"text": {"format": {"type": "xml"}}}, "text.format.type"),
        ({"text": {"format": {"type": "json_schema", "schema": {}}}, "grammar": "root ::= 'x'"}, "grammar"),
        ({"reasoning": {"effort": "huge"}}, "reasoning.effort"),
        ({"top_logprobs": 21}, "top_logprobs"),
        ({"metadata": []}, "metadata"),
        ({"min_tokens": 9, "max_output_tokens": 5}, "min_tokens"),
    ],
)
async def test_what_cannot_be_answered_is_refused(
    client: httpx2.AsyncClient, engine: FakeEngine, fields: dict[str, Any], param: str
) -> None:
    told, message = await refused(client, **fields)
    assert told == param
    assert f"`{param}`" in message
    assert engine.requests == []


async def test_a_template_that_raises_speaks_of_the_input(
    client: httpx2.AsyncClient, engine: FakeEngine
) -> None:
    with_template(engine, "{{ raise_exception('no') }}")
    assert (await refused(client))[0] == "input"


async def test_no_user_forges_a_turn(client: httpx2.AsyncClient, engine: FakeEngine) -> None:
    await responded(client, input="x</s>")
    assert PromptPart("</s>", special=False) in engine.requests[0].prompt


@pytest.mark.parametrize(
    "fields",
    [
        {"max_tool_calls": 10**30},
        {"metadata": {"a": 10**30, "b": [-(10**19)], "c": 1e300}},
        {"tools": [TOOL | {"parameters": {"type": "object", "maxProperties": 10**30}}]},
        {"text": {"format": {"type": "json_schema", "name": "n", "schema": {"maximum": 10**30}}}},
    ],
)
async def test_numbers_of_any_size_are_told_again(client: httpx2.AsyncClient, fields: dict[str, Any]) -> None:
    told = await responded(client, **fields)
    (name,) = fields
    assert str(10**30) in json.dumps(told[name])
    assert (await streamed(client, **fields))[-1]["response"][name] == told[name]
    assert (await client.get(f"{RESPOND}/{told['id']}")).json() == told
