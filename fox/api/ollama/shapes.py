"""Bodies as Go reads them: keys in any case, null is absent, unknown keys are ignored, and what Go says of the rest."""

from __future__ import annotations

import json
from typing import Any, ClassVar, TypeVar

import orjson
from pydantic import BaseModel, ConfigDict, ValidationError, model_validator
from pydantic_core import ErrorDetails

from fox.errors import InvalidRequest

KINDS = {str: "string", bool: "bool", int: "number", float: "number", list: "array", dict: "object"}
GO_TYPES = {
    "string_type": "string",
    "bool_type": "bool",
    "int_type": "int",
    "int_from_float": "int",
    "float_type": "float64",
    "dict_type": "map[string]interface {}",
    "list_type": "[]string",
    "model_type": "struct",
}


class GoShape(BaseModel):
    """`go_types`: what Go calls a field's type, where it is none of its own."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)
    go_types: ClassVar[dict[str, str]] = {}

    @model_validator(mode="before")
    @classmethod
    def _in_any_case(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        known = {field.alias or name for name, field in cls.model_fields.items()}
        names = {name.lower(): name for name in known}
        fields: dict[str, Any] = {}
        for key, value in data.items():
            name = key if key in known else names.get(str(key).lower())
            if name is not None and value is not None:
                fields[name] = value
        return fields


S = TypeVar("S", bound=GoShape)


def read(shape: type[S], body: bytes) -> S:
    """The body in this shape; what follows its JSON does not matter. Raises InvalidRequest."""
    fields = _json(body)
    if not isinstance(fields, dict | type(None)):
        kind = KINDS.get(type(fields), "value")
        raise InvalidRequest(
            f"json: cannot unmarshal {kind} into Go value of type api.{shape.__name__}", None
        )
    try:
        return shape.model_validate(fields or {})
    except ValidationError as error:
        raise _refusal(shape, error.errors(include_url=False)[0]) from None


def _json(body: bytes) -> Any:
    if not body.strip():
        raise InvalidRequest("missing request body", None)
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        pass
    try:
        return json.JSONDecoder().raw_decode(body.decode().lstrip("\ufeff \t\r\n"))[0]
    except (ValueError, RecursionError) as error:
        says = str(error) if isinstance(error, json.JSONDecodeError) else "it is not UTF-8 or goes too deep"
        raise InvalidRequest(f"invalid JSON: {says}", None) from None


def _refusal(shape: type[GoShape], error: ErrorDetails) -> InvalidRequest:
    """`json: cannot unmarshal string into Go struct field ChatRequest.messages of type []api.Message`."""
    path = ".".join(str(part) for part in error["loc"] if isinstance(part, str))
    kind = KINDS.get(type(error["input"]), "value")
    if error["type"] not in GO_TYPES:
        return InvalidRequest(f"`{path}`: {error['msg'][:1].lower()}{error['msg'][1:]}", path or None)
    go_type = shape.go_types.get(path) or GO_TYPES[error["type"]]
    where = f"Go struct field {shape.__name__}.{path} of type {go_type}"
    return InvalidRequest(f"json: cannot unmarshal {kind} into {where}", path or None)
