"""The blocks of a pool: a free list and a reference count each."""

from __future__ import annotations


class BlockPool:
    """`count` blocks. A block is free, or referred to by one or more page tables."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._free = list(range(count - 1, -1, -1))
        self._references = [0] * count

    @property
    def free(self) -> int:
        return len(self._free)

    def take(self) -> int:
        """A free block, now held once. The caller made sure that there is one."""
        block = self._free.pop()
        self._references[block] = 1
        return block

    def share(self, block: int) -> None:
        """One more page table refers to a block that is held already."""
        assert self._references[block] > 0
        self._references[block] += 1

    def release(self, block: int) -> None:
        """One page table less; the last one frees the block."""
        assert self._references[block] > 0
        self._references[block] -= 1
        if self._references[block] == 0:
            self._free.append(block)

    def is_shared(self, block: int) -> bool:
        return self._references[block] > 1

    def check(self, tables: list[list[int]]) -> None:
        """Free and held blocks add up, and the counts are what the page tables say."""
        counted = [0] * self.count
        for table in tables:
            for block in table:
                counted[block] += 1
        assert counted == self._references
        assert sorted(self._free) == [block for block, held in enumerate(counted) if not held]
