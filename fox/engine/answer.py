"""One accepted request while it is being answered: its sampler, its text so far, and when it is over."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from fox.engine.model import Model, Sampler
from fox.engine.text import TextStream
from fox.generation import Delta, Failure, Finish, GenerationRequest, TokenLogprob, Usage
from fox.scheduler import Chunk
from fox.scheduler import Sequence as Scheduled

Reason = Literal["stop", "length", "cancelled", "failed"]


@dataclass(slots=True)
class Answer:
    """`limit_tokens` bounds what is generated; `attached` is the sequence that its sampler is attached to.
    `logprobs` are not told yet; the first of them begin at the characters `starts` of the text."""

    request: GenerationRequest
    scheduled: Scheduled
    prompt_tokens: int
    limit_tokens: int
    sampler: Sampler
    text: TextStream
    generated: int = 0
    unreported: int = 0
    attached: int | None = None
    guesses: bool = False
    logprobs: list[TokenLogprob] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)

    @property
    def may_end(self) -> bool:
        return self.generated >= self.request.min_tokens

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
            plain = not self.guesses and self.may_end and self.request.logprobs is None
            self.sampler.attach(chunk.seq, alone=plain)

    def sample(self, chunk: Chunk, row: int, is_end: Callable[[int], bool]) -> list[int]:
        """The next tokens: one, or as many as the chunk's draft got right and one more."""
        draft = chunk.tokens[len(chunk.tokens) - chunk.wanted + 1 :]
        tokens: list[int] = []
        for at in range(chunk.wanted):
            may_end = self.generated + at >= self.request.min_tokens
            tokens.append(self.sampler.sample(row + at, may_end=may_end))
            if self.request.logprobs is not None:
                self.logprobs.append(self.sampler.logprobs(row + at, tokens[-1], self.request.logprobs))
            last = self.generated + len(tokens) >= self.limit_tokens or is_end(tokens[-1])
            if last or at == len(draft) or tokens[-1] != draft[at]:
                break
        return tokens

    def take(self, tokens: Sequence[int], model: Model) -> tuple[str, Reason | None]:
        """The text that these tokens made printable, and how the answer ended, if it did."""
        text = ""
        for token in tokens:
            self.generated += 1
            self.unreported += 1
            if model.is_end(token):
                del self.logprobs[len(self.starts) :]
                return text + self.text.flush(), "stop"
            if self.request.logprobs is not None:
                self.starts.append(self.text.seen)
            text += self.text.push(model.piece(token))
            if self.text.stopped:
                return text, "stop"
            if self.generated >= self.limit_tokens:
                return text + self.text.flush(), "length"
        return text, None

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
