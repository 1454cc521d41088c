"""The ledger of saved states, in host memory and on disk: which exist, how large they are, and which go first."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from lru import LRU

from fox.kvcache.prefix import Holding, PrefixIndex

UNBOUNDED = 1 << 30  # lru-dict keeps the order only; it must not choose victims: it knows no pins

Tier = Literal["host", "disk"]


@dataclass(slots=True, eq=False)
class Saved(Holding):
    """The state of one sequence outside the device. `pinned`: a swapped request needs it, it must not be evicted."""

    key: int = 0
    size_bytes: int = 0
    pinned: bool = False
    tier: Tier = "host"

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Not to be evicted meanwhile."""
        before, self.pinned = self.pinned, True
        yield
        self.pinned = before


class SavedStates:
    """States within a budget of bytes for each tier, least recently used first out."""

    def __init__(self, host_bytes: int, disk_bytes: int, index: PrefixIndex) -> None:
        self.budget_bytes: dict[Tier, int] = {"host": host_bytes, "disk": disk_bytes}
        self.used_bytes: dict[Tier, int] = {"host": 0, "disk": 0}
        self._index = index
        self._saved: LRU[int, Saved] = LRU(UNBOUNDED)
        self._next_key = 0

    def __iter__(self) -> Iterator[Saved]:
        """Most recently used first."""
        return iter(self._saved.values())

    def get(self, key: int) -> Saved | None:
        return next((saved for saved in self if saved.key == key), None)

    def touch(self, saved: Saved) -> None:
        self._saved.get(saved.key)

    def victims(self, tier: Tier, size_bytes: int) -> list[Saved] | None:
        """What must leave `tier` so that `size_bytes` fit; None where its budget or pins forbid it."""
        spare = self.budget_bytes[tier] - self.used_bytes[tier]
        victims = []
        for saved in reversed(self._saved.values()):
            if spare >= size_bytes:
                break
            if saved.tier == tier and not saved.pinned:
                victims.append(saved)
                spare += saved.size_bytes
        return victims if spare >= size_bytes and self.budget_bytes[tier] else None

    def add(self, holding: Holding, size_bytes: int, *, pinned: bool = False, tier: Tier = "host") -> Saved:
        """Book a state that holds what `holding` holds. Its room was made before."""
        saved = Saved(key=self._next_key, size_bytes=size_bytes, pinned=pinned, tier=tier)
        self._next_key += 1
        self._index.extend(saved, holding.tokens)
        self._saved[saved.key] = saved
        self.used_bytes[tier] += size_bytes
        return saved

    def move(self, saved: Saved, tier: Tier) -> None:
        self.used_bytes[saved.tier] -= saved.size_bytes
        self.used_bytes[tier] += saved.size_bytes
        saved.tier = tier

    def forget(self, saved: Saved) -> None:
        self._index.truncate(saved, 0)
        del self._saved[saved.key]
        self.used_bytes[saved.tier] -= saved.size_bytes

    def check(self) -> None:
        for tier, used in self.used_bytes.items():
            assert used == sum(s.size_bytes for s in self if s.tier == tier) <= self.budget_bytes[tier]
