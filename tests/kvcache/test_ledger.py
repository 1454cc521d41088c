from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from fox.kvcache import Drop, Forget, KVCache, Opened, Restore, Save, Shape, Share, Spill, Trim
from tests.kvcache.memory import Memory


def cache(**more: object) -> KVCache:
    return KVCache(Shape(**{"slots": 3, "blocks": 8, "block_size": 2, **more}))  # type: ignore[arg-type]


def run(c: KVCache, tokens: list[int], **more: bool) -> Opened:
    """Open, compute the whole prompt, and check."""
    opened = c.open(tokens, **more)
    assert opened is not None
    c.advance(opened.seq, tokens[opened.reused :])
    c.check()
    return opened


def test_a_running_sequence_lends_its_prefix() -> None:
    c = cache()
    assert run(c, [1, 2, 3, 4, 5]) == Opened(0, 0)
    assert run(c, [1, 2, 3, 4, 6, 7]) == Opened(1, 4, "device")
    assert c.take_moves() == (Share(0, 1, 4, whole=False),)
    assert c.held_blocks == 3 + 2  # the two shared blocks count once


def test_a_match_goes_on_token_by_token_into_the_partial_block() -> None:
    c = cache(block_size=4)
    run(c, [1, 2, 3, 4, 5, 6, 7])
    assert run(c, [1, 2, 3, 4, 5, 6, 9]).reused == 6


def test_at_least_one_token_is_left_to_compute() -> None:
    c = cache()
    run(c, [1, 2, 3, 4])
    assert run(c, [1, 2, 3, 4]).reused == 3


def test_a_parked_sequence_is_continued_in_place() -> None:
    c = cache()
    a = run(c, [1, 2, 3, 4])
    c.close(a.seq)
    assert run(c, [1, 2, 3, 4, 5, 6]) == Opened(a.seq, 4, "device")
    assert c.take_moves() == ()


def test_a_parked_sequence_with_another_tail_is_shared_and_kept() -> None:
    c = cache()
    a = run(c, [1, 2, 3, 4, 5, 6])
    c.close(a.seq)
    b = run(c, [1, 2, 9])
    assert b.seq != a.seq
    assert run(c, [1, 2, 3, 4, 5, 6, 7]).reused == 6


def test_a_freed_tail_is_evicted_before_its_head() -> None:
    c = cache(blocks=4)
    a = run(c, [1, 2, 3, 4, 5])
    c.close(a.seq)
    run(c, [7, 8, 9])
    assert c.take_moves() == (Trim(a.seq, 4),)
    c.check()
    assert c.find([1, 2, 3, 4, 5]) is not None


def test_the_least_recently_used_parked_sequence_goes_first() -> None:
    c = cache(blocks=6)
    a, b = run(c, [1, 2, 3]), run(c, [4, 5, 6])
    c.close(a.seq)
    c.close(b.seq)
    run(c, [7, 8, 9, 10, 11, 12])
    assert c.find([1, 2, 3]) is None
    assert c.find([4, 5, 6]) is not None


def test_appending_to_a_shared_partial_block_takes_a_private_one() -> None:
    c = cache()
    a = run(c, [1, 2, 3, 4, 5])
    b = c.open([1, 2, 3, 4, 5, 6])
    assert b == Opened(1, 5, "device")
    held = c.held_blocks
    assert c.reserve(a.seq, 6)  # `a` appends to the block that `b` referred to: it is `a`'s own now
    assert c.held_blocks == held
    c.check()


def test_a_whole_pool_of_running_sequences_refuses() -> None:
    c = cache(blocks=3)
    run(c, [1, 2, 3, 4])
    assert c.open([5, 6, 7]) is None
    assert not c.reserve(0, 7)
    c.check()


def test_what_cannot_be_trimmed_is_continued_only_from_its_end() -> None:
    c = cache(can_trim=False)
    a = run(c, [1, 2, 3, 4])
    c.close(a.seq)
    assert run(c, [1, 2, 3, 9]).reused == 0
    assert run(c, [1, 2, 3, 4, 5]) == Opened(a.seq, 4, "device")


def test_a_checkpoint_is_a_past_to_go_on_from_for_what_cannot_be_trimmed() -> None:
    c = cache(can_trim=False, host_bytes=100, token_bytes=1)
    a = c.open([1, 2, 3, 4, 5])
    assert a is not None
    c.advance(a.seq, [1, 2, 3, 4])
    c.checkpoint(a.seq)
    c.advance(a.seq, [5, 6])
    c.close(a.seq)
    c.take_moves()
    again = run(c, [1, 2, 3, 4, 8])
    assert (again.reused, again.tier) == (4, "host")
    assert Restore(0, again.seq) in c.take_moves()


