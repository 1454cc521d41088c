"""The room on the device: slots, blocks, and the parked sequences that yield when somebody needs them."""

from __future__ import annotations

from collections.abc import Collection

from lru import LRU

from fox.kvcache.blocks import BlockPool
from fox.kvcache.host import UNBOUNDED
from fox.kvcache.moves import Drop, Move, Trim
from fox.kvcache.prefix import PrefixIndex
from fox.kvcache.shape import Shape, Track
from fox.kvcache.tiers import Tiers

PARKED_PART = 8  # of what runs, parked cells may add an eighth to the work of every decoded token


class Room:
    """Every sequence in the KV memory. `protected` names sequences that must not be evicted for the asker."""

    def __init__(self, shape: Shape, index: PrefixIndex, tiers: Tiers, moves: list[Move]) -> None:
        self.shape = shape
        self.pool = BlockPool(shape.blocks)
        self.tracks: dict[int, Track] = {}
        self.parked: LRU[int, Track] = LRU(UNBOUNDED)
        self.lent: set[int] = set()  # must not change before the step's copies are made
        self._free_slots = list(range(shape.slots - 1, -1, -1))
        self._index = index
        self._tiers = tiers
        self._moves = moves

    def running_blocks(self) -> set[int]:
        return {block for track in self.tracks.values() if track.running for block in track.blocks}

    def available(self, protected: Collection[int] = ()) -> int:
        """Blocks that are free or would be, were every unprotected parked sequence evicted."""
        kept = self.running_blocks()
        for seq in {*protected, *self.lent}:
            if track := self.tracks.get(seq):
                kept.update(track.blocks)
        return self.shape.blocks - len(kept)

    def victims(self, protected: Collection[int] = ()) -> list[Track]:
        """Parked sequences that may go, the least recently used first."""
        kept = {*protected, *self.lent}
        return [t for t in reversed(self.parked.values()) if t.seq not in kept]

    def seat(self, protected: Collection[int]) -> Track | None:
        """A new sequence; one that is parked yields its slot where none is free."""
        if not self._free_slots:
            victim = next(iter(self.victims(protected)), None)
            if victim is None:
                return None
            self.evict(victim)
        track = Track(seq=self._free_slots.pop())
        self.tracks[track.seq] = track
        return track

    def make(self, blocks: int, protected: Collection[int]) -> bool:
        """Evict parked sequences, least recently used first, until `blocks` are free."""
        if self.pool.free >= blocks:
            return True
        if self.available(protected) < blocks:
            return False
        for track in self.victims(protected):
            self._shrink(track, blocks)
            if self.pool.free >= blocks:
                return True
        return False

    def grow(self, track: Track, blocks: int) -> None:
        track.blocks.extend(self.pool.take() for _ in range(blocks))

    def release(self, track: Track, keep: int) -> None:
        """Give back all but the first `keep` blocks."""
        for block in track.blocks[keep:]:
            self.pool.release(block)
        del track.blocks[keep:]

    def trim(self, track: Track, upto: int) -> None:
        self._index.truncate(track, upto)
        self._moves.append(Trim(track.seq, upto))

    def park(self, track: Track) -> None:
        self.release(track, self.shape.blocks_for(len(track.tokens)))
        track.running = False
        self.parked[track.seq] = track

    def unpark(self, track: Track) -> None:
        del self.parked[track.seq]
        track.running = True

    def evict(self, track: Track) -> None:
        self._tiers.keep(track)
        self.drop(track)

    def drop(self, track: Track) -> None:
        if not track.running:
            del self.parked[track.seq]
        self._index.truncate(track, 0)
        self.release(track, 0)
        del self.tracks[track.seq]
        self._free_slots.append(track.seq)
        self._moves.append(Drop(track.seq))

    def move_parked_aside(self) -> None:
        """In a pool every decoded token looks at every used cell: parked ones beyond what runs belong in the host."""
        running = self.running_blocks()
        if self.shape.by_copy or not running or not self._tiers.saved.budget_bytes["host"]:
            return
        allowed = len(running) // PARKED_PART
        parked = sum(len(t.blocks) for t in self.parked.values())
        for track in self.victims():
            if parked <= allowed:
                return
            parked -= len(track.blocks)
            self.evict(track)

    def writes_shared(self, track: Track, tokens: int) -> int:
        """1 where the next token would be appended to a partly filled block that others refer to as well, else 0."""
        at, filled = divmod(len(track.tokens), self.shape.block_size)
        appends = filled and tokens > len(track.tokens) and at < len(track.blocks)
        return int(bool(appends) and self.pool.is_shared(track.blocks[at]))

    def evict_sharers(self, track: Track) -> None:
        """Parked sequences that refer to the block `track` appends to: without them it needs no copy."""
        at = len(track.tokens) // self.shape.block_size
        for victim in self.victims({track.seq}):
            if track.blocks[at : at + 1] == victim.blocks[at : at + 1]:
                self.evict(victim)

    def copy_on_write(self, track: Track) -> None:
        at = len(track.tokens) // self.shape.block_size
        self.pool.release(track.blocks[at])
        track.blocks[at] = self.pool.take()

    def check(self) -> None:
        tracks = self.tracks.values()
        self.pool.check([t.blocks for t in tracks])
        assert sorted([*self._free_slots, *self.tracks]) == list(range(self.shape.slots))
        assert all(len(t.tokens) <= len(t.blocks) * self.shape.block_size for t in tracks)
        assert {t.seq for t in tracks if not t.running} == set(self.parked.keys())

    def _shrink(self, track: Track, wanted_free: int) -> None:
        """Free blocks from the tail of a parked sequence; its head is the likelier prefix and goes last."""
        if not self.shape.can_trim:
            self.evict(track)
            return
        self._tiers.keep(track)
        while track.blocks and self.pool.free < wanted_free:
            self.pool.release(track.blocks.pop())
        upto = len(track.blocks) * self.shape.block_size
        if upto == 0:
            self.drop(track)
        elif upto < len(track.tokens):
            self.trim(track, upto)
