"""What any request for text may wish: how tokens are chosen, where the text ends, and what form it has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Field, ValidationError

from fox.api.openai.shapes import (
    STOPS,
    UNLIMITED,
    Bias,
    Limit,
    ModelName,
    Name,
    Part,
    Penalty,
    Repetition,
    Schema,
    SchemaOrText,
    SecondsOrText,
    Shape,
    Stop,
    Stops,
    Temperature,
    TokenId,
    TokenIds,
)
from fox.registry import Terms
from fox.registry.keep_alive import seconds

MOST_CHOICES = 8
MOST_ALTERNATIVES = 1000

Alternatives = Annotated[list[str], Field(min_length=1, max_length=MOST_ALTERNATIVES)]


class StreamOptions(Shape):
    include_usage: bool | None = None


class NamedSchema(Shape):
    """`schema` may be left out: any object."""

    name: Name | None = None
    of: Annotated[Schema | None, Field(alias="schema")] = None
    strict: bool | None = None


class ResponseFormat(Shape):
    """`schema` beside `json_object` is llama.cpp's."""

    type: Literal["text", "json_object", "json_schema"]
    json_schema: NamedSchema | None = None
    of: Annotated[Schema | None, Field(alias="schema")] = None


class Form(Shape):
    """What the text must be like. One of them, if any."""

    json_schema: SchemaOrText | None = Field(None, alias="json")
    regex: str | None = None
    choice: Alternatives | None = None
    grammar: str | None = None
    json_object: bool | None = None


class Chances(Shape):
    """How tokens are chosen, and where the text ends."""

    temperature: Temperature | None = None
    top_p: Annotated[Part, Field(gt=0)] | None = None
    top_k: Annotated[int, Field(ge=-1)] | None = None
    min_p: Part | None = None
    seed: int | None = None
    presence_penalty: Penalty | None = None
    frequency_penalty: Penalty | None = None
    repeat_penalty: Repetition | None = None
    repeat_last_n: Annotated[int, Field(ge=-1)] | None = None
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
    stop: Stops | None = None


class Options(Chances):
    """Ollama's `options`. What is set beside them in the request itself goes before them."""

    num_predict: int | None = None
    num_ctx: int | None = None


class Wishes(Chances):
    """The fields that completions of every kind share, with what clients of llama.cpp, vLLM and Ollama send beside
    OpenAI's."""

    model: ModelName
    stream: bool | None = None
    stream_options: StreamOptions | None = None

    max_tokens: Limit | None = None
    min_tokens: Annotated[int, Field(ge=0)] | None = None
    ignore_eos: bool | None = None
    stop_token_ids: TokenIds | None = None
    logit_bias: dict[TokenId, Bias] | None = None
    repetition_penalty: Repetition | None = None

    response_format: ResponseFormat | None = None
    grammar: str | None = None
    json_schema: Schema | None = None
    guided_json: SchemaOrText | None = None
    guided_regex: str | None = None
    guided_choice: Alternatives | None = None
    guided_grammar: str | None = None
    structured_outputs: Form | None = None

    n: Annotated[int, Field(ge=1, le=MOST_CHOICES)] | None = None
    id: Annotated[str, Field(min_length=1, max_length=128, pattern=r"^[\w.:-]+$")] | None = None
    priority: Annotated[int, Field(ge=0, le=255)] | None = None
    cache_prompt: bool | None = None
    truncate: bool | None = None
    shift: bool | None = None
    timings_per_token: bool | None = None
    keep_alive: SecondsOrText | None = None
    options: Options | None = None

    @property
    def limit(self) -> int | None:
        """Tokens to generate at most; None: to the end of the context."""
        tokens = self.max_tokens
        if tokens is None and self.options:
            tokens = self.options.num_predict
        return None if tokens is None or tokens <= UNLIMITED else max(tokens, 1)

    @property
    def includes_usage(self) -> bool:
        """A stream ends with what it cost."""
        return bool(self.stream_options and self.stream_options.include_usage)

    @property
    def terms(self) -> Terms:
        """Raises InvalidRequest where `keep_alive` makes no sense."""
        context = self.options.num_ctx if self.options else None
        return Terms(seconds(self.keep_alive), context)

    def over(self, parameters: Mapping[str, Any]) -> Self:
        """The same over a model's own parameters. Those that make no sense are passed over, all of them."""
        fields = {name: value for name, value in parameters.items() if name in Options.model_fields}
        if not fields:
            return self
        given = self.options.model_dump(exclude_none=True) if self.options else {}
        try:
            options = Options.model_validate({**fields, **given}, strict=False)
        except ValidationError:
            return self
        return self.model_copy(update={"options": options})

    def wish(self, name: str) -> Any:
        """The value of a field of Chances: the request's own, else that of its options."""
        value = getattr(self, name)
        return getattr(self.options, name) if value is None and self.options else value
