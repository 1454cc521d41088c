"""The ledger: which tokens each sequence holds in the model's KV memory, and what may be reused, lent or evicted.

A sequence is running (a request computes on it) or parked (its request is over; its tokens stay until their room is
needed). llama.cpp places cells by (sequence, position) and never sees our block ids: the ledger keeps all sequences
together within the pool, and a matched prefix is real only while a sequence or the host tier still holds it. Every
hit therefore becomes moves: share it, take the holder over, or restore it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from lru import LRU

from fox.kvcache.blocks import BlockPool
from fox.kvcache.host import UNBOUNDED, Saved, SavedStates
from fox.kvcache.moves import Drop, Forget, Move, Restore, Save, Share, Spill, Trim
from fox.kvcache.prefix import Holding, Match, PrefixIndex

PARKED_PART = 8  # of what runs, parked cells may add an eighth to the work of every decoded token


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


@dataclass(slots=True, eq=False)
class Track(Holding):
    """One sequence in the KV memory and its page table."""

    seq: int = 0
    blocks: list[int] = field(default_factory=list)
    running: bool = True


@dataclass(frozen=True, slots=True)
class Opened:
    """A sequence for a request: its first `reused` tokens need not be computed; `tier` is where they were found."""

    seq: int
    reused: int
    tier: str | None = None
    key: int | None = None


class KVCache:
    """A request's life is open, reserve, advance, close; `take_moves` gives what the memory must do to agree."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.pool = BlockPool(shape.blocks)
        self.index = PrefixIndex(shape.block_size)
        self.saved = SavedStates(shape.host_bytes, shape.disk_bytes, self.index)
        self._free_slots = list(range(shape.slots - 1, -1, -1))
        self._tracks: dict[int, Track] = {}
        self._parked: LRU[int, Track] = LRU(UNBOUNDED)
        self._lent: set[int] = set()  # must not change before the step's copies are made
        self._moves: list[Move] = []

    # what it can tell

    @property
    def capacity_tokens(self) -> int:
        return self.shape.blocks * self.shape.block_size

    @property
    def usage(self) -> float:
        """Part of the pool that running requests hold, 0 to 1; shared blocks count once."""
        return len(self._running_blocks()) / self.shape.blocks

    @property
    def held_blocks(self) -> int:
        return self.shape.blocks - self.pool.free

    def find(self, tokens: list[int]) -> Match | None:
        """The longest usable prefix of `tokens` that somebody holds; at least one token is always left to compute."""
        best: Match | None = None
        for match in self.index.matches(tokens, len(tokens) - 1):
            if best and match.tokens < best.tokens - best.tokens % self.shape.block_size:
                break
            if self._usable(match) and (best is None or self._worth(match) > self._worth(best)):
                best = match
        return best

    # a request's life

    def open(self, tokens: list[int], *, reuse: bool = True, swapped: int | None = None) -> Opened | None:
        """A sequence for a prompt, with room for it and one token more; None where there is no room now.

        `swapped`: the key of its own saved state, to go on from.
        """
        match = self._own(swapped) if swapped is not None else None
        if match is None and reuse and self.shape.reuse:
            match = self.find(tokens)
        track = self._seat(match, tokens)
        if track is None:
            return None
        reserved = self.reserve(track.seq, len(tokens) + 1)
        assert reserved, "room was checked"
        self._move_parked_aside()
        return self._opened(track, match)

    def reserve(self, seq: int, tokens: int) -> bool:
        """Room for `tokens` tokens in all; parked sequences yield for it. A block that others refer to as well is not
        written: the appender gets one of its own. False, and nothing changed, where there is no room."""
        track = self._tracks[seq]
        missing = max(0, self._blocks_for(tokens) - len(track.blocks))
        if not self._make_room(missing + self._writes_shared(track, tokens), {seq}):
            self._evict_sharers(track)
        if not self._make_room(missing + self._writes_shared(track, tokens), {seq}):
            return False
        if self._writes_shared(track, tokens):
            self._copy_on_write(track)
        track.blocks.extend(self.pool.take() for _ in range(missing))
        return True

    def advance(self, seq: int, tokens: Iterable[int]) -> None:
        """`tokens` of this sequence were computed, and are in its cells now."""
        self.index.extend(self._tracks[seq], tokens)

    def close(self, seq: int, *, keep: bool = True) -> None:
        """The request is over. Its tokens stay parked (`keep`, and worth it), or go at once."""
        track = self._tracks[seq]
        if not (keep and self.shape.reuse and track.hashes):
            self._drop(track)
            return
        self._release_blocks(track, self._blocks_for(len(track.tokens)))
        track.running = False
        self._parked[seq] = track
        self._move_parked_aside()

    def swap_out(self, seq: int) -> int | None:
        """Save the sequence to the host and drop it. The key of its state, or None where the host has no room."""
        track = self._tracks[seq]
        saved = self._save(track, pinned=True)
        if saved:
            self._drop(track)
        return saved.key if saved else None

    def checkpoint(self, seq: int) -> None:
        """Save what the sequence holds now, where the host has room: a past to go on from."""
        track = self._tracks[seq]
        if not self._saved_already(track):
            self._save(track)

    def forget(self, key: int) -> None:
        """The saved state is not needed, or turned out to be lost. An unknown key is no error."""
        if saved := self.saved.get(key):
            self._forget(saved)

    def adopt(self, tokens: list[int], size_bytes: int) -> int | None:
        """A state of `tokens` lies on disk from an earlier run: the key it goes by now, None where it has no room."""
        if self.saved.victims("disk", size_bytes) != []:
            return None
        return self.saved.add(Holding(tokens), size_bytes, tier="disk").key

    def spill_all(self) -> None:
        """Before the end: whatever is worth finding again goes to disk, the most recently used last."""
        for track in reversed(self._parked.values()):
            self._keep_in_host(track)
        for saved in list(reversed(list(self.saved))):
            if saved.tier == "host":
                self._spill(saved)

    def reset(self, seq: int) -> None:
        """The sequence holds nothing after all (a restore failed); its reserved room stays its own."""
        track = self._tracks[seq]
        self.index.truncate(track, 0)
        self._moves.append(Drop(seq))

    def trim(self, seq: int, upto: int) -> None:
        """Forget what the sequence holds from position `upto` on; its room stays its own."""
        self.index.truncate(self._tracks[seq], upto)
        self._moves.append(Trim(seq, upto))

    def take_moves(self) -> tuple[Move, ...]:
        """The moves since the last call, in the order in which they must be applied."""
        moves, self._moves = tuple(self._moves), []
        self._lent.clear()
        return moves

    def check(self) -> None:
        """Free and held blocks add up; tables, index, slots and host tier agree."""
        tracks = self._tracks.values()
        self.pool.check([t.blocks for t in tracks])
        self.index.check([*tracks, *self.saved])
        self.saved.check()
        assert sorted([*self._free_slots, *self._tracks]) == list(range(self.shape.slots))
        assert all(len(t.tokens) <= len(t.blocks) * self.shape.block_size for t in tracks)
        assert {t.seq for t in tracks if not t.running} == set(self._parked.keys())

    # where a request sits

    def _seat(self, match: Match | None, tokens: list[int]) -> Track | None:
        source = match.holding if match else None
        if (
            match
            and isinstance(source, Track)
            and not source.running
            and self._should_take_over(source, match)
        ):
            return self._take_over(source, match.tokens, tokens)
        if isinstance(source, Saved):
            with source.kept():
                return self._seat_anew(match, tokens, set())
        return self._seat_anew(match, tokens, {source.seq} if isinstance(source, Track) else set())

    def _seat_anew(self, match: Match | None, tokens: list[int], protected: set[int]) -> Track | None:
        if not self._fits(match, tokens, protected):
            return None
        seq = self._take_slot(protected)
        if seq is None:
            source = match.holding if match else None
            if match and isinstance(source, Track) and not source.running:
                return self._take_over(source, match.tokens, tokens)
            return None
        track = self._tracks[seq] = Track(seq=seq)
        if match:
            self._fill(track, match)
        return track

    def _should_take_over(self, source: Track, match: Match) -> bool:
        """Continue the parked sequence itself where that loses less than a block of what it holds."""
        return len(source.tokens) - match.tokens < self.shape.block_size and source.seq not in self._lent

    def _take_over(self, source: Track, upto: int, tokens: list[int]) -> Track | None:
        if source.seq in self._lent:
            return None
        missing = self._blocks_for(len(tokens) + 1) - self._blocks_for(upto) + 1
        if self._available({source.seq}) + len(source.blocks) - self._blocks_for(upto) < missing:
            return None
        del self._parked[source.seq]
        source.running = True
        if upto < len(source.tokens):
            self.trim(source.seq, upto)
        self._release_blocks(source, self._blocks_for(upto))
        return source

    def _fill(self, track: Track, match: Match) -> None:
        source, upto = match.holding, match.tokens
        whole = upto == len(source.tokens)
        if isinstance(source, Track):
            self._moves.append(Share(source.seq, track.seq, upto, whole))
            self._lent.add(source.seq)
            if not self.shape.by_copy:
                track.blocks = source.blocks[: self._blocks_for(upto)]
                for block in track.blocks:
                    self.pool.share(block)
        elif isinstance(source, Saved):
            self.saved.touch(source)
            self._moves.append(Restore(source.key, track.seq))
            if not whole:
                self._moves.append(Trim(track.seq, upto))
        missing = self._blocks_for(upto) - len(track.blocks)
        made = self._make_room(missing, {track.seq} | ({source.seq} if isinstance(source, Track) else set()))
        assert made, "room was checked"
        track.blocks.extend(self.pool.take() for _ in range(missing))
        self.index.adopt(track, source, upto)

    def _opened(self, track: Track, match: Match | None) -> Opened:
        if match is None:
            return Opened(track.seq, 0)
        if isinstance(match.holding, Saved):
            return Opened(track.seq, match.tokens, match.holding.tier, match.holding.key)
        return Opened(track.seq, match.tokens, "device")

    def _own(self, key: int) -> Match | None:
        saved = self.saved.get(key)
        return Match(saved, len(saved.tokens)) if saved else None

    def _usable(self, match: Match) -> bool:
        return self.shape.can_trim or match.tokens == len(match.holding.tokens)

    @staticmethod
    def _worth(match: Match) -> tuple[int, int]:
        """Longer first; of equals a parked sequence, then a running one, then the host, then the disk."""
        holding = match.holding
        if isinstance(holding, Track):
            return match.tokens, 3 - holding.running
        return match.tokens, int(isinstance(holding, Saved) and holding.tier == "host")

    # room

    def _fits(self, match: Match | None, tokens: list[int], protected: set[int]) -> bool:
        needed = self._blocks_for(len(tokens) + 1)
        if match and isinstance(match.holding, Track) and not self.shape.by_copy:
            needed -= match.tokens // self.shape.block_size
        return needed <= self._available(protected)

    def _available(self, protected: set[int]) -> int:
        """Blocks that are free or would be, were every unprotected parked sequence evicted."""
        kept = self._running_blocks()
        for seq in protected | self._lent:
            if track := self._tracks.get(seq):
                kept.update(track.blocks)
        return self.shape.blocks - len(kept)

    def _running_blocks(self) -> set[int]:
        return {block for track in self._tracks.values() if track.running for block in track.blocks}

    def _make_room(self, blocks: int, protected: set[int]) -> bool:
        """Evict parked sequences, least recently used first, until `blocks` are free."""
        if self.pool.free >= blocks:
            return True
        if self._available(protected) < blocks:
            return False
        for track in self._victims(protected):
            self._shrink(track, blocks)
            if self.pool.free >= blocks:
                return True
        return False

    def _take_slot(self, protected: set[int]) -> int | None:
        if not self._free_slots:
            victim = next(iter(self._victims(protected)), None)
            if victim is None:
                return None
            self._keep_in_host(victim)
            self._drop(victim)
        return self._free_slots.pop()

    def _victims(self, protected: set[int]) -> list[Track]:
        return [t for t in reversed(self._parked.values()) if t.seq not in protected | self._lent]

    def _shrink(self, track: Track, wanted_free: int) -> None:
        """Free blocks from the tail of a parked sequence; its head is the likelier prefix and goes last."""
        self._keep_in_host(track)
        if not self.shape.can_trim:
            self._drop(track)
            return
        while track.blocks and self.pool.free < wanted_free:
            self.pool.release(track.blocks.pop())
        upto = len(track.blocks) * self.shape.block_size
        if upto == 0:
            self._drop(track)
        elif upto < len(track.tokens):
            self.trim(track.seq, upto)

    def _move_parked_aside(self) -> None:
        """In a pool every decoded token looks at every used cell: parked ones beyond what runs belong in the host."""
        running = self._running_blocks()
        if self.shape.by_copy or not running or not self.saved.budget_bytes["host"]:
            return
        allowed = len(running) // PARKED_PART
        parked = sum(len(t.blocks) for t in self._parked.values())
        for track in self._victims(set()):
            if parked <= allowed:
                return
            parked -= len(track.blocks)
            self._keep_in_host(track)
            self._drop(track)

    def _drop(self, track: Track) -> None:
        if not track.running:
            del self._parked[track.seq]
        self.index.truncate(track, 0)
        self._release_blocks(track, 0)
        del self._tracks[track.seq]
        self._free_slots.append(track.seq)
        self._moves.append(Drop(track.seq))

    def _release_blocks(self, track: Track, keep: int) -> None:
        for block in track.blocks[keep:]:
            self.pool.release(block)
        del track.blocks[keep:]

    def _writes_shared(self, track: Track, tokens: int) -> int:
        """1 where the next token would be appended to a partly filled block that others refer to as well, else 0."""
        at, filled = divmod(len(track.tokens), self.shape.block_size)
        appends = filled and tokens > len(track.tokens) and at < len(track.blocks)
        return int(bool(appends) and self.pool.is_shared(track.blocks[at]))

    def _evict_sharers(self, track: Track) -> None:
        """Parked sequences that refer to the block `track` appends to: without them it needs no copy."""
        at = len(track.tokens) // self.shape.block_size
        for victim in self._victims({track.seq}):
            if track.blocks[at : at + 1] == victim.blocks[at : at + 1]:
                self._keep_in_host(victim)
                self._drop(victim)

    def _copy_on_write(self, track: Track) -> None:
        at = len(track.tokens) // self.shape.block_size
        self.pool.release(track.blocks[at])
        track.blocks[at] = self.pool.take()

    def _blocks_for(self, tokens: int) -> int:
        return -(-tokens // self.shape.block_size)

    # the tiers below

    def _keep_in_host(self, track: Track) -> None:
        if track.hashes and not self._saved_already(track):
            self._save(track)

    def _saved_already(self, track: Track) -> bool:
        """Whether a saved state serves as well; then it is the one to keep."""
        for saved in self.saved:
            prefix = saved.tokens[: len(track.tokens)]
            if prefix == track.tokens and (self.shape.can_trim or len(prefix) == len(saved.tokens)):
                self.saved.touch(saved)
                return True
        return False

    def _save(self, track: Track, *, pinned: bool = False) -> Saved | None:
        size = self.shape.state_bytes + self.shape.token_bytes * len(track.tokens)
        if not track.tokens:
            return None
        if self.shape.can_trim:
            self._forget_shorter(track)
        victims = self.saved.victims("host", size)
        if victims is None:
            return None
        for victim in victims:
            self._spill(victim)
        saved = self.saved.add(track, size, pinned=pinned)
        self._moves.append(Save(track.seq, saved.key))
        return saved

    def _spill(self, saved: Saved) -> None:
        """From the host to disk, where there is one with room for it; else it is forgotten."""
        victims = self.saved.victims("disk", saved.size_bytes)
        if victims is None:
            self._forget(saved)
            return
        for victim in victims:
            self._forget(victim)
        self.saved.move(saved, "disk")
        self._moves.append(Spill(saved.key, tuple(saved.tokens)))

    def _forget_shorter(self, track: Track) -> None:
        """A longer state serves for its own beginnings."""
        for saved in list(self.saved):
            if not saved.pinned and saved.tokens == track.tokens[: len(saved.tokens)]:
                self._forget(saved)

    def _forget(self, saved: Saved) -> None:
        self.saved.forget(saved)
        self._moves.append(Forget(saved.key))
