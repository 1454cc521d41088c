"""A tool call on its way out."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from fox.chat.pieces import Arguments, Call
from fox.chat.reading.source import Reading, Source

SHORT_CHARS = 128
"""Of arguments up to this length none is told before all are there: a call that is cut short, or turns out to be none,
does not come out in halves. Longer ones are told as they arrive."""

NAMES = ("name", "tool_name", "function_name")
ARGUMENTS = ("arguments", "parameters", "args")
BESIDE = ("id", "type", "tool_call_id", "call_id", "index", "thought", "reason")


class Calling:
    """One call, from its name to the end of its arguments. `known`: whether there is a tool of such a name."""

    def __init__(self, source: Source, known: Callable[[str], bool]) -> None:
        self._source = source
        self._known = known
        self._index: int | None = None
        self._parts: list[str] = []
        self._chars = 0
        self.name = ""
        self.id: str | None = None

    @property
    def may_be(self) -> bool:
        """It has the name of a tool."""
        return self._known(self.name)

    def tell(self, text: str) -> None:
        """The next part of the arguments."""
        self._parts.append(text)
        self._chars += len(text)
        if self.name and self._chars > SHORT_CHARS and (self._index is not None or self._is_object):
            self._emit()

    def done(self) -> bool:
        """The arguments are complete. False where they are no JSON object, and nothing has been told of them."""
        if self._index is None:
            arguments = "".join(self._parts).strip() or "{}"
            if not self.name or not is_object(arguments):
                return False
            self._parts = [arguments]
        self._emit()
        self._source.keep()
        return True

    @property
    def is_told(self) -> bool:
        return self._index is not None

    @property
    def _is_object(self) -> bool:
        return "".join(self._parts[:2]).lstrip().startswith("{")

    def _emit(self) -> None:
        pieces = self._source.pieces
        if self._index is None:
            self._index = self._source.calls
            self._source.calls += 1
            self._source.keep()
            pieces.append(Call(self._index, self.name, self.id))
        if text := "".join(self._parts):
            pieces.append(Arguments(self._index, text))
        self._parts = []


def read_object(source: Source, call: Calling) -> Reading[bool]:
    """A call written as one JSON object with its name and its arguments among the members. Whether it was one."""
    if (yield from source.ahead("{")) is None:
        return False
    early: list[str] = []
    while True:
        yield from source.space()
        end = yield from source.ahead("}", ",")
        if end == "}":
            if early:
                call.tell(_object_text("".join(early)))
            return call.may_be
        if end is None and not (yield from _member(source, call, early)):
            return False


def _member(source: Source, call: Calling, early: list[str]) -> Reading[bool]:
    """One member; arguments before the name wait in `early`."""
    key = yield from _text(source)
    yield from source.space()
    if key is None or (yield from source.ahead(":")) is None:
        return False
    yield from source.space()
    if key == "function" and (yield from source.next()) == "{":
        return (yield from read_object(source, call))
    if key in NAMES or key == "function":
        call.name = (yield from _text(source)) or ""
        return call.may_be
    if key in ARGUMENTS:
        return (yield from _arguments(source, call, early))
    return key in BESIDE and (yield from source.json(_nowhere))


def _arguments(source: Source, call: Calling, early: list[str]) -> Reading[bool]:
    """An object, or JSON text of one."""
    if call.name and (yield from source.next()) == "{":
        return (yield from source.json(call.tell))
    return (yield from source.json(early.append))


def _text(source: Source) -> Reading[str | None]:
    """A JSON string's value."""
    parts: list[str] = []
    if (yield from source.next()) != '"' or not (yield from source.json(parts.append)):
        return None
    try:
        return str(json.loads("".join(parts)))
    except ValueError:
        return None


def _object_text(text: str) -> str:
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if isinstance(value, str) else "{}" if value is None else text


def _nowhere(text: str) -> None:
    pass


def is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def text_of(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
