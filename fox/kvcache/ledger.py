"""The ledger: which tokens each sequence holds in the model's KV memory, and what may be reused, lent or evicted.

A sequence is running (a request computes on it) or parked (its request is over; its tokens stay until their room is
needed). llama.cpp places cells by (sequence, position) and never sees our block ids: the ledger keeps all sequences
together within the pool, and a matched prefix is real only while a sequence or the host tier still holds it. Every
hit therefore becomes moves: share it, take the holder over, or restore it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from fox.kvcache.host import Saved, SavedStates
from fox.kvcache.moves import Drop, Move, Restore, Share, Trim
from fox.kvcache.prefix import Match, PrefixIndex
from fox.kvcache.room import Room
from fox.kvcache.shape import Shape, Track
from fox.kvcache.tiers import Tiers


@dataclass(frozen=True, slots=True)
class Opened:
    """A sequence for a request: its first `reused` tokens need not be computed; `tier` is where they were found."""

    seq: int
    reused: int
    tier: str | None = None


class KVCache:
    """A request's life is open, reserve, advance, close; `take_moves` gives what the memory must do to agree."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.index = PrefixIndex(shape.block_size)
        self._moves: list[Move] = []
        self._tiers = Tiers(shape, self.index, self._moves)
        self._room = Room(shape, self.index, self._tiers, self._moves)

    # what it can tell

    @property
    def saved(self) -> SavedStates:
        return self._tiers.saved

    @property
    def tracks(self) -> dict[int, Track]:
        return self._room.tracks

    @property
    def capacity_tokens(self) -> int:
        return self.shape.blocks * self.shape.block_size

    @property
    def usage(self) -> float:
        """Part of the pool that running requests hold, 0 to 1; shared blocks count once."""
        return len(self._room.running_blocks()) / self.shape.blocks

    @property
    def held_blocks(self) -> int:
        return self.shape.blocks - self._room.pool.free

    def find(self, tokens: list[int]) -> Match | None:
        """The longest usable prefix of `tokens` that somebody holds; at least one token is always left to compute."""
        best: Match | None = None
        for match in self.index.matches(tokens, len(tokens) - 1):
            if best and match.tokens < best.tokens - best.tokens % self.shape.block_size:
                break
            if self._usable(match) and (best is None or _worth(match) > _worth(best)):
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
        if track is None and match and not self._is_lent(match):
            match, track = None, self._seat(None, tokens)  # what holds the prefix may itself be in the way
        if track is None:
            return None
        reserved = self.reserve(track.seq, len(tokens) + 1)
        assert reserved, "room was checked"
        self._room.move_parked_aside()
        if match is None:
            return Opened(track.seq, 0)
        return Opened(
            track.seq, match.tokens, match.holding.tier if isinstance(match.holding, Saved) else "device"
        )

    def reserve(self, seq: int, tokens: int) -> bool:
        """Room for `tokens` tokens in all; parked sequences yield for it. A block that others refer to as well is not
        written: the appender gets one of its own. False, and nothing changed, where there is no room."""
        room, track = self._room, self.tracks[seq]
        missing = max(0, self.shape.blocks_for(tokens) - len(track.blocks))
        if not room.make(missing + room.writes_shared(track, tokens), {seq}):
            room.evict_sharers(track)
        if not room.make(missing + room.writes_shared(track, tokens), {seq}):
            return False
        if room.writes_shared(track, tokens):
            room.copy_on_write(track)
        room.grow(track, missing)
        return True

    def advance(self, seq: int, tokens: Iterable[int]) -> None:
        """`tokens` of this sequence were computed, and are in its cells now."""
        self.index.extend(self.tracks[seq], tokens)

    def close(self, seq: int, *, keep: bool = True) -> None:
        """The request is over. Its tokens stay parked (`keep`, and worth it), or go at once."""
        track = self.tracks[seq]
        if not (keep and self.shape.reuse and track.hashes):
            self._room.drop(track)
            return
        self._room.park(track)
        self._room.move_parked_aside()

    def swap_out(self, seq: int) -> int | None:
        """Save the sequence to the host and drop it. The key of its state, or None where the host has no room."""
        track = self.tracks[seq]
        saved = self._tiers.save(track, pinned=True)
        if saved:
            self._room.drop(track)
        return saved.key if saved else None

    def checkpoint(self, seq: int) -> None:
        """Save what the sequence holds now, where the host has room: a past to go on from."""
        self._tiers.checkpoint(self.tracks[seq])

    def forget(self, key: int) -> None:
        """The saved state is not needed, or turned out to be lost. An unknown key is no error."""
        if saved := self.saved.get(key):
            self._tiers.forget(saved)

    def adopt(self, tokens: list[int], size_bytes: int) -> int | None:
        """A state of `tokens` lies on disk from an earlier run: the key it goes by now, None where it has no room."""
        return self._tiers.adopt(tokens, size_bytes)

    def spill_all(self) -> None:
        """Before the end: whatever is worth finding again goes to disk, the most recently used last."""
        for track in reversed(self._room.parked.values()):
            self._tiers.keep(track)
        self._tiers.spill_all()

    def reset(self, seq: int) -> None:
        """The sequence holds nothing after all (a restore failed); its reserved room stays its own."""
        self.index.truncate(self.tracks[seq], 0)
        self._moves.append(Drop(seq))

    def trim(self, seq: int, upto: int) -> None:
        """Forget what the sequence holds from position `upto` on; its room stays its own."""
        self._room.trim(self.tracks[seq], upto)

    def take_moves(self) -> tuple[Move, ...]:
        """The moves since the last call, in the order in which they must be applied."""
        moves = tuple(self._moves)
        self._moves.clear()
        self._room.lent.clear()
        return moves

    def check(self) -> None:
        """Free and held blocks add up; tables, index, slots and host tier agree."""
        self._room.check()
        self.saved.check()
        self.index.check([*self.tracks.values(), *self.saved])

    # where a request sits

    def _seat(self, match: Match | None, tokens: list[int]) -> Track | None:
        source = match.holding if match else None
        if match and isinstance(source, Track):
            if self._should_take_over(source, match):
                return self._take_over(source, match.tokens, tokens)
            return self._seat_anew(match, tokens, {source.seq}) or self._take_over(
                source, match.tokens, tokens
            )
        if isinstance(source, Saved):
            with source.kept():
                return self._seat_anew(match, tokens, set())
        return self._seat_anew(match, tokens, set())

    def _seat_anew(self, match: Match | None, tokens: list[int], protected: set[int]) -> Track | None:
        if not self._fits(match, tokens, protected):
            return None
        track = self._room.seat(protected)
        if track and match:
            self._fill(track, match)
        return track

    def _fits(self, match: Match | None, tokens: list[int], protected: set[int]) -> bool:
        needed = self.shape.blocks_for(len(tokens) + 1)
        if match and isinstance(match.holding, Track) and not self.shape.by_copy:
            needed -= match.tokens // self.shape.block_size
        if match and isinstance(match.holding, Saved):  # it is restored whole, and then trimmed
            needed = max(needed, self.shape.blocks_for(len(match.holding.tokens)))
        return needed <= self._room.available(protected)

    def _is_lent(self, match: Match) -> bool:
        return isinstance(match.holding, Track) and match.holding.seq in self._room.lent

    def _should_take_over(self, source: Track, match: Match) -> bool:
        """Continue the parked sequence itself where that loses less than a block of what it holds."""
        loses = len(source.tokens) - match.tokens
        return not source.running and not self._is_lent(match) and loses < self.shape.block_size

    def _take_over(self, source: Track, upto: int, tokens: list[int]) -> Track | None:
        room, held = self._room, self.shape.blocks_for(upto)
        if source.running or source.seq in room.lent:
            return None
        missing = self.shape.blocks_for(len(tokens) + 1) - held + 1
        if room.available({source.seq}) + len(source.blocks) - held < missing:
            return None
        room.unpark(source)
        if upto + self.shape.block_size <= len(source.tokens):
            self._tiers.keep(source)
        if upto < len(source.tokens):
            room.trim(source, upto)
        room.release(source, held)
        return source

    def _fill(self, track: Track, match: Match) -> None:
        source, upto = match.holding, match.tokens
        if isinstance(source, Track):
            self._share(source, track, upto)
        elif isinstance(source, Saved):
            self._restore(source, track, upto)
        self.index.adopt(track, source, upto)

    def _share(self, source: Track, track: Track, upto: int) -> None:
        self._moves.append(Share(source.seq, track.seq, upto, whole=upto == len(source.tokens)))
        self._room.lent.add(source.seq)
        if self.shape.by_copy:
            self._make(self.shape.blocks_for(upto), {track.seq, source.seq})
            self._room.grow(track, self.shape.blocks_for(upto))
            return
        track.blocks = source.blocks[: self.shape.blocks_for(upto)]
        for block in track.blocks:
            self._room.pool.share(block)

    def _restore(self, source: Saved, track: Track, upto: int) -> None:
        self._make(self.shape.blocks_for(len(source.tokens)), {track.seq})
        self.saved.touch(source)
        self._moves.append(Restore(source.key, track.seq))
        if upto < len(source.tokens):
            self._moves.append(Trim(track.seq, upto))
        self._room.grow(track, self.shape.blocks_for(upto))

    def _make(self, blocks: int, protected: set[int]) -> None:
        made = self._room.make(blocks, protected)
        assert made, "room was checked"

    def _own(self, key: int) -> Match | None:
        saved = self.saved.get(key)
        return Match(saved, len(saved.tokens)) if saved else None

    def _usable(self, match: Match) -> bool:
        return self.shape.can_trim or match.tokens == len(match.holding.tokens)


def _worth(match: Match) -> tuple[int, int]:
    """Longer first; of equals a parked sequence, then a running one, then the host, then the disk."""
    holding = match.holding
    if isinstance(holding, Track):
        return match.tokens, 3 - holding.running
    return match.tokens, int(isinstance(holding, Saved) and holding.tier == "host")
