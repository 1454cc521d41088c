"""Requests that share a prefix with one being prefilled wait for it and then share it: it is computed once."""

from __future__ import annotations

from collections.abc import Iterable

from fox.kvcache import KVCache
from fox.kvcache.prefix import common_prefix
from fox.scheduler.sequence import Sequence, State


def leader(sequence: Sequence, running: Iterable[Sequence], cache: KVCache) -> tuple[Sequence, int] | None:
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
