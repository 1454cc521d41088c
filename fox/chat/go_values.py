"""What Ollama hands to a Go template: a conversation and tools as Go values that print and marshal as Ollama's do.

A struct of Go's is a Record here: its fields are all a template can reach, never an attribute of Python's. Tools,
arguments and schemas print as JSON, the known keywords first and in the order of Ollama's structs. Where Ollama drops
the keywords of a schema that it does not know, and sorts the keys of arguments, all are kept as they were given.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

Maker = Callable[[Any], Any] | None
_HTML = str.maketrans({c: f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"})
_TYPESCRIPT = {
    "string": "string",
    "number": "number",
    "integer": "number",
    "boolean": "boolean",
    "array": "any[]",
    "object": "Record<string, any>",
    "null": "null",
}


class UnknownField(Exception):  # noqa: N818 - it says what is wrong
    """A template asks for a field that the struct has not."""


class Printed:
    """A value that prints itself: Go's fmt.Stringer."""


class Slice(list[Any]):
    """A slice. Empty, it marshals as the nil that it is in Ollama."""


class Tools(Slice, Printed):
    def __str__(self) -> str:
        return marshal(self)


class Object(dict[str, Any], Printed):
    """The arguments of a call, or the properties of a schema."""

    def __str__(self) -> str:
        return marshal(self)


class PropertyType(list[Any], Printed):
    """The types that a property may have. One marshals as a string, more as an array."""

    def __str__(self) -> str:
        return str(self[0]) if len(self) == 1 else f"[{' '.join(map(str, self))}]" if self else ""


class Record(Printed):
    """A struct: its fields, and the object it marshals as (its fields, where not told).

    A Record that is told its JSON prints as such, another as Go prints a struct.
    """

    __slots__ = ("_fields", "_json")

    def __init__(self, fields: dict[str, Any], json: Mapping[str, Any] | None = None) -> None:
        self._fields, self._json = fields, json

    def __gotemplate_lookup__(self, field: str) -> Any:
        if field not in self._fields:
            raise UnknownField(f"can't evaluate field {field}")
        return self._fields[field]

    @property
    def json(self) -> Mapping[str, Any]:
        return self._fields if self._json is None else self._json

    def __str__(self) -> str:
        if self._json is None:
            return f"{{{' '.join(map(_listed, self._fields.values()))}}}"
        return marshal(self)


def _listed(value: Any) -> str:
    """As Go prints a struct's field."""
    return f"[{' '.join(map(_listed, value))}]" if isinstance(value, Slice) else str(value)


def marshal(value: Any) -> str:
    """JSON as Go's json.Marshal writes it: compact, `<`, `>` and `&` escaped, whole floats without a point."""
    if isinstance(value, Record):
        return marshal(value.json)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).translate(_HTML)
    if isinstance(value, Slice) and not value:
        return "null"
    if isinstance(value, PropertyType) and len(value) == 1:
        return marshal(value[0])
    if isinstance(value, Mapping):
        return f"{{{','.join(f'{marshal(str(k))}:{marshal(v)}' for k, v in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"[{','.join(map(marshal, value))}]"
    return _float(value) if isinstance(value, float) else json.dumps(value)


def _float(value: float) -> str:
    """Without an exponent from 1e-6 up to 1e21, as ES6 and Go write numbers."""
    if not math.isfinite(value):
        raise ValueError(f"unsupported value: {value}")
    if value == 0 or 1e-6 <= abs(value) < 1e21:
        text = format(Decimal(repr(value)), "f")
        return text.rstrip("0").rstrip(".") if "." in text else text
    mantissa, _, exponent = repr(value).partition("e")
    return f"{mantissa.removesuffix('.0')}e{exponent[0]}{exponent[1:].lstrip('0')}"


def typescript(value: Any) -> str:
    """A property's type in TypeScript: Ollama's template function `toTypeScriptType`."""
    return str(value.__gotemplate_lookup__("ToTypeScriptType")) if isinstance(value, Record) else "any"


def collate(messages: Sequence[Mapping[str, Any]]) -> tuple[str, list[dict[str, Any]]]:
    """All system messages as one, and the messages with neighbours of one role merged, but for tools' results."""
    system: list[str] = []
    collated: list[dict[str, Any]] = []
    names: dict[str, str] = {}
    for message in messages:
        plain = _plain(message, names)
        if plain["role"] == "system":
            system.append(plain["content"])
        if not collated or collated[-1]["role"] != plain["role"] or plain["role"] == "tool":
            collated.append(plain)
            continue
        collated[-1]["content"] += f"\n\n{plain['content']}"
        collated[-1]["calls"] += plain["calls"]  # Ollama loses them, and with them what the results answer
    return "\n\n".join(system), collated


