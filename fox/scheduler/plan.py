"""One step as data: what to do to the KV memory, then which tokens to compute in one batch."""

from __future__ import annotations

from dataclasses import dataclass, field

from fox.kvcache import Move


@dataclass(frozen=True, slots=True)
class Chunk:
    """Consecutive tokens of one sequence, at positions `start`, `start + 1`, ...

    `seq` is the id that the KV memory knows. The logits after the last `wanted` tokens are needed: none within a
    prompt, 1 to choose the next token, more to check a draft.
    """

    id: str
    seq: int
    start: int
    tokens: list[int]
    wanted: int


@dataclass(frozen=True, slots=True)
class Sampled:
    """What comes after a chunk: the tokens its logits gave (of a draft those it got right, and one more), then those
    that had no choice."""

    tokens: list[int]
    forced: list[int] = field(default_factory=list)


NOTHING = Sampled([])


@dataclass(frozen=True, slots=True)
class Step:
    """Moves first, in order, then one batch with at least one chunk."""

    moves: tuple[Move, ...]
    chunks: tuple[Chunk, ...]
