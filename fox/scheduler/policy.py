"""The policy: decodes first, then prefill chunks in order of arrival; the youngest yields when the pool is full."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from fox.errors import ContextExceeded, InvalidRequest, QueueFull
from fox.kvcache import Drop, KVCache, Move
from fox.scheduler.plan import Chunk, Step
from fox.scheduler.sequence import Sequence, State


@dataclass(frozen=True)
class Limits:
    """`parallel` sequences at once, `prefill_chunk` prompt tokens a step, `queue_depth` waiting requests (0: no bound),
    `context_tokens` for prompt and answer of one request together."""

    parallel: int
    context_tokens: int
    prefill_chunk: int = 512
    queue_depth: int = 512


class Scheduler:
    """Owned by the step thread. `add` and `cancel` come from outside, `plan` and `commit` alternate."""

    def __init__(self, cache: KVCache, limits: Limits) -> None:
        assert cache.capacity_tokens >= limits.context_tokens, "one whole context must fit the pool"
        self.cache = cache
        self.limits = limits
        self._waiting: deque[Sequence] = deque()
        self._running: list[Sequence] = []  # oldest first
        self._by_id: dict[str, Sequence] = {}
        self._free_seqs = list(range(limits.parallel - 1, -1, -1))
        self._moves: list[Move] = []

    @property
    def running(self) -> int:
        return len(self._running)

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    @property
    def idle(self) -> bool:
        return not self._by_id

    def add(self, id_: str, tokens: list[int]) -> Sequence:
        """Queue a prompt. Raises ContextExceeded, QueueFull, and InvalidRequest for an empty one or a known id."""
        self._refuse(id_, tokens)
        sequence = Sequence(id_, tokens, len(tokens))
        self._waiting.append(sequence)
        self._by_id[id_] = sequence
        return sequence

    def cancel(self, id_: str) -> None:
        """Forget a request, in whatever state. One that is not there is no error."""
        if sequence := self._by_id.get(id_):
            self._finish(sequence)

    def plan(self) -> Step | None:
        """The next step, or None when there is nothing to compute."""
        self._reserve_decodes()
        decodes = [self._chunk(s, 1) for s in self._running if s.state is State.DECODING]
        chunks = decodes + self._prefills()
        if not chunks:
            assert not self._by_id, "requests are open and nothing can run"
            return None
        moves, self._moves = tuple(self._moves), []
        return Step(moves, tuple(chunks))

    def commit(self, step: Step, sampled: Mapping[str, int], ended: Iterable[str] = ()) -> None:
        """The step was computed: `sampled` holds the next token of each chunk that asked for one, `ended` the requests
        whose answer is complete. A request cancelled since the plan is passed over."""
        for chunk in step.chunks:
            if sequence := self._by_id.get(chunk.id):
                sequence.computed = chunk.start + len(chunk.tokens)
                if chunk.sample:
                    self._extend(sequence, sampled[chunk.id])
        for id_ in ended:
            self.cancel(id_)

    def yield_youngest(self) -> bool:
        """Send the youngest running sequence back to the queue. False when it is the only one."""
        if len(self._running) < 2:
            return False
        self._preempt(self._running[-1])
        return True

    def check(self) -> None:
        """The invariants over queue, running list and cache."""
        self.cache.check()
        assert len(self._waiting) + len(self._running) == len(self._by_id)
        held = {s.seq for s in self._running}
        assert held | set(self._free_seqs) == set(range(self.limits.parallel))
        assert len(held) + len(self._free_seqs) == self.limits.parallel
        assert all(s.state is State.WAITING and s.seq is None and s.computed == 0 for s in self._waiting)
        assert all(s.remaining == 1 for s in self._running if s.state is State.DECODING)

    def _refuse(self, id_: str, tokens: list[int]) -> None:
        if not tokens:
            raise InvalidRequest("the prompt is empty", "messages")
        if id_ in self._by_id:
            raise InvalidRequest(f"a request with the id `{id_}` is running", "id")
        if len(tokens) >= (limit := self.limits.context_tokens):
            message = f"the prompt has {len(tokens)} tokens, the context holds {limit} with the answer"
            raise ContextExceeded(message, "messages", len(tokens), limit)
        depth = self.limits.queue_depth
        if depth and len(self._waiting) - len(self._free_seqs) >= depth:
            raise QueueFull(depth)

    def _reserve_decodes(self) -> None:
        """Room for the next token of each decoding sequence, oldest first; the youngest runner yields for it."""
        for sequence in list(self._running):
            while sequence.seq is not None and not self.cache.reserve(sequence.seq, len(sequence.tokens)):
                self._preempt(self._running[-1])

    def _prefills(self) -> list[Chunk]:
        budget = self.limits.prefill_chunk
        chunks = []
        for sequence in self._prefilling():
            chunks.append(self._chunk(sequence, budget))
            budget -= len(chunks[-1].tokens)
            if budget == 0:
                break
        return chunks

    def _prefilling(self) -> Iterable[Sequence]:
        """Those in the middle of their prompt, then those the queue can still admit."""
        yield from [s for s in self._running if s.state is State.PREFILLING]
        while self._waiting and self._free_seqs and self._admit(self._waiting[0]):
            yield self._running[-1]

    def _admit(self, sequence: Sequence) -> bool:
        seq = self._free_seqs[-1]
        if not self.cache.reserve(seq, len(sequence.tokens) + 1):
            return False
        self._free_seqs.pop()
        self._waiting.popleft()
        self._running.append(sequence)
        sequence.seq = seq
        sequence.become(State.PREFILLING)
        return True

    def _chunk(self, sequence: Sequence, budget: int) -> Chunk:
        assert sequence.seq is not None
        start = sequence.computed
        tokens = sequence.tokens[start : start + budget]
        return Chunk(sequence.id, sequence.seq, start, tokens, start + len(tokens) == len(sequence.tokens))

    def _extend(self, sequence: Sequence, token: int) -> None:
        sequence.tokens.append(token)
        if sequence.state is State.PREFILLING:
            sequence.become(State.DECODING)

    def _preempt(self, sequence: Sequence) -> None:
        """Back to the head of the queue, tokens kept, cells dropped: it is computed again when there is room."""
        self._leave(sequence)
        sequence.computed = 0
        sequence.preemptions += 1
        sequence.become(State.WAITING)
        self._waiting.appendleft(sequence)

    def _finish(self, sequence: Sequence) -> None:
        if sequence.state is State.WAITING:
            self._waiting.remove(sequence)
        else:
            self._leave(sequence)
        sequence.become(State.FINISHED)
        del self._by_id[sequence.id]

    def _leave(self, sequence: Sequence) -> None:
        assert sequence.seq is not None
        self._running.remove(sequence)
        self.cache.release(sequence.seq)
        self._free_seqs.append(sequence.seq)
        self._moves.append(Drop(sequence.seq))
        sequence.seq = None
