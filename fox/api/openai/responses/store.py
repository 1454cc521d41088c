"""What was answered, for as long as there is room: the oldest goes first. It does not outlive the server."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

MOST_RESPONSES = 1000
MOST_BYTES = 64 << 20


@dataclass(frozen=True)
class Kept:
    """`before`: the items of the conversation up to its `input`. `size`: in bytes, of input and answer."""

    response: dict[str, Any]
    before: tuple[dict[str, Any], ...]
    input: tuple[dict[str, Any], ...]
    size: int

    @property
    def conversation(self) -> tuple[dict[str, Any], ...]:
        return (*self.before, *self.input, *self.response["output"])


class Store:
    """Belongs to the event loop."""

    def __init__(self, most: int = MOST_RESPONSES, most_bytes: int = MOST_BYTES) -> None:
        self._most, self._most_bytes = most, most_bytes
        self._kept: OrderedDict[str, Kept] = OrderedDict()
        self._bytes = 0

    def keep(self, kept: Kept) -> None:
        """The latest is kept whatever its size."""
        self._kept[kept.response["id"]] = kept
        self._bytes += kept.size
        while len(self._kept) > 1 and (len(self._kept) > self._most or self._bytes > self._most_bytes):
            self._bytes -= self._kept.popitem(last=False)[1].size

    def find(self, id_: str) -> Kept | None:
        return self._kept.get(id_)

    def drop(self, id_: str) -> bool:
        """Whether it was there."""
        kept = self._kept.pop(id_, None)
        self._bytes -= kept.size if kept else 0
        return kept is not None

    def item(self, id_: str) -> dict[str, Any] | None:
        """The item of this id, of whatever is kept."""
        items = (
            item for kept in reversed(self._kept.values()) for item in (*kept.input, *kept.response["output"])
        )
        return next((item for item in items if item["id"] == id_), None)
