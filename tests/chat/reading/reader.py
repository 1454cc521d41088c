"""Reads an answer in pieces, and says what it came to."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from fox.chat.pieces import Arguments, Call, Content, Reasoning
from fox.chat.reading import Family, Reader, family_named
from fox.chat.tools import Tool

CITY = {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}}
NOTE = {"type": "object", "properties": {"text": {"type": "string"}, "tags": {"type": "array"}}}
TOOLS = (Tool("weather", CITY), Tool("note", NOTE), Tool("time"))


@dataclass
class Heard:
    content: str = ""
    thought: str = ""
    calls: list[tuple[str, str]] = field(default_factory=list)
    ids: list[str | None] = field(default_factory=list)
    first_calls_pieces: int = 0

    def hear(self, reader: Reader, chunks: Iterable[str], *, truncated: bool = False) -> Heard:
        for chunk in chunks:
            self._keep(reader.feed(chunk))
        self._keep(reader.finish(truncated))
        return self

    @property
    def objects(self) -> list[tuple[str, Any]]:
        return [(name, json.loads(arguments or "{}")) for name, arguments in self.calls]

    def _keep(self, pieces: Iterable[Any]) -> None:
        for piece in pieces:
            match piece:
                case Content(text):
                    self.content += text
                case Reasoning(text):
                    self.thought += text
                case Call(index, name, id_):
                    assert index == len(self.calls)
                    self.calls.append((name, ""))
                    self.ids.append(id_)
                case Arguments(index, text):
                    name, so_far = self.calls[index]
                    self.calls[index] = (name, so_far + text)
                    self.first_calls_pieces += index == 0


def heard(
    family: str | Family,
    chunks: Iterable[str],
    *,
    tools: tuple[Tool, ...] = TOOLS,
    opened: bool = False,
    thinks: bool = True,
    truncated: bool = False,
) -> Heard:
    known = family_named(family) if isinstance(family, str) else family
    reader = known.reader(tools, known.thought if thinks else None, opened=opened)
    return Heard().hear(reader, chunks, truncated=truncated)