def test_an_evicted_sequence_is_found_again_in_the_host() -> None:
    c = cache(slots=1, host_bytes=100, token_bytes=1)
    a = run(c, [1, 2, 3, 4, 5])
    c.close(a.seq)
    run(c, [7, 8, 9])
    assert c.take_moves() == (Save(0, 0), Drop(0))
    c.close(0)
    assert run(c, [1, 2, 3, 4, 6]).tier == "host"
    assert c.take_moves() == (Save(0, 1), Drop(0), Restore(0, 0), Trim(0, 4))


def test_the_host_forgets_its_least_recently_used_state() -> None:
    c = cache(slots=1, host_bytes=7, token_bytes=1)
    for prompt in ([1, 2, 3], [4, 5, 6], [7, 8, 9], [10, 11, 12]):
        c.close(run(c, prompt).seq)
    assert Forget(0) in c.take_moves()
    c.check()
    assert c.find([1, 2, 3]) is None
    assert c.find([4, 5, 6]) is not None


def test_what_leaves_the_host_goes_to_disk_and_is_found_there() -> None:
    c = cache(slots=1, host_bytes=3, disk_bytes=3, token_bytes=1)
    for prompt in ([1, 2, 3], [4, 5, 6], [7, 8, 9]):
        c.close(run(c, prompt).seq)
    moves = c.take_moves()
    assert Spill(0, (1, 2, 3)) in moves
    assert run(c, [1, 2, 3, 4]).tier == "disk"


def test_the_end_takes_what_is_parked_to_disk() -> None:
    c = cache(host_bytes=100, disk_bytes=100, token_bytes=1)
    a = run(c, [1, 2, 3])
    c.close(a.seq)
    c.spill_all()
    assert c.take_moves() == (Save(a.seq, 0), Spill(0, (1, 2, 3)))


def test_what_lies_on_disk_from_an_earlier_run_is_found() -> None:
    c = cache(host_bytes=10, disk_bytes=10, token_bytes=1)
    assert c.adopt([1, 2, 3, 4], 4) == 0
    assert c.adopt(list(range(20)), 20) is None
    assert run(c, [1, 2, 3, 4, 5]).tier == "disk"
    c.check()


def test_a_swapped_sequence_goes_on_from_its_own_state() -> None:
    c = cache(slots=1, host_bytes=100, token_bytes=1)
    a = run(c, [1, 2, 3, 4, 5])
    key = c.swap_out(a.seq)
    assert key is not None
    run(c, [9, 9, 9])
    c.close(0, keep=False)
    back = c.open([1, 2, 3, 4, 5, 6], swapped=key)
    assert back == Opened(0, 5, "host")
    c.forget(key)
    c.check()


def test_without_room_in_the_host_nothing_is_swapped() -> None:
    c = cache(host_bytes=4, token_bytes=1)
    a = run(c, [1, 2, 3, 4, 5])
    assert c.swap_out(a.seq) is None
    c.check()


def test_without_reuse_nothing_is_matched_or_parked() -> None:
    c = cache(reuse=False)
    c.close(run(c, [1, 2, 3, 4]).seq)
    assert c.held_blocks == 0
    assert run(c, [1, 2, 3, 4, 5]).reused == 0
    assert run(cache(), [1, 2, 3], reuse=False).reused == 0


def test_a_saved_state_is_restored_whole_where_cells_are_free_for_all_of_it() -> None:
    c = cache(blocks=6, host_bytes=100, token_bytes=1)
    for first in (1, 2):  # the second drives the first to the host
        c.close(run(c, [first, *range(20, 30)]).seq)
    c.take_moves()
    again = run(c, [1, 20, 21, 9])
    assert (again.reused, again.tier) == (3, "host")
    moves = c.take_moves()
    assert moves.index(Drop(1)) < moves.index(Restore(0, again.seq)) < moves.index(Trim(again.seq, 3))


def test_a_state_too_large_to_restore_now_is_done_without() -> None:
    c = cache(blocks=8, host_bytes=100, token_bytes=1)
    c.close(run(c, [1, *range(20, 33)]).seq)
    run(c, [2, 20, 21, 22, 23, 24])
    assert run(c, [1, 20, 9]).reused == 0
    assert not [m for m in c.take_moves() if isinstance(m, Restore)]


def test_a_parked_sequence_that_is_in_its_own_followers_way_is_taken_over_and_its_tail_saved() -> None:
    c = cache(blocks=6, host_bytes=100, token_bytes=1)
    a = run(c, [1, 2, 3, 4, 5, 6, 7, 8])
    c.close(a.seq)
    assert run(c, [1, 2, 3, 9, 9, 9, 9, 9, 9]) == Opened(a.seq, 3, "device")
    assert c.take_moves() == (Save(a.seq, 0), Trim(a.seq, 3))


