"""Responses through the official client, on the starter model."""

from __future__ import annotations

import json
from typing import Any

import openai
import pytest
from pydantic import BaseModel

from tests.cli.processes import Fox
from tests.whole.conftest import CONTEXT_TOKENS
from tests.whole.test_openai_client import MODEL

pytestmark = pytest.mark.model

TOOL: Any = {
    "type": "function",
    "name": "get_weather",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string", "maxLength": 20}},
        "required": ["city"],
        "additionalProperties": False,
    },
    "strict": True,
}


class Animal(BaseModel):
    name: str
    legs: int


def respond(client: openai.OpenAI, text: Any = "Tell me about the sea.", **more: Any) -> Any:
    return client.responses.create(**{"model": MODEL, "input": text, "max_output_tokens": 24, **more})


def test_a_stream_says_what_the_whole_response_says(client: openai.OpenAI) -> None:
    whole = respond(client, temperature=0)
    assert whole.output_text
    assert whole.status == "incomplete"
    assert whole.incomplete_details.reason == "max_output_tokens"
    assert whole.usage.output_tokens == 24
    events = list(respond(client, temperature=0, stream=True))
    said = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    assert said == whole.output_text == events[-1].response.output_text
    assert events[-1].type == "response.incomplete"


def test_the_clients_own_helper_finds_the_end(client: openai.OpenAI) -> None:
    choice = {"guided_choice": ["aye"]}
    with client.responses.stream(model=MODEL, input="Aye?", extra_body=choice) as stream:
        assert stream.get_final_response().output_text == "aye"


def test_a_conversation_goes_on_from_what_is_kept(client: openai.OpenAI) -> None:
    first = respond(client, "Name a colour.", temperature=0)
    second = respond(client, "And an animal?", previous_response_id=first.id, temperature=0)
    assert second.usage.input_tokens > first.usage.input_tokens + first.usage.output_tokens
    assert second.usage.input_tokens_details.cached_tokens >= first.usage.input_tokens
    assert client.responses.retrieve(first.id).output_text == first.output_text
    (item,) = client.responses.input_items.list(first.id).data
    assert item.content[0].text == "Name a colour."  # type: ignore[union-attr]
    client.responses.delete(first.id)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(first.id)
    with pytest.raises(openai.BadRequestError, match="previous_response_id"):
        respond(client, "And?", previous_response_id=first.id)


def test_a_call_is_made_answered_and_spoken_of(client: openai.OpenAI) -> None:
    asked = [{"role": "user", "content": "Weather in Paris?"}]
    first = respond(client, asked, tools=[TOOL], tool_choice="required", max_output_tokens=80)
    call = first.output[0]
    assert (call.type, call.name) == ("function_call", "get_weather")
    assert set(json.loads(call.arguments)) == {"city"}
    result = {"type": "function_call_output", "call_id": call.call_id, "output": "sunny"}
    again = [*asked, *(item.model_dump(exclude_none=True) for item in first.output[:1]), result]
    assert respond(client, again, tools=[TOOL], tool_choice="none").output_text
    forced: Any = {"tools": [TOOL], "tool_choice": "required", "parallel_tool_calls": False}
    stream = respond(client, asked, **forced, stream=True, max_output_tokens=80)
    deltas = [event.delta for event in stream if event.type == "response.function_call_arguments.delta"]
    assert set(json.loads("".join(deltas))) == {"city"}


def test_a_form_is_parsed_by_the_client(client: openai.OpenAI) -> None:
    parsed = client.responses.parse(
        model=MODEL, input="Describe a spider.", text_format=Animal, max_output_tokens=80
    ).output_parsed
    assert isinstance(parsed, Animal)


@pytest.mark.parametrize(
    ("more", "status", "code"),
    [
        ({"model": "nobody"}, 404, "model_not_found"),
        ({"text": "word " * 4000}, 400, "context_length_exceeded"),
        ({"model": "truncated"}, 503, "model_load_failed"),
    ],
)
def test_what_cannot_be_done_is_refused(
    client: openai.OpenAI, more: dict[str, Any], status: int, code: str
) -> None:
    with pytest.raises(openai.APIStatusError) as refusal:
        respond(client, **more)
    assert (refusal.value.status_code, refusal.value.code) == (status, code)
    if code == "context_length_exceeded":
        assert refusal.value.param == "input"


def test_a_killed_engine_ends_its_response_with_an_error(client: openai.OpenAI, server: Fox) -> None:
    respond(client, model="twin", max_output_tokens=1)
    victim = max(server.children(), key=lambda child: child.create_time())
    stream = respond(
        client,
        model="twin",
        stream=True,
        max_output_tokens=CONTEXT_TOKENS,
        extra_body={"ignore_eos": True},
    )
    events = iter(stream)
    while next(events).type != "response.output_text.delta":
        pass
    victim.kill()
    with pytest.raises(openai.APIError, match="killed by SIGKILL"):
        list(events)
