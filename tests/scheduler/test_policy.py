from __future__ import annotations

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from fox.errors import ContextExceeded, FoxError, InvalidRequest, QueueFull
from fox.kvcache import Drop, KVCache
from fox.scheduler import Limits, Scheduler, Step


def scheduler(
    *, blocks: int = 8, parallel: int = 2, context: int = 16, chunk: int = 4, depth: int = 3
) -> Scheduler:
    return Scheduler(KVCache(blocks, block_size=2), Limits(parallel, context, chunk, depth))


def run(s: Scheduler, token: int = 9) -> Step:
    step = s.plan()
    assert step is not None
    s.commit(step, {c.id: token for c in step.chunks if c.sample})
    s.check()
    return step


def test_a_prompt_longer_than_the_chunk_is_prefilled_in_pieces_and_sampled_once() -> None:
    s = scheduler()
    s.add("a", [1, 2, 3, 4, 5, 6])
    assert [(c.start, c.tokens, c.sample) for c in run(s).chunks] == [(0, [1, 2, 3, 4], False)]
    assert [(c.start, c.tokens, c.sample) for c in run(s).chunks] == [(4, [5, 6], True)]
    assert [(c.start, c.tokens, c.sample) for c in run(s).chunks] == [(6, [9], True)]


def test_decodes_come_first_and_a_new_prompt_joins_their_batch() -> None:
    s = scheduler()
    s.add("a", [1, 2])
    run(s)
    s.add("b", [3, 4, 5])
    assert [(c.id, c.tokens) for c in run(s).chunks] == [("a", [9]), ("b", [3, 4, 5])]


def test_the_chunk_budget_is_shared_by_all_prompts_of_a_step() -> None:
    s = scheduler()
    s.add("a", [1, 2, 3])
    s.add("b", [4, 5, 6])
    assert [(c.id, c.tokens, c.sample) for c in run(s).chunks] == [("a", [1, 2, 3], True), ("b", [4], False)]


def test_a_request_waits_while_every_sequence_is_taken() -> None:
    s = scheduler(parallel=1)
    s.add("a", [1])
    s.add("b", [2])
    assert [c.id for c in run(s).chunks] == ["a"]
    assert (s.running, s.waiting) == (1, 1)
    s.cancel("a")
    step = run(s)
    assert step.moves == (Drop(0),)
    assert [c.id for c in step.chunks] == ["b"]


def test_the_youngest_yields_when_the_pool_is_full_and_is_computed_again() -> None:
    s = scheduler(blocks=4, context=8, chunk=8)
    s.add("a", [1, 2, 3])
    s.add("b", [4, 5, 6])
    run(s)
    run(s)  # both now hold 2 blocks of 2 tokens, full
    step = run(s, token=8)
    assert [c.id for c in step.chunks] == ["a"]
    assert step.moves == (Drop(1),)
    s.cancel("a")
    assert [(c.id, c.start, c.tokens) for c in run(s).chunks] == [("b", 0, [4, 5, 6, 9, 9])]


def test_cancelling_frees_at_once_in_every_state() -> None:
    s = scheduler(parallel=1, chunk=2)
    for prepare in (lambda: None, lambda: run(s), lambda: (run(s), run(s))):
        s.add("a", [1, 2, 3])
        prepare()
        s.cancel("a")
        s.cancel("a")
        assert s.idle
        s.check()
        assert s.cache.usage == 0


def test_a_request_cancelled_between_plan_and_commit_is_passed_over() -> None:
    s = scheduler()
    s.add("a", [1, 2])
    step = s.plan()
    assert step is not None
    s.cancel("a")
    s.commit(step, {"a": 7})
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


class SchedulerMachine(RuleBasedStateMachine):
    """Whatever arrives, leaves and fails to fit: each answer is computed token by token at the right positions."""

    def __init__(self) -> None:
        super().__init__()
        self.s = scheduler(blocks=9, parallel=3, context=12, chunk=5, depth=4)
        self.cells: dict[int, list[int]] = {}
        self.open: dict[str, list[int]] = {}
        self.count = 0

    @rule(size=st.integers(0, 14))
    def add(self, size: int) -> None:
        self.count += 1
        tokens = list(range(100 * self.count, 100 * self.count + size))
        try:
            self.s.add(str(self.count), list(tokens))
        except FoxError:
            return
        self.open[str(self.count)] = tokens

    @precondition(lambda self: self.open)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        id_ = data.draw(st.sampled_from(sorted(self.open)))
        self.s.cancel(id_)
        del self.open[id_]

    @rule(fits=st.booleans())
    def step(self, fits: bool) -> None:
        step = self.s.plan()
        if step is None:
            assert not self.open
            return
        for move in step.moves:
            self.cells.pop(move.seq, None)
        if not fits and self.s.yield_youngest():
            return
        for chunk in step.chunks:
            cells = self.cells.setdefault(chunk.seq, [])
            assert chunk.start == len(cells), "cells are computed in order, none twice, none left out"
            cells += chunk.tokens
            if chunk.sample:
                assert cells == self.open[chunk.id], "a token is sampled after the whole of its own past"
        sampled = {chunk.id: 7 for chunk in step.chunks if chunk.sample}
        for id_ in sampled:
            self.open[id_].append(7)
        ended = [id_ for id_ in sampled if len(self.open[id_]) >= 12]
        self.s.commit(step, sampled, ended)
        for id_ in ended:
            del self.open[id_]

    @invariant()
    def holds(self) -> None:
        self.s.check()
        assert self.s.running + self.s.waiting == len(self.open)
        assert (
            sum(map(len, self.cells.values())) <= 9 * 2 + 12
        )  # dropped cells may linger until the next step


TestSchedulerMachine = SchedulerMachine.TestCase
