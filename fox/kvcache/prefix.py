"""Who holds which prefix: chained block hashes, an index from hash to holders, and the match that tokens decide."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

ROOT = b""


def block_hash(parent: bytes, tokens: Sequence[int]) -> bytes:
    """The hash of a block that follows the block hashed to `parent`: equal hashes mean (almost surely) equal pasts."""
    return hashlib.blake2b(parent + array("i", tokens).tobytes(), digest_size=16).digest()


@dataclass(slots=True, eq=False)
class Holding:
    """Tokens whose computed state exists somewhere, with one chained hash for each full block of them."""

    tokens: list[int] = field(default_factory=list)
    hashes: list[bytes] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Match:
    """`holding` holds the first `tokens` tokens of what was looked up."""

    holding: Holding
    tokens: int


class PrefixIndex:
    """Full blocks by hash. A hash collision never gives a wrong answer: every match is checked on the tokens."""

    def __init__(self, block_size: int) -> None:
        self._block_size = block_size
        self._holders: dict[bytes, dict[Holding, None]] = {}

    def extend(self, holding: Holding, tokens: Iterable[int]) -> None:
        """`tokens` were computed after what `holding` held; its new full blocks are indexed."""
        holding.tokens.extend(tokens)
        size = self._block_size
        while len(holding.tokens) >= (len(holding.hashes) + 1) * size:
            at = len(holding.hashes) * size
            parent = holding.hashes[-1] if holding.hashes else ROOT
            holding.hashes.append(block_hash(parent, holding.tokens[at : at + size]))
            self._holders.setdefault(holding.hashes[-1], {})[holding] = None

    def adopt(self, holding: Holding, other: Holding, upto: int) -> None:
        """`holding` (empty) now holds the first `upto` tokens of `other`."""
        holding.tokens = other.tokens[:upto]
        holding.hashes = other.hashes[: upto // self._block_size]
        for hash_ in holding.hashes:
            self._holders[hash_][holding] = None

    def truncate(self, holding: Holding, upto: int) -> None:
        """`holding` holds its first `upto` tokens only."""
        keep = upto // self._block_size
        for hash_ in holding.hashes[keep:]:
            holders = self._holders[hash_]
            del holders[holding]
            if not holders:
                del self._holders[hash_]
        del holding.tokens[upto:], holding.hashes[keep:]

    def matches(self, tokens: list[int], limit: int) -> Iterator[Match]:
        """Holdings that share full blocks with `tokens[:limit]`, deepest first, each match extended token by token."""
        for hash_ in reversed(self._path(tokens, limit)):
            for holding in reversed(self._holders.get(hash_, {})):
                if count := common_prefix(holding.tokens, tokens, limit):
                    yield Match(holding, count)

    def _path(self, tokens: list[int], limit: int) -> list[bytes]:
        """The hashes of the full blocks of `tokens[:limit]` that somebody holds."""
        path: list[bytes] = []
        for at in range(0, limit - self._block_size + 1, self._block_size):
            hash_ = block_hash(path[-1] if path else ROOT, tokens[at : at + self._block_size])
            if hash_ not in self._holders:
                break
            path.append(hash_)
        return path

    def check(self, holdings: Iterable[Holding]) -> None:
        """Every indexed block has a holder, and every holder's full blocks are indexed."""
        expected = {(hash_, id(h)) for h in holdings for hash_ in h.hashes}
        assert expected == {(hash_, id(h)) for hash_, holders in self._holders.items() for h in holders}
        assert all(self._holders.values())


def common_prefix(a: list[int], b: list[int], limit: int) -> int:
    """How many tokens `a` and `b` share from the start, at most `limit`. Halving over slices: C compares them."""
    low, high = 0, min(len(a), len(b), limit)
    while low < high:
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
