"""The host tier's ledger: which saved states exist, how large they are, and which one goes first."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from lru import LRU

from fox.kvcache.prefix import Holding, PrefixIndex

UNBOUNDED = 1 << 30  # lru-dict keeps the order only; it must not choose victims: it knows no pins


@dataclass(slots=True, eq=False)
class Saved(Holding):
    """The state of one sequence in host memory. `pinned`: a swapped request needs it, it must not be evicted."""

    key: int = 0
    size_bytes: int = 0
    pinned: bool = False

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Not to be evicted meanwhile."""
        before, self.pinned = self.pinned, True
        yield
        self.pinned = before


class HostTier:
    """Saved states within `budget_bytes`, least recently used first out."""

    def __init__(self, budget_bytes: int, index: PrefixIndex) -> None:
        self.budget_bytes = budget_bytes
        self.used_bytes = 0
        self._index = index
        self._saved: LRU[int, Saved] = LRU(UNBOUNDED)
        self._next_key = 0

    def __iter__(self) -> Iterator[Saved]:
        """Most recently used first."""
        return iter(self._saved.values())

    def __contains__(self, key: int) -> bool:
        return bool(self._saved.has_key(key))

    def touch(self, saved: Saved) -> None:
        self._saved.get(saved.key)

    def covers(self, tokens: list[int]) -> bool:
        """Whether some saved state holds these tokens and perhaps more."""
        return any(s.tokens[: len(tokens)] == tokens for s in self)

    def make_room(self, size_bytes: int) -> list[Saved] | None:
        """The states to forget so that `size_bytes` fit, already taken off the books; None where pins forbid it."""
        spare = self.budget_bytes - self.used_bytes
        victims = []
        for saved in reversed(self._saved.values()):
            if spare >= size_bytes:
                break
            if not saved.pinned:
                victims.append(saved)
                spare += saved.size_bytes
        if spare < size_bytes:
            return None
        for saved in victims:
            self.forget(saved)
        return victims

    def add(self, holding: Holding, size_bytes: int, *, pinned: bool) -> Saved:
        """Book a state that holds what `holding` holds. `make_room` was asked before."""
        saved = Saved(key=self._next_key, size_bytes=size_bytes, pinned=pinned)
        self._next_key += 1
        self._index.adopt(saved, holding, len(holding.tokens))
        self._saved[saved.key] = saved
        self.used_bytes += size_bytes
        return saved

    def forget(self, saved: Saved) -> None:
        self._index.truncate(saved, 0)
        del self._saved[saved.key]
        self.used_bytes -= saved.size_bytes

    def check(self) -> None:
        assert self.used_bytes == sum(s.size_bytes for s in self) <= self.budget_bytes
