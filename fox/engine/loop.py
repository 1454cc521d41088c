"""The step loop: drain the inbox, plan, move cells, decode, sample, commit, report. One thread, no lock."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Literal

from fox import errors
from fox.engine.messages import Accepted, Cancel, EngineStats, Refused, Stepped
from fox.engine.model import Model, NoRoom, Sampler
from fox.engine.text import TextStream
from fox.generation import Delta, Failure, Finish, GenerationRequest, ModelInfo, Usage
from fox.scheduler import Chunk, Limits, Scheduler, Step


@dataclass(frozen=True, slots=True)
class Arrival:
    """A tokenized request, or the error that tokenizing it met."""

    request: GenerationRequest
    tokens: list[int] | errors.FoxError


Inbox = SimpleQueue[Arrival | Cancel]


@dataclass(slots=True)
class Answer:
    """One accepted request, while it is being answered."""

    request: GenerationRequest
    prompt_tokens: int
    limit_tokens: int
    sampler: Sampler
    text: TextStream
    generated: int = 0
    unreported: int = 0

    @property
    def may_end(self) -> bool:
        return not self.request.ignore_eos and self.generated >= self.request.min_tokens

    @property
    def usage(self) -> Usage:
        return Usage(self.prompt_tokens, self.generated)


class StepLoop:
    """Answers what arrives in `inbox`; `send` gets one message a step, and one when requests arrive or leave."""

    def __init__(
        self, model: Model, scheduler: Scheduler, inbox: Inbox, send: Callable[[Stepped], None]
    ) -> None:
        self._model = model
        self._scheduler = scheduler
        self._inbox = inbox
        self._send = send
        self._answers: dict[str, Answer] = {}
        self._accepted: list[Accepted] = []
        self._refused: list[Refused] = []
        self._deltas: list[Delta] = []

    def run(self) -> None:
        """Step for ever; sleeps in the inbox while nothing is open."""
        while True:
            self.step()

    def step(self) -> None:
        """One turn. Blocks only when no request is open."""
        self._drain()
        self._report()
        if step := self._scheduler.plan():
            self._compute(step)
            self._report()
        else:
            self._scheduler.check()

    def _drain(self) -> None:
        try:
            self._take(self._inbox.get(block=self._scheduler.idle))
            while True:
                self._take(self._inbox.get_nowait())
        except Empty:
            return

    def _take(self, item: Arrival | Cancel) -> None:
        if isinstance(item, Cancel):
            if item.id in self._answers:
                self._end(item.id, "cancelled")
                self._scheduler.cancel(item.id)
            return
        try:
            self._accept(item)
        except errors.FoxError as error:
            self._refused.append(Refused(item.request.id, Failure(*errors.to_wire(error))))

    def _accept(self, item: Arrival) -> None:
        if isinstance(item.tokens, errors.FoxError):
            raise item.tokens
        request, count = item.request, len(item.tokens)
        _refuse_impossible(request, self._model.info)
        self._scheduler.add(request.id, item.tokens)
        room = self._model.info.context_tokens - count
        limit = room if request.max_tokens is None else min(room, request.max_tokens)
        sampler = self._model.sampler(request.sampling, item.tokens)
        stop = (*request.stop, *(() if request.ignore_eos else self._spelled_ends()))
        self._answers[request.id] = Answer(request, count, limit, sampler, TextStream(stop))
        self._accepted.append(Accepted(request.id, count))

    def _spelled_ends(self) -> Sequence[str]:
        """Turn markers a model may spell letter by letter instead of using the token (`<|im_end|>` and its like)."""
        return [end for end in self._model.info.end_tokens if end.startswith("<|") and end.endswith("|>")]

    def _compute(self, step: Step) -> None:
        self._model.apply(step.moves)
        try:
            rows = self._model.decode(step.chunks)
        except NoRoom:
            if not self._scheduler.yield_youngest():
                self._fail(step.chunks, errors.EngineFailed("the KV memory has no room for this request"))
            return
        except errors.EngineFailed as error:
            self._fail(step.chunks, error)
            return
        sampled = self._sample(step, rows)
        ended = [id_ for id_, token in sampled.items() if self._advance(id_, token)]
        self._scheduler.commit(step, sampled, ended)

    def _sample(self, step: Step, rows: list[int]) -> dict[str, int]:
        sampled = {}
        for chunk, row in zip(step.chunks, rows, strict=True):
            if not chunk.sample:
                continue
            answer = self._answers[chunk.id]
            try:
                sampled[chunk.id] = answer.sampler.sample(row, may_end=answer.may_end)
            except errors.EngineFailed as error:
                self._fail([chunk], error)
        return sampled

    def _advance(self, id_: str, token: int) -> bool:
        """Add a token to its answer; whether that ended it."""
        answer = self._answers[id_]
        answer.generated += 1
        answer.unreported += 1
        if self._model.is_end(token):
            self._end(id_, "stop", answer.text.flush())
            return True
        text = answer.text.push(self._model.piece(token))
        if answer.text.stopped:
            self._end(id_, "stop", text)
        elif answer.generated >= answer.limit_tokens:
            self._end(id_, "length", text + answer.text.flush())
        else:
            self._say(answer, text)
            return False
        return True

    def _say(self, answer: Answer, text: str) -> None:
        if text:
            self._deltas.append(Delta(answer.request.id, text, answer.unreported))
            answer.unreported = 0

    def _end(
        self,
        id_: str,
        reason: Literal["stop", "length", "cancelled", "failed"],
        text: str = "",
        failure: Failure | None = None,
    ) -> None:
        answer = self._answers.pop(id_)
        answer.sampler.close()
        self._deltas.append(Delta(id_, text, answer.unreported, Finish(reason, answer.usage, failure)))

    def _fail(self, chunks: Sequence[Chunk], error: errors.FoxError) -> None:
        failure = Failure(*errors.to_wire(error))
        for chunk in chunks:
            self._end(chunk.id, "failed", failure=failure)
            self._scheduler.cancel(chunk.id)

    def _report(self) -> None:
        if not (self._accepted or self._refused or self._deltas):
            return
        stats = EngineStats(self._scheduler.running, self._scheduler.waiting, self._scheduler.cache.usage)
        self._send(Stepped(tuple(self._accepted), tuple(self._refused), tuple(self._deltas), stats))
        self._accepted, self._refused, self._deltas = [], [], []


def _refuse_impossible(request: GenerationRequest, info: ModelInfo) -> None:
    if request.max_tokens is not None and request.max_tokens < 1:
        raise errors.InvalidRequest("`max_tokens` must be at least 1", "max_tokens")
    for token, _ in request.sampling.logit_bias:
        if not 0 <= token < info.vocab_tokens:
            message = f"token {token} is not in the vocabulary of {info.vocab_tokens}"
            raise errors.InvalidRequest(message, "logit_bias")


def build_scheduler(model: Model, prefill_chunk: int, queue_depth: int, block_size: int) -> Scheduler:
    """The scheduler and cache that fit a loaded model."""
    from fox.kvcache import KVCache

    info = model.info
    limits = Limits(info.parallel, info.context_tokens, prefill_chunk, queue_depth)
    return Scheduler(KVCache(model.pool_tokens // block_size, block_size), limits)
