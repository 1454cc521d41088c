from __future__ import annotations

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from fox.kvcache import KVCache


def test_a_sequence_holds_whole_blocks() -> None:
    cache = KVCache(blocks=4, block_size=2)
    assert cache.reserve(0, 3)
    assert cache.usage == 0.5
    assert cache.reserve(0, 4)
    assert cache.usage == 0.5


def test_a_refused_reservation_changes_nothing() -> None:
    cache = KVCache(blocks=2, block_size=2)
    assert cache.reserve(0, 2)
    assert not cache.reserve(1, 3)
    assert cache.usage == 0.5
    assert cache.can_reserve(1, 2)


def test_released_blocks_can_be_reserved_again() -> None:
    cache = KVCache(blocks=1, block_size=2)
    assert cache.reserve(0, 1)
    cache.release(0)
    cache.release(0)
    assert cache.usage == 0
    assert cache.reserve(1, 2)


class LedgerMachine(RuleBasedStateMachine):
    """Whatever is reserved and released, blocks are neither lost nor made."""

    def __init__(self) -> None:
        super().__init__()
        self.cache = KVCache(blocks=6, block_size=2)
        self.wanted: dict[int, int] = {}

    @rule(seq=st.integers(0, 3), tokens=st.integers(0, 14))
    def reserve(self, seq: int, tokens: int) -> None:
        expected = self.cache.can_reserve(seq, tokens)
        assert self.cache.reserve(seq, tokens) is expected
        if expected:
            self.wanted[seq] = max(tokens, self.wanted.get(seq, 0))

    @rule(seq=st.integers(0, 3))
    def release(self, seq: int) -> None:
        self.cache.release(seq)
        self.wanted.pop(seq, None)

    @invariant()
    def blocks_add_up(self) -> None:
        self.cache.check()
        held = sum(-(-tokens // 2) for tokens in self.wanted.values())
        assert self.cache.usage == pytest.approx(held / 6)


TestLedgerMachine = LedgerMachine.TestCase
