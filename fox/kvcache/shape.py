"""What the KV memory is like, and one sequence in it."""

from __future__ import annotations

from dataclasses import dataclass, field

from fox.kvcache.prefix import Holding


@dataclass(frozen=True)
class Shape:
    """`slots` sequence ids over `blocks` blocks of `block_size` tokens. `by_copy`: each sequence has a lane of its own,
    shared prefixes are copied; else cells of one pool get several owners. `can_trim`: a tail can be removed; if not,
    only a whole past can be continued. A saved state takes `state_bytes` and `token_bytes` for each token."""

    slots: int
    blocks: int
    block_size: int = 16
    by_copy: bool = False
    can_trim: bool = True
    reuse: bool = True
    host_bytes: int = 0
    disk_bytes: int = 0
    token_bytes: int = 0
    state_bytes: int = 0

    def blocks_for(self, tokens: int) -> int:
        return -(-tokens // self.block_size)


@dataclass(slots=True, eq=False)
class Track(Holding):
    """One sequence in the KV memory and its page table."""

    seq: int = 0
    blocks: list[int] = field(default_factory=list)
    running: bool = True
