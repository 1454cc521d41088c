"""A tool that a model may call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

DEEPEST = 8  # references that lead to references


@dataclass(frozen=True)
class Tool:
    """`parameters` is the JSON schema of its arguments. `strict`: every keyword of it must be honoured."""

    name: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    strict: bool = False

    @classmethod
    def of(cls, tool: Mapping[str, Any]) -> Tool:
        """From OpenAI's shape."""
        function = tool["function"]
        return cls(function["name"], function.get("parameters") or {}, bool(function.get("strict")))

    def types(self, key: str) -> set[str]:
        """All JSON types that the schema allows for an argument, as far as it says so."""
        properties = self.parameters.get("properties")
        return self._types(properties.get(key), DEEPEST) if isinstance(properties, Mapping) else set()

    def _types(self, schema: Any, depth: int) -> set[str]:
        if not isinstance(schema, Mapping) or not depth:
            return set()
        if isinstance(reference := schema.get("$ref"), str):
            return self._types(self._referred(reference), depth - 1)
        said = schema.get("type")
        types = (
            {said}
            if isinstance(said, str)
            else set(filter(_is_text, said or ()))
            if _is_list(said)
            else set()
        )
        for choice in ("anyOf", "oneOf", "allOf"):
            for option in schema[choice] if _is_list(schema.get(choice)) else ():
                types |= self._types(option, depth - 1)
        if _is_list(schema.get("enum")) and not types:
            types = {type_of(value) for value in schema["enum"]}
        return types

    def _referred(self, reference: str) -> Any:
        found: Any = self.parameters
        for step in reference.removeprefix("#/").split("/"):
            found = found.get(step) if isinstance(found, Mapping) else None
        return found


def type_of(value: Any) -> str:
    """The JSON type of a value."""
    if isinstance(value, bool):
        return "boolean"
    kinds = {int: "integer", float: "number", str: "string", list: "array", dict: "object"}
    return kinds.get(type(value), "null")


def _is_list(value: Any) -> bool:
    return isinstance(value, list)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)
