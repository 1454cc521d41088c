"""The body of POST /v1/responses. Unknown fields are ignored, `null` is the same as absent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Discriminator, Field, StringConstraints, Tag
from pydantic_core import PydanticCustomError

from fox.api.openai.schema import MOST_TOOLS, FunctionName, Level
from fox.api.openai.shapes import (
    UNLIMITED,
    Limit,
    ListOrOne,
    Many,
    Mapped,
    Name,
    ObjectOrOne,
    One,
    Schema,
    Shape,
)
from fox.api.openai.wishes import Wishes
from fox.errors import InvalidRequest

TEXT_PARTS = ("input_text", "output_text", "text", "summary_text", "reasoning_text", "refusal")
# Items and tools of services that only OpenAI's own server has: clients send them to everybody.
HOSTED_ITEMS = (
    "_call",
    "_call_output",
    "_list_tools",
    "_approval_request",
    "_approval_response",
    "compaction",
)


Kind = Annotated[str, StringConstraints(max_length=64, pattern=r"^[\w.:-]+$")]  # it is told in a header


def _only_text(kind: str) -> str:
    if kind not in TEXT_PARTS:
        raise PydanticCustomError("not_text", "the model reads no parts but those of text")
    return kind


def _hosted(kind: str) -> str:
    if not kind.endswith(HOSTED_ITEMS):
        raise PydanticCustomError("no_item", "there are no items of this type")
    return kind


class Part(Shape):
    type: Annotated[str, AfterValidator(_only_text)]
    text: str | None = None
    refusal: str | None = None


Parts = Annotated[Annotated[str, One] | Annotated[list[Part], Many], ListOrOne]


class Message(Shape):
    type: Literal["message"] | None = None
    role: Literal["user", "assistant", "system", "developer"]
    content: Parts
    id: str | None = None


class Call(Shape):
    type: Literal["function_call"]
    call_id: Name
    name: Name
    arguments: str
    id: str | None = None


class Result(Shape):
    type: Literal["function_call_output"]
    call_id: Name
    output: Parts
    id: str | None = None


class Thought(Shape):
    type: Literal["reasoning"]
    summary: list[Part] | None = None
    content: list[Part] | None = None
    id: str | None = None


class Reference(Shape):
    """An item of an answer that is kept."""

    type: Literal["item_reference"] | None = None
    id: Name


class Hosted(Shape):
    type: Annotated[Kind, AfterValidator(_hosted)]


OWN_ITEMS = ("message", "function_call", "function_call_output", "reasoning", "item_reference")


def _kind(value: object) -> str:
    kind = value.get("type") if isinstance(value, dict) else getattr(value, "type", None)
    if kind is None:
        refers = isinstance(value, Reference) or (
            isinstance(value, dict) and {"id", "role"} & {*value} == {"id"}
        )
        kind = "item_reference" if refers else "message"
    return f"<{kind}>" if kind in OWN_ITEMS else "<hosted>"


Item = Annotated[
    Annotated[Message, Tag("<message>")]
    | Annotated[Call, Tag("<function_call>")]
    | Annotated[Result, Tag("<function_call_output>")]
    | Annotated[Thought, Tag("<reasoning>")]
    | Annotated[Reference, Tag("<item_reference>")]
    | Annotated[Hosted, Tag("<hosted>")],
    Discriminator(_kind),
]


class Function(Shape):
    type: Literal["function"]
    name: FunctionName
    description: str | None = None
    parameters: Schema | None = None
    strict: bool | None = None


class HostedTool(Shape):
    """One that no server but OpenAI's has. It is not offered to the model."""

    type: Kind


def _tool(value: object) -> str:
    kind = value.get("type") if isinstance(value, dict) else getattr(value, "type", "function")
    return "<function>" if kind in ("function", None) else "<hosted>"


Tool = Annotated[
    Annotated[Function, Tag("<function>")] | Annotated[HostedTool, Tag("<hosted>")], Discriminator(_tool)
]


class Choice(Shape):
    """A tool by its name, or which of them may be called."""

    type: Literal["function", "allowed_tools"]
    name: Name | None = None
    mode: Literal["auto", "required"] = "auto"
    tools: list[dict[str, Any]] | None = None


ToolChoice = Annotated[
    Annotated[Literal["none", "auto", "required"], One] | Annotated[Choice, Mapped], ObjectOrOne
]


class Format(Shape):
    type: Literal["text", "json_object", "json_schema"]
    name: Name | None = None
    of: Annotated[Schema | None, Field(alias="schema")] = None
    strict: bool | None = None


class TextWishes(Shape):
    format: Format | None = None
    verbosity: str | None = None


class Reasoning(Shape):
    effort: Level | None = None
    summary: str | None = None
    generate_summary: str | None = None


class ResponsesRequest(Wishes):
    input: Annotated[Annotated[str, One] | Annotated[list[Item], Field(min_length=1), Many], ListOrOne]
    instructions: str | None = None
    previous_response_id: Name | None = None
    store: bool | None = None
    max_output_tokens: Limit | None = None
    tools: Annotated[list[Tool], Field(max_length=MOST_TOOLS)] | None = None
    tool_choice: ToolChoice | None = None
    parallel_tool_calls: bool | None = None
    max_tool_calls: Annotated[int, Field(ge=1)] | None = None
    text: TextWishes | None = None
    reasoning: Reasoning | None = None
    include: list[str] | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=20)] | None = None
    truncation: Literal["auto", "disabled"] | None = None
    metadata: dict[str, Any] | None = None
    background: bool | None = None
    conversation: Any = None
    prompt: Any = None
    user: str | None = None
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None
    chat_template_kwargs: dict[str, Any] | None = None
    reasoning_budget: Annotated[int, Field(ge=-1)] | None = None

    @property
    def limit(self) -> int | None:
        if self.max_output_tokens is None:
            return super().limit
        return None if self.max_output_tokens == UNLIMITED else self.max_output_tokens


# What cannot be honoured is refused: an answer that ignores it would be taken for one that does not.
REFUSED: tuple[tuple[str, str, Callable[[ResponsesRequest], bool]], ...] = (
    ("background", "answers are made while their client waits", lambda r: bool(r.background)),
    ("conversation", "there are none here: use `previous_response_id`", lambda r: r.conversation is not None),
    ("prompt", "there are no stored prompts here", lambda r: r.prompt is not None),
    ("n", "a response has one answer", lambda r: (r.n or 1) > 1),
)


def check(asked: ResponsesRequest) -> None:
    """What its fields say of each other. Raises InvalidRequest."""
    for param, why, refused in REFUSED:
        if refused(asked):
            raise InvalidRequest(f"`{param}`: {why}", param)
