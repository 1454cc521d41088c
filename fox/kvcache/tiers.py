"""The tiers below the device: what is saved to the host, spilled to disk, and forgotten."""

from __future__ import annotations

from fox.kvcache.host import Saved, SavedStates
from fox.kvcache.moves import Forget, Move, Save, Spill
from fox.kvcache.prefix import Holding, PrefixIndex
from fox.kvcache.shape import Shape, Track


class Tiers:
    """Saves sequences where there is room for them; each decision is also a move."""

    def __init__(self, shape: Shape, index: PrefixIndex, moves: list[Move]) -> None:
        self.saved = SavedStates(shape.host_bytes, shape.disk_bytes, index)
        self._shape = shape
        self._moves = moves

    def keep(self, track: Track) -> None:
        """Save it, if it is worth finding again and nothing saved serves as well."""
        if track.hashes and not self._saved_already(track):
            self.save(track)

    def checkpoint(self, track: Track) -> None:
        if not self._saved_already(track):
            self.save(track)

    def save(self, track: Track, *, pinned: bool = False) -> Saved | None:
        """Copy it to the host; None where that has no room."""
        size = self._shape.state_bytes + self._shape.token_bytes * len(track.tokens)
        if not track.tokens:
            return None
        if self._shape.can_trim:
            self._forget_shorter(track)
        victims = self.saved.victims("host", size)
        if victims is None:
            return None
        for victim in victims:
            self._spill(victim)
        saved = self.saved.add(track, size, pinned=pinned)
        self._moves.append(Save(track.seq, saved.key))
        return saved

    def adopt(self, tokens: list[int], size_bytes: int) -> int | None:
        """A state of `tokens` lies on disk from an earlier run: the key it goes by now, None where it has no room."""
        if self.saved.victims("disk", size_bytes) != []:
            return None
        return self.saved.add(Holding(tokens), size_bytes, tier="disk").key

    def spill_all(self) -> None:
        """Everything in the host goes to disk, the most recently used last."""
        for saved in list(reversed(list(self.saved))):
            if saved.tier == "host":
                self._spill(saved)

    def forget(self, saved: Saved) -> None:
        self.saved.forget(saved)
        self._moves.append(Forget(saved.key))

    def _spill(self, saved: Saved) -> None:
        """From the host to disk, where there is one with room for it; else it is forgotten."""
        victims = self.saved.victims("disk", saved.size_bytes)
        if victims is None:
            self.forget(saved)
            return
        for victim in victims:
            self.forget(victim)
        self.saved.move(saved, "disk")
        self._moves.append(Spill(saved.key, tuple(saved.tokens)))

    def _saved_already(self, track: Track) -> bool:
        """Whether a saved state serves as well; then it is the one to keep."""
        for saved in self.saved:
            prefix = saved.tokens[: len(track.tokens)]
            if prefix == track.tokens and (self._shape.can_trim or len(prefix) == len(saved.tokens)):
                self.saved.touch(saved)
                return True
        return False

    def _forget_shorter(self, track: Track) -> None:
        """A longer state serves for its own beginnings."""
        for saved in list(self.saved):
            if not saved.pinned and saved.tokens == track.tokens[: len(saved.tokens)]:
                self.forget(saved)