class LedgerMachine(RuleBasedStateMachine):
    """Requests that come, grow, leave, swap and fail, over every kind of memory: cells hold what the ledger says."""

    @initialize(
        by_copy=st.booleans(),
        can_trim=st.booleans(),
        host=st.sampled_from([0, 9, 30]),
        disk=st.sampled_from([0, 20]),
        spare=st.sampled_from([0, 2]),
    )
    def start(self, by_copy: bool, can_trim: bool, host: int, disk: int, spare: int) -> None:
        self.slots, self.context = 3, 12
        blocks = self.slots * 6 if by_copy else 6 + spare
        self.cache = cache(
            slots=3,
            blocks=blocks,
            by_copy=by_copy,
            can_trim=can_trim,
            host_bytes=host,
            disk_bytes=disk,
            token_bytes=1,
        )
        self.memory = Memory(by_copy=by_copy, can_trim=can_trim, capacity=self.cache.capacity_tokens)
        self.running: dict[int, list[int]] = {}
        self.swapped: dict[int, list[int]] = {}

    def settle(self) -> None:
        self.memory.apply(self.cache.take_moves())

    @rule(
        tokens=st.lists(st.integers(0, 1), min_size=1, max_size=11),
        reuse=st.booleans(),
        upto=st.integers(0, 11),
    )
    def open(self, tokens: list[int], reuse: bool, upto: int) -> None:
        opened = self.cache.open(tokens, reuse=reuse)
        self.settle()
        if opened is None:
            assert self.running, "a request alone always has room"
            return
        assert opened.reused < len(tokens)
        assert self.memory.tokens(opened.seq) == tokens[: opened.reused]
        self.running[opened.seq] = tokens[: max(upto, opened.reused)]
        self.compute(opened.seq, tokens[opened.reused : max(upto, opened.reused)])

    def compute(self, seq: int, tokens: list[int]) -> None:
        self.memory.compute(seq, len(self.memory.tokens(seq)), tokens)
        self.cache.advance(seq, tokens)

    @rule(data=st.data(), tokens=st.lists(st.integers(0, 1), min_size=1, max_size=3))
    def grow(self, data: st.DataObject, tokens: list[int]) -> None:
        if seq := self.pick(data, self.running):
            held = self.running[seq - 1]
            if len(held) + len(tokens) >= self.context:
                return
            if self.cache.reserve(seq - 1, len(held) + len(tokens)):
                self.settle()
                held += tokens
                self.compute(seq - 1, tokens)
            else:
                assert len(self.running) > 1, "a request alone always has room"

    @rule(data=st.data(), keep=st.booleans())
    def close(self, data: st.DataObject, keep: bool) -> None:
        if seq := self.pick(data, self.running):
            del self.running[seq - 1]
            self.cache.close(seq - 1, keep=keep)
            self.settle()

    @rule(data=st.data())
    def swap_out(self, data: st.DataObject) -> None:
        if seq := self.pick(data, self.running):
            key = self.cache.swap_out(seq - 1)
            if key is not None:
                self.swapped[key] = self.running.pop(seq - 1)
            self.settle()

    @rule(data=st.data())
    def swap_in(self, data: st.DataObject) -> None:
        if key := self.pick(data, self.swapped):
            tokens = [*self.swapped[key - 1], 1]
            opened = self.cache.open(tokens, swapped=key - 1)
            self.settle()
            assert opened or self.running, "a request alone always has room"
            if opened:
                del self.swapped[key - 1]
                self.running[opened.seq] = tokens[:-1]
                self.cache.forget(key - 1)
                self.settle()
                assert opened.reused == len(tokens) - 1

    @rule(data=st.data())
    def checkpoint(self, data: st.DataObject) -> None:
        if seq := self.pick(data, self.running):
            self.cache.checkpoint(seq - 1)
            self.settle()

    @rule(data=st.data(), upto=st.integers(0, 11))
    def trim(self, data: st.DataObject, upto: int) -> None:
        seq = self.pick(data, self.running)
        if seq and self.cache.shape.can_trim and upto < len(self.running[seq - 1]):
            self.cache.trim(seq - 1, upto)
            del self.running[seq - 1][upto:]
            self.settle()

    @rule(data=st.data())
    def reset(self, data: st.DataObject) -> None:
        if seq := self.pick(data, self.running):
            self.cache.reset(seq - 1)
            self.running[seq - 1] = []
            self.settle()

    @staticmethod
    def pick(data: st.DataObject, among: dict[int, list[int]]) -> int | None:
        """One of the keys, plus one (so that it is never false), or None."""
        return data.draw(st.sampled_from(sorted(among))) + 1 if among else None

    @invariant()
    def holds(self) -> None:
        if not hasattr(self, "cache"):
            return
        self.cache.check()
        assert self.memory.used <= self.cache.capacity_tokens
        for seq, track in self.cache.tracks.items():
            assert self.memory.tokens(seq) == track.tokens
        for seq, tokens in self.running.items():
            assert self.memory.tokens(seq) == tokens
        assert {s.key: s.tokens for s in self.cache.saved} == self.memory.saved


TestLedgerMachine = LedgerMachine.TestCase
TestLedgerMachine.settings = settings(max_examples=200, stateful_step_count=40, deadline=None)
