"""The policy. Decodes first, then prefill chunks within the step's budget: the least remaining first, with ageing.

Requests whose prefix is being computed for another wait for it and share it. When the pool is full the youngest
yields, by swap to the host where it has room, else to be computed again; nothing it said is lost or said twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from fox.errors import InvalidRequest
from fox.kvcache import KVCache
from fox.scheduler.joining import checkpoint_at, waits
from fox.scheduler.limits import Counts, Limits
from fox.scheduler.pace import Pace
from fox.scheduler.plan import NOTHING, Chunk, Sampled, Step
from fox.scheduler.sequence import MIDDLE_PRIORITY, Sequence, State
from fox.scheduler.speculation import Guesser, Speculation

AGEING = 0.25  # a prompt token of one's own waits for this part of each token served to others


class Scheduler:
    """Owned by the step thread. `add` and `cancel` come from outside, `plan` and `commit` alternate."""

    def __init__(self, cache: KVCache, limits: Limits, guesser: Guesser | None = None) -> None:
        assert cache.capacity_tokens >= limits.context_tokens, "one whole context must fit the pool"
        self.cache = cache
        self.limits = limits
        self.pace = Pace(limits.step_target_s)
        self.counts = Counts()
        self.speculation = Speculation(limits.spec_ngram, limits.spec_length, guesser)
        self._queue: list[Sequence] = []  # waiting and swapped
        self._running: list[Sequence] = []  # oldest first
        self._by_id: dict[str, Sequence] = {}
        self._served_tokens = 0

    @property
    def running(self) -> int:
        return len(self._running)

    @property
    def waiting(self) -> int:
        return len(self._queue)

    @property
    def idle(self) -> bool:
        return not self._by_id

    def add(
        self,
        id_: str,
        tokens: list[int],
        *,
        priority: int = MIDDLE_PRIORITY,
        reuse: bool = True,
        hint: list[int] | None = None,
    ) -> Sequence:
        """Queue a prompt. `hint`: tokens that the answer may well repeat. Raises ContextExceeded, QueueFull, and
        InvalidRequest for an empty one or a known id."""
        if id_ in self._by_id:
            raise InvalidRequest(f"a request with the id `{id_}` is running", "id")
        self.limits.refuse(tokens, len(self._by_id))
        sequence = Sequence(id_, tokens, priority, reuse, self._served_tokens)
        self._queue.append(sequence)
        self._by_id[id_] = sequence
        if hint:
            self.speculation.hint(sequence, hint)
        return sequence

    def cancel(self, id_: str) -> None:
        """Forget a request, in whatever state. One that is not there is no error."""
        if sequence := self._by_id.get(id_):
            self._finish(sequence)

    def plan(self) -> Step | None:
        """The next step, or None when there is nothing to compute."""
        chunks = [*self._decodes(), *self._prefills()]
        while not chunks and self.yield_youngest():
            chunks = self._prefills()
        if not chunks:
            assert not self._by_id, "requests are open and nothing can run"
            return None
        return Step(self.cache.take_moves(), tuple(chunks))

    def commit(
        self, step: Step, sampled: Mapping[str, Sampled], ended: Iterable[str] = (), elapsed_s: float = 0.0
    ) -> None:
        """The step was computed in `elapsed_s`. `sampled`: the next tokens of each chunk that wanted any. `ended`: the
        requests whose answer is complete. A request cancelled since the plan is passed over."""
        decodes = prompt_tokens = 0
        for chunk in step.chunks:
            sequence = self._by_id.get(chunk.id)
            if sequence is None:
                continue
            if sequence.state is State.DECODING:
                decodes += len(chunk.tokens)
            else:
                prompt_tokens += len(chunk.tokens)
            self._advance(sequence, chunk, sampled.get(chunk.id, NOTHING))
        self._served_tokens += prompt_tokens
        if elapsed_s:
            self.pace.learn(decodes, prompt_tokens, elapsed_s)
        for id_ in ended:
            self.cancel(id_)

    def yield_youngest(self) -> bool:
        """Send the youngest running sequence back to the queue. False when it is the only one."""
        if len(self._running) < 2:
            return False
        self._preempt(self._running[-1])
        return True

    def lose(self, seqs: Iterable[int], keys: Iterable[int]) -> None:
        """Restores into `seqs` and saves under `keys` failed: what they stood for is computed again."""
        lost = set(seqs)
        for sequence in self._running:
            if sequence.seq in lost:
                self.cache.reset(sequence.seq)
                sequence.computed = sequence.cached = 0
        for key in keys:
            self.cache.forget(key)
            for sequence in self._queue:
                if sequence.swapped == key:
                    sequence.swapped = None
                    sequence.become(State.WAITING)

    def shift(self, id_: str, keep: int, discard: int) -> None:
        """Roll a decoding sequence's window: its tokens from `keep` on lose their first `discard`. What follows them
        is computed again, so that it is what a fresh prompt of these tokens would be."""
        sequence = self._by_id[id_]
        del sequence.tokens[keep : keep + discard]
        assert sequence.seq is not None
        if self.cache.shape.can_trim:
            sequence.computed = min(keep, sequence.computed)
            self.cache.trim(sequence.seq, sequence.computed)
        else:
            sequence.computed = 0
            self.cache.reset(sequence.seq)
        self.speculation.forget(id_)
        sequence.become(State.PREFILLING)

    def check(self) -> None:
        """The invariants over queue, running list and cache."""
        self.cache.check()
        assert len(self._queue) + len(self._running) == len(self._by_id)
        assert len(self._running) <= self.limits.parallel
        assert all(s.state in (State.WAITING, State.SWAPPED) and s.seq is None for s in self._queue)
        assert all((s.swapped is not None) is (s.state is State.SWAPPED) for s in self._queue)
        assert all(s.state in (State.PREFILLING, State.DECODING) for s in self._running)
        assert all(s.remaining >= 1 for s in self._by_id.values())

    # what a step holds

    def _decodes(self) -> list[Chunk]:
        """What each decoding sequence said last, oldest first; the youngest runner yields for it."""
        self._guess()
        for sequence in list(self._running):
            while sequence.seq is not None and not self._reserve(sequence, sequence.remaining):
                self._preempt(self._running[-1])
        return [self._chunk(s, s.remaining) for s in self._running if s.state is State.DECODING]

    def _reserve(self, sequence: Sequence, tokens: int) -> bool:
        assert sequence.seq is not None
        end = min(len(sequence.tokens), sequence.computed + tokens)
        if sequence.draft and not self.cache.reserve(sequence.seq, end + len(sequence.draft)):
            sequence.draft = []
        return self.cache.reserve(sequence.seq, end)

    def _guess(self) -> None:
        """A draft for each decoding sequence, while few run."""
        for sequence in self._running:
            sequence.draft = []
        if self.limits.spec_length and len(self._running) <= self.limits.spec_parallel:
            decoding = [s for s in self._running if s.state is State.DECODING]
            self.speculation.guess(decoding, self.limits.context_tokens)

    def _prefills(self) -> list[Chunk]:
        decoding = any(s.state is State.DECODING for s in self._running)
        budget = self.pace.chunk_tokens(self.limits.prefill_chunk, decoding=decoding)
        chunks: list[Chunk] = []
        for sequence in self._next_prefills():
            if not self._reserve(sequence, budget):
                continue  # it keeps what it has and goes on when there is room
            chunks.append(self._chunk(sequence, budget))
            budget -= len(chunks[-1].tokens)
            if budget <= 0:
                break
        return chunks

    def _next_prefills(self) -> Iterator[Sequence]:
        """Those in the middle of their prompt and those that can be admitted, by what remains of them and their age."""
        candidates = [s for s in self._running if s.state is State.PREFILLING] + self._queue
        blocked = False
        for sequence in sorted(candidates, key=self._urgency):
            if sequence.state is State.PREFILLING:
                yield sequence
            elif not blocked and not waits(sequence, self._running, self.cache):
                if self._admit(sequence):
                    yield sequence
                else:
                    blocked = True  # nobody overtakes the one that waits for room

    def _urgency(self, sequence: Sequence) -> float:
        waited = self._served_tokens - sequence.arrived
        return sequence.remaining / sequence.weight - AGEING * sequence.weight * waited

    def _admit(self, sequence: Sequence) -> bool:
        if len(self._running) >= self.limits.parallel:
            return False
        opened = self.cache.open(sequence.tokens, reuse=sequence.reuse, swapped=sequence.swapped)
        if opened is None:
            return False
        self._queue.remove(sequence)
        self._running.append(sequence)
        sequence.seq, sequence.computed = opened.seq, opened.reused
        if sequence.swapped is not None:
            self.cache.forget(sequence.swapped)
            sequence.swapped = None
        elif not sequence.preemptions:
            sequence.cached, sequence.tier = opened.reused, opened.tier
        sequence.checkpoint_at = checkpoint_at(sequence, self.cache.shape)
        sequence.become(State.PREFILLING)
        return True

    def _chunk(self, sequence: Sequence, budget: int) -> Chunk:
        assert sequence.seq is not None
        start = sequence.computed
        end = min(start + budget, len(sequence.tokens))
        if start < sequence.checkpoint_at < end:
            end = sequence.checkpoint_at
        draft = sequence.draft if sequence.state is State.DECODING else []
        wanted = 1 + len(draft) if end == len(sequence.tokens) else 0
        return Chunk(sequence.id, sequence.seq, start, sequence.tokens[start:end] + draft, wanted)

    # what came of it

    def _advance(self, sequence: Sequence, chunk: Chunk, sampled: Sampled) -> None:
        drafted = max(0, chunk.wanted - 1)
        right = len(sampled.tokens) - 1 if drafted else 0
        held = chunk.tokens[: len(chunk.tokens) - drafted + right]
        self.cache.advance(chunk.seq, held)
        sequence.computed = chunk.start + len(held)
        if drafted:
            self._judge(sequence, drafted, right)
        if sequence.computed == sequence.checkpoint_at:
            self.cache.checkpoint(chunk.seq)
        if chunk.wanted:
            sequence.tokens += [*sampled.tokens, *sampled.forced]
            if sequence.state is State.PREFILLING:
                sequence.become(State.DECODING)

    def _judge(self, sequence: Sequence, drafted: int, right: int) -> None:
        if right < drafted:
            assert sequence.seq is not None
            self.cache.trim(sequence.seq, sequence.computed)
        self.speculation.judge(sequence.id, drafted, right)

    def _preempt(self, sequence: Sequence) -> None:
        """Back to the queue, tokens kept: its state goes to the host, or is computed again when there is room."""
        assert sequence.seq is not None
        self._running.remove(sequence)
        sequence.swapped = self.cache.swap_out(sequence.seq)
        if sequence.swapped is None:
            self.cache.close(sequence.seq, keep=False)
            sequence.computed = 0
        else:
            self.counts.swaps += 1
        sequence.seq = None
        sequence.draft = []
        sequence.preemptions += 1
        self.counts.preemptions += 1
        sequence.become(State.WAITING if sequence.swapped is None else State.SWAPPED)
        self._queue.insert(0, sequence)

    def _finish(self, sequence: Sequence) -> None:
        if sequence.seq is None:
            self._queue.remove(sequence)
            if sequence.swapped is not None:
                self.cache.forget(sequence.swapped)
        else:
            self._running.remove(sequence)
            self.cache.close(sequence.seq)
        sequence.become(State.FINISHED)
        self.speculation.forget(sequence.id)
        del self._by_id[sequence.id]