def _plain(message: Mapping[str, Any], names: dict[str, str]) -> dict[str, Any]:
    """One message in plain words. `names`: the functions called so far, by the ids of their calls."""
    content = message.get("content") or ""
    if not isinstance(content, str):
        content = "\n".join(str(part.get("text", "")) for part in content)
    calls = [_call(call, place) for place, call in enumerate(message.get("tool_calls") or ())]
    names.update((call["id"], call["name"]) for call in calls)
    answered = str(message.get("tool_call_id") or "")
    name = message.get("tool_name") or message.get("name") or names.get(answered, "")
    role = str(message.get("role") or "")
    return {
        "role": role,
        "content": content,
        "thinking": str(message.get("reasoning_content") or message.get("thinking") or ""),
        "calls": calls,
        "tool_name": str(name) if role == "tool" else "",
        "tool_call_id": answered,
    }


def _call(call: Mapping[str, Any], place: int) -> dict[str, Any]:
    function = call.get("function") or {}
    arguments = function.get("arguments") or {}
    if isinstance(arguments, str):
        arguments = json.loads(arguments)
    if not isinstance(arguments, Mapping):
        raise TypeError("the arguments of a tool call are not an object")
    return {
        "id": str(call.get("id") or ""),
        "index": function.get("index", place),
        "name": str(function.get("name") or ""),
        "arguments": arguments,
    }


def message_record(plain: Mapping[str, Any]) -> Record:
    """A collated message as the struct that templates see."""
    calls = Slice(
        Record(
            {
                "ID": call["id"],
                "Function": Record(
                    {"Index": call["index"], "Name": call["name"], "Arguments": Object(call["arguments"])}
                ),
            }
        )
        for call in plain["calls"]
    )
    return Record(
        {
            "Role": plain["role"],
            "Content": plain["content"],
            "Thinking": plain["thinking"],
            "Images": Slice(),
            "ToolCalls": calls,
            "ToolName": plain["tool_name"],
            "ToolCallID": plain["tool_call_id"],
        }
    )


def tool_records(tools: Iterable[Mapping[str, Any]]) -> Tools:
    """The tools as structs, which print as JSON."""
    return Tools(map(_tool, tools))


def _tool(tool: Mapping[str, Any]) -> Record:
    function = _function(tool.get("function") or {})
    shown = _ordered(tool, {"type": str, "items": None, "function": lambda _: function}, always=("function",))
    fields = {"Type": tool.get("type", ""), "Items": tool.get("items"), "Function": function}
    return Record(fields, shown)


def _function(function: Mapping[str, Any]) -> Record:
    parameters = _parameters(function.get("parameters") or {"type": "object"})
    order: dict[str, Maker] = {"name": str, "description": str, "parameters": lambda _: parameters}
    shown = _ordered(function, order, always=("parameters",))
    fields = {
        "Name": function.get("name", ""),
        "Description": function.get("description") or "",
        "Parameters": parameters,
    }
    return Record(fields, shown)


def _parameters(schema: Mapping[str, Any]) -> Record:
    order: dict[str, Maker] = {
        "type": None,
        "$defs": None,
        "items": None,
        "required": None,
        "properties": _properties,
    }
    shown = _ordered(schema, order, always=("properties",))
    fields = {
        "Type": schema.get("type", ""),
        "Defs": schema.get("$defs"),
        "Items": schema.get("items"),
        "Required": Slice(schema.get("required") or ()),
        "Properties": shown["properties"],
    }
    return Record(fields, shown)


def _properties(properties: Any) -> Object:
    return Object(
        {
            name: _property(schema) if isinstance(schema, Mapping) else schema
            for name, schema in (properties or {}).items()
        }
    )


def _property(schema: Mapping[str, Any]) -> Record:
    order: dict[str, Maker] = {
        "anyOf": lambda kinds: [_property(kind) if isinstance(kind, Mapping) else kind for kind in kinds],
        "type": lambda types: PropertyType([types] if isinstance(types, str) else types),
        "items": None,
        "description": None,
        "enum": None,
        "properties": _properties,
    }
    shown = _ordered(schema, order)
    any_of, types = shown.get("anyOf", Slice()), shown.get("type", PropertyType())
    written = map(typescript, any_of) if any_of else (_TYPESCRIPT.get(str(t), "any") for t in types)
    fields = {
        "AnyOf": any_of,
        "Type": types,
        "Items": shown.get("items"),
        "Description": shown.get("description", ""),
        "Enum": Slice(shown.get("enum", ())),
        "Properties": shown.get("properties"),
        "ToTypeScriptType": " | ".join(written) or "any",
    }
    return Record(fields, shown)


def _ordered(
    given: Mapping[str, Any], order: Mapping[str, Maker], always: Iterable[str] = ()
) -> dict[str, Any]:
    """The keywords in this order, each made by its maker, then all the others. Empty ones are left out as Go does."""
    made = {
        key: make(given.get(key)) if make else given[key]
        for key, make in order.items()
        if given.get(key) or key in always
    }
    return made | {key: value for key, value in given.items() if key not in order}
