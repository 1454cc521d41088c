from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from fox.errors import ContextExceeded, FoxError, InvalidRequest, QueueFull
from fox.kvcache import KVCache, Shape, Share
from fox.scheduler import Limits, Sampled, Scheduler, State, Step
from tests.kvcache.memory import Memory


def scheduler(
    *, blocks: int = 16, parallel: int = 2, context: int = 16, chunk: int = 4, depth: int = 3, **shape: object
) -> Scheduler:
    cache = KVCache(Shape(**{"slots": parallel + 1, "blocks": blocks, "block_size": 2, **shape}))  # type: ignore[arg-type]
    return Scheduler(cache, Limits(parallel, context, chunk, depth))


def run(s: Scheduler, token: int = 9) -> Step:
    step = s.plan()
    assert step is not None
    s.commit(step, {c.id: Sampled([token]) for c in step.chunks if c.wanted})
    s.check()
    return step


def test_a_prompt_longer_than_the_chunk_is_prefilled_in_pieces_and_sampled_once() -> None:
    s = scheduler()
    s.add("a", [1, 2, 3, 4, 5, 6])
    assert [(c.start, c.tokens, c.wanted) for c in run(s).chunks] == [(0, [1, 2, 3, 4], 0)]
    assert [(c.start, c.tokens, c.wanted) for c in run(s).chunks] == [(4, [5, 6], 1)]
    assert [(c.start, c.tokens, c.wanted) for c in run(s).chunks] == [(6, [9], 1)]


def test_decodes_come_first_and_a_new_prompt_joins_their_batch() -> None:
    s = scheduler()
    s.add("a", [1, 2])
    run(s)
    s.add("b", [3, 4, 5])
    assert [(c.id, c.tokens) for c in run(s).chunks] == [("a", [9]), ("b", [3, 4, 5])]


def test_the_chunk_budget_is_shared_and_the_shortest_goes_first() -> None:
    s = scheduler()
    s.add("long", [1, 2, 3, 4])
    s.add("short", [5, 6])
    assert [(c.id, c.tokens) for c in run(s).chunks] == [("short", [5, 6]), ("long", [1, 2])]


def test_a_long_prompt_is_not_starved_by_short_ones() -> None:
    s = scheduler(parallel=8, depth=0, chunk=4, blocks=80)
    s.add("long", list(range(100, 114)))
    for i in range(40):
        s.add(f"s{i}", [i, i, i])
        if any(c.id == "long" and c.wanted for c in run(s).chunks):
            return
        s.cancel(f"s{i}")
    pytest.fail("the long prompt never finished")


def test_a_high_priority_goes_before_a_shorter_prompt_of_low_priority() -> None:
    s = scheduler()
    s.add("low", [1, 2], priority=0)
    s.add("high", [3, 4, 5, 6], priority=255)
    assert [c.id for c in run(s).chunks] == ["high"]


def test_a_request_waits_while_every_sequence_is_taken() -> None:
    s = scheduler(parallel=1)
    s.add("a", [1])
    s.add("b", [2])
    assert [c.id for c in run(s).chunks] == ["a"]
    assert (s.running, s.waiting) == (1, 1)
    s.cancel("a")
    assert [c.id for c in run(s).chunks] == ["b"]


def test_a_prefix_being_computed_is_waited_for_and_shared() -> None:
    s = scheduler(parallel=3, chunk=4, blocks=24)
    shared = [1, 2, 3, 4, 5, 6]
    s.add("a", [*shared, 7])
    assert [c.id for c in run(s).chunks] == ["a"]
    s.add("b", [*shared, 8])
    s.add("c", [*shared, 9])
    assert [c.id for c in run(s).chunks] == ["a"], "b and c wait: a computes what they share"
    step = run(s)
    assert [(c.id, c.start, c.tokens) for c in step.chunks if c.id != "a"] == [("b", 6, [8]), ("c", 6, [9])]
    assert [(m.dst, m.upto) for m in step.moves if isinstance(m, Share)] == [(1, 6), (2, 6)]


