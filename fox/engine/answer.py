"""One accepted request while it is being answered: its sampler, its text so far, and when it is over."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from fox.engine.constraint import FORCED_TOKENS, Constraint
from fox.engine.model import Model, Sampler
from fox.engine.text import TextStream
from fox.engine.thought import Thought
from fox.generation import Delta, Failure, Finish, GenerationRequest, TokenLogprob, Usage
from fox.scheduler import Chunk, Sampled
from fox.scheduler import Sequence as Scheduled

Reason = Literal["stop", "length", "cancelled", "failed"]


class Words:
    """What tokens are to one request: which of them end its answer, and how they print."""

    def __init__(self, model: Model, request: GenerationRequest) -> None:
        self._model = model
        self._ends = frozenset(request.stop_tokens)
        shown = {model.control(spelling): spelling.encode() for spelling in request.shown}
        self._shown = {token: spelling for token, spelling in shown.items() if token is not None}

    def is_end(self, token: int) -> bool:
        return token in self._ends or self._model.is_end(token)

    def piece(self, token: int) -> bytes:
        return self._shown.get(token) or self._model.piece(token)


@dataclass(slots=True)
class Answer:
    """`limit_tokens` bounds what is generated; `attached` is the sequence that its sampler is attached to.
    `logprobs` are not told yet; the first of them begin at the characters `starts` of the text."""

    request: GenerationRequest
    scheduled: Scheduled
    prompt_tokens: int
    limit_tokens: int
    sampler: Sampler
    words: Words
    text: TextStream
    constraint: Constraint | None = None
    thought: Thought | None = None
    generated: int = 0
    unreported: int = 0
    attached: int | None = None
    guesses: bool = False
    logprobs: list[TokenLogprob] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)

    @property
    def may_end(self) -> bool:
        return self.generated >= self.request.min_tokens

    @property
    def is_free(self) -> bool:
        """Nothing but the sampler's chain decides what it says."""
        return self.constraint is None and self.thought is None

    def sit(self, chunk: Chunk | None) -> None:
        """Attach the sampler to the sequence that this step computes on, or detach it where it computes nothing."""
        if chunk is None or chunk.seq != self.attached:
            self.sampler.detach()
            self.attached = None
        if chunk is not None and chunk.wanted:
            self.attached = chunk.seq
            self.guesses |= (
                chunk.wanted > 1
            )  # from one step to the next in and out of the graph costs more than it saves
            plain = not self.guesses and self.may_end and self.request.logprobs is None and self.is_free
            self.sampler.attach(chunk.seq, alone=plain)

    def prepare(self) -> None:
        """What can be done for `sample` before the chunk is computed. May run on another thread, once a step."""
        if self.constraint:
            self.constraint.prepare()

    def sample(self, chunk: Chunk, row: int, room: int) -> Sampled:
        """The next tokens: one, or as many as the chunk's draft got right and one more; then, up to `room` in all,
        those that have no choice."""
        if self.thought and self.thought.spent:
            return self._cut_off(room)
        draft = chunk.tokens[len(chunk.tokens) - chunk.wanted + 1 :]
        tokens: list[int] = []
        for at in range(chunk.wanted):
            tokens.append(self._choose(row + at, may_end=self.generated + at >= self.request.min_tokens))
            last = self.generated + len(tokens) >= self.limit_tokens or self.words.is_end(tokens[-1])
            if last:
                return Sampled(tokens)
            if at == len(draft) or tokens[-1] != draft[at]:
                break
        return Sampled(tokens, self._forced(min(room, self.limit_tokens - self.generated) - len(tokens)))

    def _choose(self, row: int, *, may_end: bool) -> int:
        rivals = self.request.logprobs
        only = self.constraint if self.constraint and self.constraint.in_force else None
        if only:
            only.prepare()
        logits = self.sampler.logits(row) if rivals is not None else None
        token = self.sampler.sample(row, may_end=may_end, only=only)
        if logits is not None and rivals is not None:
            self.logprobs.append(self.sampler.logprobs(logits, token, rivals))
        self._note(token)
        return token

    def _forced(self, most: int) -> list[int]:
        """Not where every token is to be told with its probability."""
        if most <= 0 or not self.constraint or self.request.logprobs is not None:
            return []
        tokens = self.constraint.forced(min(most, FORCED_TOKENS))
        for token in tokens:
            self.sampler.accept(token)
            if self.thought:
                self.thought.take(self.words.piece(token))
        return tokens

    def _cut_off(self, room: int) -> Sampled:
        """The end of a thought, said for it."""
        assert self.thought is not None
        tokens = self.thought.last_words(min(room, self.limit_tokens - self.generated, FORCED_TOKENS))
        for token in tokens:
            self.sampler.accept(token)
            self._note(token)
            if self.request.logprobs is not None:
                self.logprobs.append(TokenLogprob(self.words.piece(token), 0.0))
        return Sampled(tokens[:1], tokens[1:])

    def _note(self, token: int) -> None:
        if self.words.is_end(token):
            return
        if self.constraint:
            self.constraint.take(token)
        if self.thought:
            self.thought.take(self.words.piece(token))

    def take(self, tokens: Sequence[int]) -> tuple[str, Reason | None]:
        """The text that these tokens made printable, and how the answer ended, if it did."""
        text = ""
        for token in tokens:
            self.generated += 1
            self.unreported += 1
            if self.words.is_end(token):
                del self.logprobs[len(self.starts) :]
                return text + self.text.flush(), "stop"
            if self.request.logprobs is not None:
                self.starts.append(self.text.seen)
            text += self.text.push(self.words.piece(token))
            if self.text.stopped:
                return text, "stop"
            if self.generated >= self.limit_tokens:
                return text + self.text.flush(), self._reason_at_limit
        if self._is_complete:
            return text + self.text.flush(), "stop"
        return text, None

    @property
    def _is_complete(self) -> bool:
        return self.constraint is not None and self.constraint.complete

    @property
    def _reason_at_limit(self) -> Reason:
        return "stop" if self._is_complete else "length"

    def delta(self, text: str, reason: Reason | None = None, failure: Failure | None = None) -> Delta:
        """What is told of it now; with a reason, for the last time."""
        tokens, self.unreported = self.unreported, 0
        finish = Finish(reason, self.usage, failure) if reason else None
        return Delta(self.request.id, text, tokens, finish, self._told(reason))

    def _told(self, reason: Reason | None) -> tuple[TokenLogprob, ...]:
        """Of the tokens that begin in the text given out by now; at the end of all but those a stop string took."""
        if not self.logprobs:
            return ()
        whole = reason in ("stop", "length") and not self.text.stopped
        count = len(self.starts) if whole else bisect_left(self.starts, self.text.shown)
        told = tuple(self.logprobs[:count])
        del self.logprobs[:count], self.starts[:count]
        return told

    @property
    def usage(self) -> Usage:
        return Usage(self.prompt_tokens, self.generated, self.scheduled.cached)
