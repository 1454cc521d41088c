"""GET /openapi.json and /docs: what can be asked, from the very shapes that requests are checked against."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from html import escape
from typing import Any

import orjson
from pydantic.json_schema import models_json_schema
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from fox import __version__
from fox.api.operation import Operation

REFERENCE = "#/components/schemas/{model}"
PARAMETER = re.compile(r"{(\w+)(?::\w+)?}")
ERROR = {
    "type": "object",
    "properties": {
        "error": {
            "type": "object",
            "properties": {
                "message": {"type": "string"},
                "type": {"type": "string"},
                "param": {"type": ["string", "null"]},
                "code": {"type": "string"},
            },
            "required": ["message", "type", "param", "code"],
        }
    },
    "required": ["error"],
}
STYLE = (
    "body{font:16px/1.5 system-ui;max-width:50em;margin:2em auto;padding:0 1em}td{padding:.2em 1em .2em 0}"
)


class Description:
    """Of these operations and its own."""

    def __init__(self, operations: Sequence[Operation]) -> None:
        own = (
            Operation("GET", "/openapi.json", self.openapi, "this API in OpenAPI's words"),
            Operation("GET", "/docs", self.docs, "this API on a page"),
        )
        self.operations = (*operations, *own)

    async def openapi(self, request: Request) -> Response:
        return Response(self._json, media_type="application/json")

    async def docs(self, request: Request) -> Response:
        rows = "".join(
            f"<tr><td>{one.method}<td><code>{escape(_path(one))}</code><td>{escape(one.summary)}"
            for one in self.operations
        )
        return HTMLResponse(
            f"<!doctype html><html lang=en><meta charset=utf-8><title>fox {__version__}</title><style>{STYLE}</style>"
            f"<h1>fox {__version__}</h1><p>All fields of all requests: <a href=openapi.json>openapi.json</a>."
            f"<table>{rows}</table></html>"
        )

    @cached_property
    def _json(self) -> bytes:
        bodies = dict.fromkeys(one.body for one in self.operations if one.body)
        names, schemas = models_json_schema(
            [(body, "validation") for body in bodies], ref_template=REFERENCE, by_alias=True
        )
        paths: dict[str, dict[str, Any]] = {}
        for one in self.operations:
            schema = names[one.body, "validation"] if one.body else None
            paths.setdefault(_path(one), {})[one.method.lower()] = _operation(one, schema)
        return orjson.dumps(
            {
                "openapi": "3.1.0",
                "info": {"title": "fox", "version": __version__},
                "paths": paths,
                "components": {"schemas": {**schemas.get("$defs", {}), "Error": ERROR}},
            }
        )


def _path(one: Operation) -> str:
    return PARAMETER.sub(r"{\1}", one.path)


def _operation(one: Operation, schema: dict[str, Any] | None) -> dict[str, Any]:
    types = ["application/json", *(["text/event-stream"] if one.streams else [])]
    refused = {"application/json": {"schema": {"$ref": REFERENCE.format(model="Error")}}}
    fields: dict[str, Any] = {
        "summary": one.summary,
        "operationId": f"{one.method.lower()}{re.sub(r'[^A-Za-z0-9]+', '_', _path(one)).rstrip('_')}",
        "responses": {
            "200": {"description": "the answer", "content": {kind: {} for kind in types}},
            "default": {"description": "why not", "content": refused},
        },
    }
    if schema:
        fields["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    if names := PARAMETER.findall(one.path):
        fields["parameters"] = [
            {"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in names
        ]
    return fields