def test_a_waiter_goes_on_alone_when_the_one_it_waits_for_leaves() -> None:
    s = scheduler(parallel=3, chunk=2)
    s.add("a", [1, 2, 3, 4, 5])
    run(s)
    s.add("b", [1, 2, 3, 4, 6])
    assert [c.id for c in run(s).chunks] == ["a"]
    s.cancel("a")
    assert [(c.id, c.start) for c in run(s).chunks] == [("b", 4)], "what was computed serves it all the same"


def full(**shape: object) -> Scheduler:
    """Two requests that fill a pool of four blocks and want to go on."""
    s = scheduler(blocks=4, context=8, chunk=8, **shape)
    s.add("a", [1, 2, 3])
    s.add("b", [4, 5, 6])
    run(s)
    return s


def test_the_youngest_yields_when_the_pool_is_full_and_is_computed_again() -> None:
    s = full()
    run(s)
    assert [c.id for c in run(s, token=8).chunks] == ["a"]
    assert s.counts.preemptions == 1
    s.cancel("a")
    step = run(s)
    assert [(c.id, c.start, c.tokens) for c in step.chunks] == [("b", 0, [4, 5, 6, 9, 9])]


def test_a_swapped_request_goes_on_where_it_was() -> None:
    s = full(host_bytes=100, token_bytes=1)
    run(s)
    run(s, token=8)
    assert s.counts.swaps == 1
    assert s._by_id["b"].state is State.SWAPPED
    s.cancel("a")
    assert [(c.id, c.start, c.tokens) for c in run(s).chunks] == [("b", 4, [9])]


def test_a_lost_swap_is_computed_again() -> None:
    s = full(host_bytes=100, token_bytes=1)
    run(s)
    run(s, token=8)
    s.lose([], [s._by_id["b"].swapped or 0])
    s.check()
    s.cancel("a")
    assert [(c.id, c.start, c.tokens) for c in run(s).chunks] == [("b", 0, [4, 5, 6, 9, 9])]


def test_cancelling_frees_at_once_in_every_state() -> None:
    s = scheduler(parallel=1, chunk=2, reuse=False)
    for prepare in (lambda: None, lambda: run(s), lambda: (run(s), run(s))):
        s.add("a", [1, 2, 3])
        prepare()
        s.cancel("a")
        s.cancel("a")
        assert s.idle
        s.check()
        assert s.cache.held_blocks == 0


def test_a_request_cancelled_between_plan_and_commit_is_passed_over() -> None:
    s = scheduler()
    s.add("a", [1, 2])
    step = s.plan()
    assert step is not None
    s.cancel("a")
    s.commit(step, {"a": Sampled([7])})
    s.check()
    assert s.idle


def test_a_full_queue_refuses_and_a_free_sequence_is_no_queue() -> None:
    s = scheduler(parallel=2, depth=1)
    for name in "abc":
        s.add(name, [1])
    with pytest.raises(QueueFull):
        s.add("d", [1])
    run(s)
    with pytest.raises(QueueFull):
        s.add("d", [1])


def test_a_queue_without_bound_takes_all() -> None:
    s = scheduler(depth=0)
    for i in range(1000):
        s.add(str(i), [1])
    assert s.waiting == 1000


@pytest.mark.parametrize(
    ("id_", "tokens", "error"),
    [
        ("a", [], InvalidRequest),
        ("known", [1], InvalidRequest),
        ("a", [1] * 16, ContextExceeded),
        ("a", [1] * 99, ContextExceeded),
    ],
)
def test_impossible_requests_are_refused_and_change_nothing(
    id_: str, tokens: list[int], error: type[FoxError]
) -> None:
    s = scheduler()
    s.add("known", [1])
    with pytest.raises(error):
        s.add(id_, tokens)
    assert s.waiting == 1
    s.check()


