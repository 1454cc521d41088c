"""The ledger of one pool of KV cells, in blocks of `block_size` tokens.

llama.cpp places cells by (sequence, position) and never sees our blocks: the ledger only guarantees that all
sequences together never ask for more cells than the pool has.
"""

from __future__ import annotations


class KVCache:
    """Blocks of a pool, and how many of them each sequence holds.

    `blocks` blocks of `block_size` tokens; a sequence is an id chosen by the scheduler.
    """

    def __init__(self, blocks: int, block_size: int = 16) -> None:
        self.blocks = blocks
        self.block_size = block_size
        self._held: dict[int, int] = {}
        self._free = blocks

    @property
    def capacity_tokens(self) -> int:
        return self.blocks * self.block_size

    @property
    def usage(self) -> float:
        """Part of the pool that is held, 0 to 1."""
        return 1 - self._free / self.blocks

    def can_reserve(self, seq: int, tokens: int) -> bool:
        """Whether `reserve(seq, tokens)` would succeed."""
        return self._missing(seq, tokens) <= self._free

    def reserve(self, seq: int, tokens: int) -> bool:
        """Grow `seq` until it has room for `tokens` tokens in all. False, and nothing changed, where there is none."""
        missing = self._missing(seq, tokens)
        if missing > self._free:
            return False
        self._held[seq] = self._held.get(seq, 0) + missing
        self._free -= missing
        return True

    def release(self, seq: int) -> None:
        """Give back all that `seq` holds. A sequence that holds nothing is no error."""
        self._free += self._held.pop(seq, 0)

    def check(self) -> None:
        """The invariants: free and held blocks add up to the pool, and nobody holds a negative number."""
        assert self._free + sum(self._held.values()) == self.blocks
        assert self._free >= 0
        assert all(held >= 0 for held in self._held.values())

    def _missing(self, seq: int, tokens: int) -> int:
        needed = -(-tokens // self.block_size)
        return max(0, needed - self._held.get(seq, 0))
