"""The form that a request binds its text to. Of the many fields that may say so, one may be set."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from fox.api.openai.shapes import Schema
from fox.api.openai.wishes import Form, ResponseFormat, Wishes
from fox.chat.forms import ANY_OBJECT, choice_form, json_form, regex_form, written_form
from fox.errors import InvalidRequest
from fox.generation import Grammar


def form(asked: Wishes) -> Grammar | None:
    """Raises InvalidRequest where several are set, or one that is not understood."""
    found = list(_forms(asked))
    if len(found) > 1:
        raise InvalidRequest(
            f"`{found[1].param}`: `{found[0].param}` binds the answer already", found[1].param
        )
    return found[0] if found else None


def _forms(asked: Wishes) -> Iterator[Grammar]:
    if asked.response_format:
        yield from _response_format(asked.response_format)
    if asked.json_schema is not None:
        yield json_form(asked.json_schema, "json_schema", strict=False)
    if asked.grammar:
        yield written_form(asked.grammar, "grammar")
    guided = Form(
        json=asked.guided_json,
        regex=asked.guided_regex,
        choice=asked.guided_choice,
        grammar=asked.guided_grammar,
    )
    yield from _guided(guided, "guided_")
    if asked.structured_outputs:
        yield from _guided(asked.structured_outputs, "structured_outputs.")


def _response_format(wanted: ResponseFormat) -> Iterator[Grammar]:
    if wanted.type == "json_object":
        yield json_form(wanted.of or ANY_OBJECT, "response_format.schema", strict=False)
    if wanted.type == "json_schema":
        named = wanted.json_schema
        if named is None:
            raise InvalidRequest("`response_format.json_schema` is required", "response_format.json_schema")
        param = "response_format.json_schema.schema"
        yield json_form(named.of or ANY_OBJECT, param, strict=bool(named.strict))


def _guided(wanted: Form, prefix: str) -> Iterator[Grammar]:
    if wanted.json_schema is not None:
        yield json_form(_schema(wanted.json_schema, f"{prefix}json"), f"{prefix}json", strict=False)
    if wanted.json_object:
        yield json_form(ANY_OBJECT, f"{prefix}json_object", strict=False)
    if wanted.regex is not None:
        yield regex_form(wanted.regex, f"{prefix}regex")
    if wanted.choice is not None:
        yield choice_form(wanted.choice, f"{prefix}choice")
    if wanted.grammar:
        yield written_form(wanted.grammar, f"{prefix}grammar")


def _schema(given: Schema | str, param: str) -> Schema:
    """vLLM takes a schema as JSON text too."""
    try:
        schema: Any = json.loads(given) if isinstance(given, str) else given
    except ValueError as error:
        raise InvalidRequest(f"`{param}`: not valid JSON: {error}", param) from None
    if not isinstance(schema, dict):
        raise InvalidRequest(f"`{param}`: input should be a JSON object", param)
    return schema