def test_while_somebody_decodes_a_chunk_fits_the_target() -> None:
    s = scheduler(chunk=1000, context=5000, blocks=5000)
    s.add("a", [1])
    run(s)
    s.commit(s.plan(), {"a": Sampled([9])}, elapsed_s=0.02)  # type: ignore[arg-type]
    s.add("b", list(range(10, 3000)))
    first = s.plan()
    assert first is not None
    assert len(first.chunks[1].tokens) == 32, "carefully at first"
    s.commit(first, {"a": Sampled([9])}, elapsed_s=0.02 + 0.032)  # a prompt token costs 1 ms
    second = s.plan()
    assert second is not None
    assert len(second.chunks[1].tokens) == 200, "as many as fit 220 ms with the decode"


def test_alone_a_prefill_takes_the_whole_batch() -> None:
    s = scheduler(chunk=1000, context=5000, blocks=5000)
    s.add("b", list(range(10, 3000)))
    assert len(run(s).chunks[0].tokens) == 1000


def test_what_cannot_be_trimmed_is_saved_before_the_end_of_its_prompt() -> None:
    s = scheduler(context=40, blocks=40, chunk=40, can_trim=False, host_bytes=100, token_bytes=1)
    s.add("a", list(range(20)))
    assert [(c.start, len(c.tokens), c.wanted) for c in run(s).chunks] == [(0, 12, 0)]
    assert [(c.start, len(c.tokens), c.wanted) for c in run(s).chunks] == [(12, 8, 1)]
    s.cancel("a")
    s.add("b", [*range(15), 99, 98])
    assert [c.start for c in run(s).chunks] == [12]


def test_a_shift_keeps_the_head_and_computes_the_rest_again() -> None:
    s = scheduler()
    s.add("a", [1, 2, 3, 4])
    run(s)
    s.shift("a", 1, 2)
    s.check()
    assert [(c.start, c.tokens) for c in run(s).chunks] == [(1, [4, 9])]


def test_tokens_without_a_choice_are_computed_with_the_one_before_them() -> None:
    s = scheduler()
    s.add("a", [1, 2])
    step = s.plan()
    assert step is not None
    s.commit(step, {"a": Sampled([3], [4, 5])})
    s.check()
    assert [(c.start, c.tokens, c.wanted) for c in run(s).chunks] == [(2, [3, 4, 5], 1)]


def test_a_right_guess_gives_several_tokens_in_one_step_and_a_wrong_one_none_too_many() -> None:
    cache = KVCache(Shape(slots=2, blocks=40, block_size=2))
    s = Scheduler(cache, Limits(2, 60, spec_length=3))
    s.add("a", [1, 2, 3, 4, 5, 1, 2])
    run(s, token=3)
    step = s.plan()
    assert step is not None
    assert (step.chunks[0].tokens, step.chunks[0].wanted) == ([3, 4, 5, 1], 4)
    s.commit(step, {"a": Sampled([4, 5, 7])})
    s.check()
    assert s._by_id["a"].tokens == [1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 7]
    assert (s.speculation.proposed, s.speculation.accepted) == (3, 2)
    again = s.plan()
    assert again is not None
    assert (again.chunks[0].start, again.chunks[0].tokens[0]) == (10, 7)


def test_a_hint_is_followed_from_where_the_answer_meets_it() -> None:
    cache = KVCache(Shape(slots=2, blocks=40, block_size=2))
    s = Scheduler(cache, Limits(2, 60, spec_length=3, spec_ngram=0))
    s.add("a", [1, 2, 3], hint=[5, 6, 7, 8, 9])
    s.add("b", [4])
    run(s, token=6)
    step = s.plan()
    assert step is not None
    assert {c.id: (c.tokens, c.wanted) for c in step.chunks} == {"a": ([6, 7, 8, 9], 4), "b": ([6], 1)}
    s.commit(step, {"a": Sampled([7, 4]), "b": Sampled([4])})
    s.check()
    step = s.plan()
    assert step is not None
    assert [c.tokens for c in step.chunks] == [[4], [4]], "a has left what was foretold"


