"""Requests that share a prefix with one being prefilled wait for it and then share it: it is computed once."""

from __future__ import annotations

from collections.abc import Iterable

from fox.kvcache import KVCache, Shape
from fox.kvcache.prefix import common_prefix
from fox.scheduler.sequence import Sequence, State

CHECKPOINT_TAIL_TOKENS = 8  # templates may rewrite the last tokens of a turn: the checkpoint lies before them


def waits(sequence: Sequence, running: Iterable[Sequence], cache: KVCache) -> bool:
    """Whether another is computing a prefix that this one can share soon. Keeps whom it waits for in `joins`."""
    if not sequence.reuse or not cache.shape.reuse or sequence.state is State.SWAPPED:
        return False
    if sequence.joins is None:
        sequence.joins = _leader(sequence, running, cache)
    if sequence.joins is None:
        return False
    other, upto = sequence.joins
    if other.state is State.PREFILLING and other.computed < upto:
        return True
    sequence.joins = None
    return False


def checkpoint_at(sequence: Sequence, shape: Shape) -> int:
    """Where to save a past that another turn can go on from: 0 where tails can be trimmed anyway."""
    if shape.can_trim or not shape.reuse:
        return 0
    at = (len(sequence.tokens) - CHECKPOINT_TAIL_TOKENS) // shape.block_size * shape.block_size
    return at if at > sequence.computed else 0


def _leader(sequence: Sequence, running: Iterable[Sequence], cache: KVCache) -> tuple[Sequence, int] | None:
    """The prefilling sequence that shares the longest prefix, and how much of it can be had from there. None where
    that is no more than the cache has already."""
    prefilling = [other for other in running if other.state is State.PREFILLING]
    shared = [(other, _shareable(other, sequence, cache.shape.can_trim)) for other in prefilling]
    best, upto = max(shared, key=lambda pair: pair[1], default=(None, 0))
    if best is None or upto <= best.computed:
        return None
    match = cache.find(sequence.tokens)
    gain = upto - (match.tokens if match else 0)
    return (best, upto) if gain >= cache.shape.block_size else None


def _shareable(other: Sequence, sequence: Sequence, can_trim: bool) -> int:
    upto = common_prefix(other.tokens, sequence.tokens, len(sequence.tokens) - 1)
    if can_trim:
        return upto
    return other.checkpoint_at if upto >= other.checkpoint_at else 0
