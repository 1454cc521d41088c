"""What was answered, for as long as there is room: the oldest goes first. It does not outlive the server."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

MOST_RESPONSES = 1000
MOST_BYTES = 64 << 20


@dataclass(frozen=True)
class Kept:
    """`before`: the items of the conversation up to its `input`. `size`: in bytes, of all that it holds: what turns of
    one conversation share is counted for each of them, since any of them may be the last to hold it."""

    response: dict[str, Any]
    before: tuple[dict[str, Any], ...]
    input: tuple[dict[str, Any], ...]
    size: int

    @property
    def conversation(self) -> tuple[dict[str, Any], ...]:
        return (*self.before, *self.input, *self.response["output"])

    @property
    def own(self) -> tuple[dict[str, Any], ...]:
        """The items that came with it."""
        return (*self.input, *self.response["output"])


class Store:
    """Belongs to the event loop."""

    def __init__(self, most: int = MOST_RESPONSES, most_bytes: int = MOST_BYTES) -> None:
        self._most, self._most_bytes = most, most_bytes
        self._kept: OrderedDict[str, Kept] = OrderedDict()
        self._items: dict[str, tuple[dict[str, Any], int]] = {}  # with the size of what it came with
        self._bytes = 0

    def keep(self, kept: Kept) -> None:
        """In the stead of one with the same id. The latest is kept whatever its size."""
        self.drop(kept.response["id"])
        self._kept[kept.response["id"]] = kept
        self._items |= {item["id"]: (item, kept.size) for item in kept.own}
        self._bytes += kept.size
        while len(self._kept) > 1 and (len(self._kept) > self._most or self._bytes > self._most_bytes):
            self.drop(next(iter(self._kept)))

    def find(self, id_: str) -> Kept | None:
        return self._kept.get(id_)

    def drop(self, id_: str) -> None:
        """One that is not there is no error."""
        kept = self._kept.pop(id_, None)
        if kept is None:
            return
        self._bytes -= kept.size
        for item in kept.own:
            self._items.pop(item["id"], None)

    def item(self, id_: str) -> tuple[dict[str, Any], int] | None:
        """The item of this id, of whatever is kept, and at most how many bytes it has."""
        return self._items.get(id_)