class SchedulerMachine(RuleBasedStateMachine):
    """Whatever arrives, leaves, fails to fit and is lost, over every kind of memory: each token is sampled after the
    whole of its own past, and every request ends once."""

    @initialize(
        by_copy=st.booleans(),
        can_trim=st.booleans(),
        host=st.sampled_from([0, 9, 40]),
        spec=st.sampled_from([0, 2]),
        reuse=st.booleans(),
        spare=st.sampled_from([0, 3]),
    )
    def start(self, by_copy: bool, can_trim: bool, host: int, spec: int, reuse: bool, spare: int) -> None:
        shape = {
            "by_copy": by_copy,
            "can_trim": can_trim,
            "host_bytes": host,
            "token_bytes": 1,
            "reuse": reuse,
        }
        cache = KVCache(Shape(slots=4, blocks=24 if by_copy else 6 + spare, block_size=2, **shape))  # type: ignore[arg-type]
        self.s = Scheduler(cache, Limits(3, 12, 5, 4, spec_length=spec if can_trim else 0, spec_ngram=1))
        self.memory = Memory(by_copy=by_copy, can_trim=can_trim, capacity=cache.capacity_tokens)
        self.open: dict[str, list[int]] = {}
        self.count = 0

    @rule(
        tokens=st.lists(st.integers(0, 1), max_size=13),
        priority=st.sampled_from([0, 128, 255]),
        reuse=st.booleans(),
        hint=st.lists(st.integers(0, 1), max_size=4),
    )
    def add(self, tokens: list[int], priority: int, reuse: bool, hint: list[int]) -> None:
        self.count += 1
        try:
            self.s.add(str(self.count), list(tokens), priority=priority, reuse=reuse, hint=hint)
        except FoxError:
            return
        self.open[str(self.count)] = tokens

    @precondition(lambda self: self.open)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        id_ = data.draw(st.sampled_from(sorted(self.open)))
        self.s.cancel(id_)
        del self.open[id_]

    @rule(fits=st.booleans(), lost=st.booleans(), token=st.integers(0, 1), force=st.integers(0, 3))
    def step(self, fits: bool, lost: bool, token: int, force: int) -> None:
        step = self.s.plan()
        if step is None:
            assert not self.open
            return
        self.memory.apply(step.moves)
        if lost and self.lose(step):
            return
        if not fits and self.s.yield_youngest():
            return
        sampled = {}
        for chunk in step.chunks:
            self.memory.compute(chunk.seq, chunk.start, chunk.tokens)
            if chunk.wanted:
                drafted = chunk.tokens[len(chunk.tokens) - chunk.wanted + 1 :]
                past = self.memory.tokens(chunk.seq)
                assert past[: len(past) - len(drafted)] == self.open[chunk.id], (
                    "sampled after the whole of its past"
                )
                tokens = self.verify(drafted, token)
                room = max(0, 12 - len(self.open[chunk.id]) - len(tokens))
                sampled[chunk.id] = Sampled(tokens, [1] * min(force, room))
                self.open[chunk.id] += tokens + sampled[chunk.id].forced
        ended = [id_ for id_ in sampled if len(self.open[id_]) >= 12]
        self.s.commit(step, sampled, ended, elapsed_s=0.01)
        for id_ in ended:
            del self.open[id_]

    @staticmethod
    def verify(drafted: list[int], token: int) -> list[int]:
        """A model that always says `token`: it accepts drafts that say the same."""
        right = next((i for i, d in enumerate(drafted) if d != token), len(drafted))
        return [token] * (right + 1)

    def lose(self, step: Step) -> bool:
        """Every restore of this step fails, and every save."""
        from fox.kvcache import Restore, Save

        seqs = [m.seq for m in step.moves if isinstance(m, Restore)]
        keys = [m.key for m in step.moves if isinstance(m, Save) and m.key in self.memory.saved]
        self.s.lose(seqs, keys)
        return bool(seqs or keys)

    @invariant()
    def holds(self) -> None:
        if not hasattr(self, "s"):
            return
        self.s.check()
        assert self.s.running + self.s.waiting == len(self.open)


TestSchedulerMachine = SchedulerMachine.TestCase
TestSchedulerMachine.settings = settings(max_examples=200, stateful_step_count=40, deadline=None)
