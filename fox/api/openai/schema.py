"""The body of POST /v1/chat/completions. Unknown fields are ignored, `null` is the same as absent."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, StringConstraints, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from fox.api.openai.shapes import (
    UNLIMITED,
    Limit,
    ListOrOne,
    Many,
    Mapped,
    Name,
    Numbers,
    ObjectOrOne,
    One,
    Schema,
    Shape,
    TextOrNumber,
    Texts,
)
from fox.api.openai.wishes import Wishes

MOST_TOOLS = 1024


def _only_text(kind: str) -> str:
    if kind not in ("text", "refusal"):
        raise PydanticCustomError("not_text", "the model reads no parts but those of type `text`")
    return kind


class TextPart(Shape):
    type: Annotated[str, AfterValidator(_only_text)]
    text: Annotated[str | None, Field(validate_default=True)] = None
    refusal: str | None = None

    @field_validator("text")
    @classmethod
    def _has_text(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value is None and info.data.get("type") == "text":
            raise PydanticCustomError("missing", "Field required")
        return value


Content = Annotated[Annotated[str, One] | Annotated[list[TextPart], Many], ListOrOne]
FunctionName = Annotated[str, StringConstraints(min_length=1, max_length=256, pattern=r"^[\w.:/-]+$")]


class FunctionCall(Shape):
    name: str
    arguments: str | None = None


class ToolCall(Shape):
    id: str | None = None
    type: str | None = None
    function: FunctionCall


class Message(Shape):
    """One turn. `content` may be null where something else may stand for it: from the assistant, from a tool."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: Annotated[Content | None, Field(validate_default=True)] = None
    name: str | None = None
    tool_calls: list[ToolCall] | None = None
    tool_call_id: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None

    @field_validator("content")
    @classmethod
    def _says_something(cls, value: object, info: ValidationInfo) -> object:
        if value is None and info.data.get("role") in ("system", "developer", "user"):
            raise PydanticCustomError("no_content", "a message of this role needs content")
        return value


class Function(Shape):
    name: FunctionName
    description: str | None = None
    parameters: Schema | None = None
    strict: bool | None = None


class Tool(Shape):
    type: Literal["function"]
    function: Function


class Chosen(Shape):
    name: Name


class AllowedTools(Shape):
    mode: Literal["auto", "required"] = "auto"
    tools: list[dict[str, Any]]


class Choice(Shape):
    """A tool by its name, or which of them may be called."""

    type: Literal["function", "allowed_tools"]
    function: Chosen | None = None
    allowed_tools: AllowedTools | None = None


ToolWord = Literal["none", "auto", "required"]
ToolChoice = Annotated[Annotated[ToolWord, One] | Annotated[Choice, Mapped], ObjectOrOne]


class Prediction(Shape):
    type: Literal["content"]
    content: Content


Level = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]


class Effort(Shape):
    effort: Level | None = None


class ChatRequest(Wishes):
    messages: Annotated[list[Message], Field(min_length=1)]
    max_completion_tokens: Limit | None = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=20)] | None = None
    modalities: list[str] | None = None

    tools: Annotated[list[Tool], Field(max_length=MOST_TOOLS)] | None = None
    tool_choice: ToolChoice | None = None
    parallel_tool_calls: bool | None = None
    functions: list[dict[str, Any]] | None = None
    prediction: Prediction | None = None

    reasoning_effort: Level | None = None
    reasoning: Effort | None = None
    think: Annotated[Annotated[Level, Texts] | Annotated[bool, Numbers], TextOrNumber] | None = None
    reasoning_budget: Annotated[int, Field(ge=-1)] | None = None
    chat_template_kwargs: dict[str, Any] | None = None
    documents: list[dict[str, Any]] | None = None
    add_generation_prompt: bool | None = None
    continue_final_message: bool | None = None
    return_progress: bool | None = None

    @property
    def limit(self) -> int | None:
        if self.max_completion_tokens is not None:
            return None if self.max_completion_tokens == UNLIMITED else self.max_completion_tokens
        return super().limit
