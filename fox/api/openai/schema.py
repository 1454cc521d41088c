"""What a chat request may look like: names, types and ranges.

Unknown fields are ignored, `null` is the same as absent. Types are strict: `true` is no number, "5" neither.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    StringConstraints,
    Tag,
    ValidationInfo,
    field_validator,
)
from pydantic_core import PydanticCustomError

STOPS, STOP_CHARS, TOKEN_ID_DIGITS = 16, 1024, 10
MOST_CHOICES = 8
UNLIMITED = -1  # what clients of llama.cpp send as `max_tokens`


# Tags of unions' members are in angle brackets, so that error paths can leave them out.
def _list_or_one(value: object) -> str:
    return "<list>" if isinstance(value, list) else "<one>"


def _object_or_one(value: object) -> str:
    return "<object>" if isinstance(value, dict) else "<one>"


def _limit(tokens: int) -> int:
    if tokens < 1 and tokens != UNLIMITED:
        raise PydanticCustomError("limit", "input should be at least 1, or -1 for no limit")
    return tokens


def _token_id(key: str) -> str:
    if not (key.isascii() and key.isdecimal() and len(key) <= TOKEN_ID_DIGITS):
        raise PydanticCustomError("token_id", "keys should be token ids")
    return key


def _only_text(kind: str) -> str:
    if kind != "text":
        raise PydanticCustomError("not_yet", "only parts of type `text` are supported yet")
    return kind


class Shape(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)


class TextPart(Shape):
    type: Annotated[str, AfterValidator(_only_text)]
    text: str


One, Many, Mapped = Tag("<one>"), Tag("<list>"), Tag("<object>")
Content = Annotated[Annotated[str, One] | Annotated[list[TextPart], Many], Discriminator(_list_or_one)]

Stop = Annotated[str, StringConstraints(max_length=STOP_CHARS)]
StopList = Annotated[list[Stop], Field(max_length=STOPS)]
Stops = Annotated[Annotated[Stop, One] | Annotated[StopList, Many], Discriminator(_list_or_one)]

ToolWord = Literal["none", "auto", "required"]
ToolChoice = Annotated[
    Annotated[ToolWord, One] | Annotated[dict[str, Any], Mapped], Discriminator(_object_or_one)
]

Limit = Annotated[int, AfterValidator(_limit)]
Temperature = Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)]
Part = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Penalty = Annotated[float, Field(ge=-2, le=2, allow_inf_nan=False)]
Repetition = Annotated[float, Field(gt=0, le=100, allow_inf_nan=False)]
TokenId = Annotated[str, AfterValidator(_token_id)]
Bias = Annotated[float, Field(ge=-100, le=100, allow_inf_nan=False)]


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

    @field_validator("content")
    @classmethod
    def _says_something(cls, value: object, info: ValidationInfo) -> object:
        if value is None and info.data.get("role") in ("system", "developer", "user"):
            raise PydanticCustomError("no_content", "a message of this role needs content")
        return value


class StreamOptions(Shape):
    include_usage: bool | None = None


class ResponseFormat(Shape):
    type: str


class ChatRequest(Shape):
    """The body of POST /v1/chat/completions, with what llama.cpp's and vLLM's clients and load tests send beside it."""

    model: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
    messages: Annotated[list[Message], Field(min_length=1)]
    stream: bool | None = None
    stream_options: StreamOptions | None = None

    max_tokens: Limit | None = None
    max_completion_tokens: Limit | None = None
    min_tokens: Annotated[int, Field(ge=0)] | None = None
    ignore_eos: bool | None = None
    stop: Stops | None = None

    temperature: Temperature | None = None
    top_p: Annotated[Part, Field(gt=0)] | None = None
    top_k: Annotated[int, Field(ge=-1)] | None = None
    min_p: Part | None = None
    seed: int | None = None
    presence_penalty: Penalty | None = None
    frequency_penalty: Penalty | None = None
    repeat_penalty: Repetition | None = None
    repetition_penalty: Repetition | None = None
    repeat_last_n: Annotated[int, Field(ge=-1)] | None = None
    logit_bias: dict[TokenId, Bias] | None = None
    dynatemp_range: Temperature | None = None
    dynatemp_exponent: Temperature | None = None
    typical_p: Annotated[Part, Field(gt=0)] | None = None
    xtc_probability: Part | None = None
    xtc_threshold: Part | None = None
    top_n_sigma: Annotated[float, Field(ge=-1, le=100, allow_inf_nan=False)] | None = None
    mirostat: Annotated[int, Field(ge=0, le=2)] | None = None
    mirostat_tau: Temperature | None = None
    mirostat_eta: Temperature | None = None
    dry_multiplier: Temperature | None = None
    dry_base: Temperature | None = None
    dry_allowed_length: Annotated[int, Field(ge=1, le=1 << 20)] | None = None
    dry_penalty_last_n: Annotated[int, Field(ge=-1)] | None = None
    dry_sequence_breakers: Annotated[list[Stop], Field(max_length=STOPS)] | None = None

    priority: Annotated[int, Field(ge=0, le=255)] | None = None
    cache_prompt: bool | None = None
    truncate: bool | None = None
    shift: bool | None = None

    n: Annotated[int, Field(ge=1, le=MOST_CHOICES)] | None = None
    tools: list[dict[str, Any]] | None = None
    tool_choice: ToolChoice | None = None
    functions: list[dict[str, Any]] | None = None
    response_format: ResponseFormat | None = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=20)] | None = None
    modalities: list[str] | None = None

    @property
    def limit(self) -> int | None:
        """Tokens to generate at most; None: to the end of the context."""
        tokens = self.max_tokens if self.max_completion_tokens is None else self.max_completion_tokens
        return None if tokens == UNLIMITED else tokens
