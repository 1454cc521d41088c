"""Arguments that a model writes one by one, as text whose type the tool's schema tells."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from fox.chat.reading.calling import Calling, text_of
from fox.chat.tools import Tool, type_of


class Parameters:
    """Writes one call's arguments as a JSON object. Text is told as it comes, other values when they are complete."""

    def __init__(self, call: Calling, tools: Sequence[Tool]) -> None:
        self._call = call
        self._tool = next((tool for tool in tools if tool.name == call.name), Tool(call.name))
        self._names: set[str] = set()

    def begin(self, name: str, *, is_text: bool | None = None) -> Value:
        """The next argument. `is_text`: what the model says of its type, if it says anything."""
        types = self._tool.types(name)
        plain = types == {"string"} if is_text is None else is_text
        lead = ", " if self._names else "{"
        if name in self._names:
            return Value(_Nowhere(), types, plain=plain)
        self._names.add(name)
        self._call.tell(f"{lead}{text_of(name)}: ")
        return Value(self._call, types if is_text is None else set(), plain=plain)

    def end(self) -> bool:
        self._call.tell("}" if self._names else "{}")
        return self._call.done()


class Value:
    """One argument's text as it comes."""

    def __init__(self, call: Calling | _Nowhere, types: set[str], *, plain: bool) -> None:
        self._call = call
        self._types = types
        self._plain = plain
        self._parts: list[str] = []
        if plain:
            call.tell('"')

    def tell(self, text: str) -> None:
        if self._plain:
            self._call.tell(text_of(text)[1:-1])
        else:
            self._parts.append(text)

    def end(self) -> None:
        self._call.tell('"' if self._plain else text_of(self._typed("".join(self._parts))))

    def _typed(self, text: str) -> Any:
        """The JSON value that the text is, where the schema allows such a one; the text itself otherwise."""
        try:
            value = json.loads(text.strip(), parse_constant=_refuse)
        except (ValueError, RecursionError):
            return _word(text.strip(), self._types) if self._types else text
        if "string" in self._types and not isinstance(value, str) and not _is_of(value, self._types):
            return text
        if isinstance(value, str):
            return value if not self._types or "string" in self._types else text
        return value


class _Nowhere:
    def tell(self, text: str) -> None:
        """An argument that was given before: the first one counts."""


def _word(text: str, types: set[str]) -> Any:
    """Python's spellings of what JSON spells otherwise."""
    words = {"True": (True, "boolean"), "False": (False, "boolean"), "None": (None, "null")}
    value, kind = words.get(text, (text, "string"))
    return value if kind in types else text


def _is_of(value: Any, types: set[str]) -> bool:
    kind = type_of(value)
    return kind in types or (kind == "integer" and "number" in types)


def _refuse(name: str) -> Any:
    raise ValueError(name)
