"""Tools, forms and thoughts through the official client, on the starter model, whose template knows no tools."""

from __future__ import annotations

import json
from typing import Any

import openai
import pytest
from pydantic import BaseModel

from tests.whole.test_openai_client import MODEL, ask

pytestmark = pytest.mark.model

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather in a city",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string", "maxLength": 20}, "unit": {"enum": ["C", "F"]}},
            "required": ["city", "unit"],
            "additionalProperties": False,
        },
    },
}
TIME = {
    "type": "function",
    "function": {"name": "get_time", "parameters": {"type": "object", "properties": {}}},
}


class Animal(BaseModel):
    name: str
    legs: int


def test_a_required_call_has_the_arguments_of_its_schema(client: openai.OpenAI) -> None:
    answer = ask(client, "Weather in Paris?", tools=[TIME, WEATHER], tool_choice="required", max_tokens=80)
    choice = answer.choices[0]
    assert choice.finish_reason == "tool_calls"
    assert choice.message.content is None
    for call in choice.message.tool_calls:
        arguments = json.loads(call.function.arguments)
        assert call.function.name in ("get_weather", "get_time")
        assert set(arguments) == ({"city", "unit"} if call.function.name == "get_weather" else set())


def test_a_named_call_streams_with_index_and_id(client: openai.OpenAI) -> None:
    named = {"type": "function", "function": {"name": "get_weather"}}
    stream = ask(
        client,
        "Weather?",
        tools=[TIME, WEATHER],
        tool_choice=named,
        parallel_tool_calls=False,
        stream=True,
        max_tokens=80,
    )
    deltas = [chunk.choices[0] for chunk in stream]
    calls = [call for choice in deltas for call in choice.delta.tool_calls or ()]
    assert calls[0].function.name == "get_weather"
    assert calls[0].id
    assert {call.index for call in calls} == {0}
    assert set(json.loads("".join(call.function.arguments or "" for call in calls))) == {"city", "unit"}
    assert deltas[-1].finish_reason == "tool_calls"


def test_the_result_of_a_call_is_read(client: openai.OpenAI) -> None:
    call = {
        "id": "call_1",
        "type": "function",
        "function": {"name": "get_weather", "arguments": '{"city": "Rome"}'},
    }
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "Weather in Rome?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": "21 degrees and sunny"},
    ]
    answer = ask(client, messages=messages, tools=[WEATHER], tool_choice="none")
    assert answer.choices[0].message.content
    assert answer.choices[0].message.tool_calls is None


def test_an_answer_is_parsed_into_the_clients_own_type(client: openai.OpenAI) -> None:
    answer = client.chat.completions.parse(
        model=MODEL,
        messages=[{"role": "user", "content": "Describe a cat."}],
        response_format=Animal,
        max_tokens=100,
        temperature=0,
    )
    assert isinstance(answer.choices[0].message.parsed, Animal)


FORMS: list[tuple[dict[str, Any], Any]] = [
    ({"response_format": {"type": "json_object"}}, dict),
    ({"extra_body": {"guided_choice": ["red", "green"]}}, {"red", "green"}),
    ({"extra_body": {"guided_regex": "[0-9]{3}"}}, {f"{n:03}" for n in range(1000)}),
    ({"extra_body": {"grammar": 'root ::= "yes" | "no"'}}, {"yes", "no"}),
    ({"extra_body": {"structured_outputs": {"choice": ["a", "b"]}}}, {"a", "b"}),
]


@pytest.mark.parametrize(("form", "expected"), FORMS)
def test_an_answer_has_the_form_that_was_asked_for(
    client: openai.OpenAI, form: dict[str, Any], expected: Any
) -> None:
    text = ask(client, "Say something.", max_tokens=300, **form).choices[0].message.content
    assert isinstance(json.loads(text), dict) if expected is dict else text in expected


def test_a_keyword_that_cannot_be_honoured_is_refused_where_strict_else_told(client: openai.OpenAI) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "array", "uniqueItems": True}}}

    def form(strict: bool) -> Any:
        return {"type": "json_schema", "json_schema": {"name": "x", "schema": schema, "strict": strict}}

    with pytest.raises(openai.BadRequestError, match="uniqueItems") as refused:
        ask(client, response_format=form(True))
    assert refused.value.param == "response_format.json_schema.schema"
    raw = client.chat.completions.with_raw_response.create(
        model=MODEL, messages=[{"role": "user", "content": "Hi"}], response_format=form(False), max_tokens=30
    )
    assert "uniqueItems" in raw.headers["x-fox-warning"]


def test_a_predicted_text_is_followed_and_changes_nothing(client: openai.OpenAI) -> None:
    alone = ask(client, temperature=0).choices[0].message.content
    predicted = {"type": "content", "content": alone}
    again = ask(client, temperature=0, prediction=predicted).choices[0].message.content
    assert again[:24] == alone[:24], "a near tie may fall otherwise later on"
