"""One step as data: what to do to the KV memory, then which tokens to compute in one batch."""

from __future__ import annotations

from dataclasses import dataclass

from fox.kvcache import Move


@dataclass(frozen=True, slots=True)
class Chunk:
    """Consecutive tokens of one sequence, at positions `start`, `start + 1`, ...

    `seq` is the id that the KV memory knows. `sample`: the logits after the last token are wanted.
    """

    id: str
    seq: int
    start: int
    tokens: list[int]
    sample: bool


@dataclass(frozen=True, slots=True)
class Step:
    """Moves first, in order, then one batch with at least one chunk."""

    moves: tuple[Move, ...]
    chunks: tuple[Chunk, ...]
