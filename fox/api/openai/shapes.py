"""The shapes that requests of this dialect are made of. Types are strict: `true` is no number, "5" neither."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Discriminator, Field, StringConstraints, Tag
from pydantic_core import PydanticCustomError

STOPS, STOP_CHARS, TOKEN_ID_DIGITS = 16, 1024, 10
UNLIMITED = -1  # what clients of llama.cpp send as `max_tokens`


class Shape(BaseModel):
    """Unknown fields are ignored."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)


# Tags of unions' members are in angle brackets, so that error paths can leave them out.
def list_or_one(value: object) -> str:
    return "<list>" if isinstance(value, list) else "<one>"


def object_or_one(value: object) -> str:
    return "<object>" if isinstance(value, dict | BaseModel) else "<one>"


def text_or_number(value: object) -> str:
    return "<text>" if isinstance(value, str) else "<number>"


One, Many, Mapped, Texts, Numbers = (Tag(f"<{kind}>") for kind in ("one", "list", "object", "text", "number"))
ListOrOne, ObjectOrOne = Discriminator(list_or_one), Discriminator(object_or_one)
TextOrNumber = Discriminator(text_or_number)


def _limit(tokens: int) -> int:
    if tokens < 1 and tokens != UNLIMITED:
        raise PydanticCustomError("limit", "input should be at least 1, or -1 for no limit")
    return tokens


def _token_id(key: str) -> str:
    if not (key.isascii() and key.isdecimal() and len(key) <= TOKEN_ID_DIGITS):
        raise PydanticCustomError("token_id", "keys should be token ids")
    return key


ModelName = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
Stop = Annotated[str, StringConstraints(max_length=STOP_CHARS)]
StopList = Annotated[list[Stop], Field(max_length=STOPS)]
Stops = Annotated[Annotated[Stop, One] | Annotated[StopList, Many], ListOrOne]

Limit = Annotated[int, AfterValidator(_limit)]
Temperature = Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)]
Part = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Penalty = Annotated[float, Field(ge=-2, le=2, allow_inf_nan=False)]
Repetition = Annotated[float, Field(gt=0, le=100, allow_inf_nan=False)]
TokenId = Annotated[str, AfterValidator(_token_id)]
TokenIds = list[Annotated[int, Field(ge=0, lt=1 << 31)]]
Bias = Annotated[float, Field(ge=-100, le=100, allow_inf_nan=False)]
Name = Annotated[str, StringConstraints(min_length=1, max_length=256)]
Schema = dict[str, Any]
SchemaOrText = Annotated[Annotated[str, One] | Annotated[Schema, Mapped], ObjectOrOne]
SecondsOrText = Annotated[Annotated[str, Texts] | Annotated[float, Numbers], TextOrNumber]
