"""The step loop: drain the inbox, plan, move cells, decode, sample, commit, report. One thread, no lock."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from queue import Empty, SimpleQueue

from fox import errors
from fox.engine.admission import Room, refuse_impossible
from fox.engine.answer import Answer, Reason, Words
from fox.engine.constraint import Constraint
from fox.engine.embedding import EmbeddingQueue, Job
from fox.engine.messages import Accepted, Cancel, Close, EngineStats, Refused, Result, Stepped
from fox.engine.model import Matcher, Model, NoRoom
from fox.engine.options import EngineOptions
from fox.engine.tally import Tally
from fox.engine.text import TextStream
from fox.engine.thought import Thought
from fox.generation import Delta, Failure, GenerationRequest, Progress, PromptPart
from fox.kvcache import KVCache
from fox.scheduler import Chunk, Limits, Sampled, Scheduler, Step

SAMPLING_THREADS = 2


@dataclass(frozen=True, slots=True)
class Arrival:
    """A tokenized request with its compiled grammar, or the error that they met."""

    request: GenerationRequest
    tokens: list[int] | errors.FoxError
    matcher: Matcher | None = None


Item = Arrival | Job | Result | Cancel | Close
Inbox = SimpleQueue[Item]


class StepLoop:
    """Answers what arrives in `inbox`; `send` gets one message a step, and one when requests arrive or leave."""

    def __init__(
        self, model: Model, options: EngineOptions, inbox: Inbox, send: Callable[[Stepped | Result], None]
    ) -> None:
        self._model = model
        self._options = options
        self._scheduler = _scheduler(model, options)
        self._room = Room(model.info.context_tokens, options)
        self._inbox = inbox
        self._send = send
        self._tally = Tally(self._scheduler)
        self._embeddings = EmbeddingQueue(model.embedder)
        self._pool = ThreadPoolExecutor(SAMPLING_THREADS, thread_name_prefix="sampling")
        self._answers: dict[str, Answer] = {}
        self._accepted: list[Accepted] = []
        self._refused: list[Refused] = []
        self._deltas: list[Delta] = []
        self._closed = False
        self._find()

    def run(self) -> None:
        """Step until the parent closes; sleeps in the inbox while nothing is open."""
        while not self._closed:
            self.step()

    def step(self) -> None:
        """One turn. Blocks only when no request is open."""
        self._drain()
        self._report()
        with self._tally.part("plan"):
            step = self._scheduler.plan()
        if step:
            self._compute(step)
            self._report()
        else:
            self._settle()
        for result in self._embeddings.step():
            self._send(result)

    # what arrives

    def _drain(self) -> None:
        try:
            self._take(self._inbox.get(block=self._scheduler.idle and self._embeddings.idle))
            while True:
                self._take(self._inbox.get_nowait())
        except Empty:
            return

    def _take(self, item: Item) -> None:
        match item:
            case Arrival():
                try:
                    self._accept(item)
                except errors.FoxError as error:
                    self._refused.append(Refused(item.request.id, Failure(*errors.to_wire(error))))
            case Job():
                self._embeddings.add(item)
            case Cancel(id_):
                self._cancel(id_)
            case Close():
                self._close()
            case _:
                self._send(item)

    def _cancel(self, id_: str) -> None:
        """One that is over already, or was never here, is no error."""
        self._embeddings.cancel(id_)
        if id_ in self._answers:
            self._end(id_, "cancelled")
            self._scheduler.cancel(id_)

    def _accept(self, item: Arrival) -> None:
        if isinstance(item.tokens, errors.FoxError):
            raise item.tokens
        request = item.request
        refuse_impossible(request, self._model.info)
        tokens, truncated = self._room.fit(request, item.tokens)
        scheduled = self._scheduler.add(
            request.id,
            tokens,
            priority=request.priority,
            reuse=request.cache_prompt,
            hint=self._spelled(request.prediction) if request.prediction else None,
        )
        sampler = self._model.sampler(request.sampling, tokens, may_end=not request.ignore_eos)
        stop = (*request.stop, *(() if request.ignore_eos else self._spelled_ends()))
        limit, words = self._room.limit(request, len(tokens)), Words(self._model, request)
        answer = Answer(request, scheduled, len(tokens), limit, sampler, words, TextStream(stop))
        answer.constraint = self._constraint(request, item.matcher, words)
        answer.thought = self._thought(request)
        self._answers[request.id] = answer
        warnings = item.matcher.warnings if item.matcher else ()
        self._accepted.append(Accepted(request.id, len(tokens), truncated, warnings))

    def _constraint(
        self, request: GenerationRequest, matcher: Matcher | None, words: Words
    ) -> Constraint | None:
        if not (grammar := request.grammar) or not matcher:
            return None
        opens = self._spelled(grammar.opens) if grammar.opens else []
        return Constraint(grammar, matcher, words.piece, opens[0] if len(opens) == 1 else None)

    def _thought(self, request: GenerationRequest) -> Thought | None:
        return Thought(request.budget, self._spelled(request.budget.says)) if request.budget else None

    def _spelled(self, text: str) -> list[int]:
        """The tokens that the middle of an answer spells so."""
        return self._model.tokenize((PromptPart(text, special=True),), begins=False)

    def _spelled_ends(self) -> Sequence[str]:
        """Turn markers a model may spell letter by letter instead of using the token (`<|im_end|>` and its like)."""
        return [end for end in self._model.info.end_tokens if end.startswith("<|") and end.endswith("|>")]

    # what is computed

    def _compute(self, step: Step) -> None:
        began = time.perf_counter()
        lost = self._model.apply(step.moves)
        if lost.seqs or lost.keys:
            self._scheduler.lose(lost.seqs, lost.keys)
            if lost.seqs:
                return
        self._sit(step)
        prepared = [self._pool.submit(answer.prepare) for answer in self._bound(step)]
        try:
            with self._tally.part("decode"):
                rows = self._model.decode(step.chunks)
        except NoRoom:
            if not self._scheduler.yield_youngest():
                self._fail(step.chunks, errors.EngineFailed("the KV memory has no room for this request"))
            return
        except errors.EngineFailed as error:
            self._fail(step.chunks, error)
            return
        finally:
            wait(prepared)
        with self._tally.part("sample"):
            sampled = self._sample(step, rows)
        with self._tally.part("emit"):
            ended = [id_ for id_, came in sampled.items() if self._advance(id_, came)]
        self._scheduler.commit(step, sampled, ended, time.perf_counter() - began)
        self._roll(sampled)
        self._deltas += [*self._progress(step)]

    def _progress(self, step: Step) -> Iterator[Delta]:
        """Of those that asked for it, whose prompt is not read yet."""
        for chunk in step.chunks:
            answer = self._answers.get(chunk.id)
            if answer and answer.request.progress and not chunk.wanted:
                read = chunk.start + len(chunk.tokens)
                known = Progress(answer.prompt_tokens, answer.scheduled.cached, read)
                yield Delta(chunk.id, "", 0, progress=known)

    def _sit(self, step: Step) -> None:
        chunks = {chunk.id: chunk for chunk in step.chunks}
        for id_, answer in self._answers.items():
            if answer.attached is not None and (id_ not in chunks or chunks[id_].seq != answer.attached):
                answer.sit(None)
        for id_, chunk in chunks.items():
            self._answers[id_].sit(chunk)

    def _bound(self, step: Step) -> list[Answer]:
        """Those of this step whose next token is not free: what may come is worked out beside the decode."""
        answers = (self._answers[chunk.id] for chunk in step.chunks if chunk.wanted)
        return [answer for answer in answers if answer.constraint]

    def _sample(self, step: Step, rows: list[int]) -> dict[str, Sampled]:
        wanted = [(c, row) for c, row in zip(step.chunks, rows, strict=True) if c.wanted]
        outside = [pair for pair in wanted if not self._answers[pair[0].id].sampler.in_graph]
        sampled = dict(map(self._sample_one, (pair for pair in wanted if pair not in outside)))
        # the first call sorts the context's outputs: it must not run beside others
        sampled.update(map(self._sample_one, outside[:1]))
        sampled.update(self._pool.map(self._sample_one, outside[1:]))
        failed = {id_: error for id_, error in sampled.items() if isinstance(error, errors.FoxError)}
        for chunk, _ in wanted:
            if chunk.id in failed:
                self._fail([chunk], failed[chunk.id])
        return {id_: came for id_, came in sampled.items() if isinstance(came, Sampled)}

    def _sample_one(self, pair: tuple[Chunk, int]) -> tuple[str, Sampled | errors.FoxError]:
        (chunk, row), answer = pair, self._answers[pair[0].id]
        try:
            room = self._model.info.context_tokens - len(answer.scheduled.tokens)
            return chunk.id, answer.sample(chunk, row, room)
        except errors.EngineFailed as error:
            return chunk.id, error

    def _advance(self, id_: str, came: Sampled) -> bool:
        """Add tokens to their answer; whether that ended it."""
        answer = self._answers[id_]
        text, reason = answer.take([*came.tokens, *came.forced])
        if reason:
            self._end(id_, reason, text)
        elif text:
            self._deltas.append(answer.delta(text))
        return reason is not None

    def _roll(self, ids: Iterable[str]) -> None:
        """Answers that have filled the context and may go on lose the older half of what need not be kept."""
        for id_ in ids:
            answer = self._answers.get(id_)
            if answer and (count := len(answer.scheduled.tokens)) >= self._model.info.context_tokens:
                keep = self._room.keep(answer.request)
                self._scheduler.shift(id_, keep, (count - keep) // 2)

    def _settle(self) -> None:
        """Nothing runs: the books must balance, and moves that are due are made."""
        self._scheduler.check()
        lost = self._model.apply(self._scheduler.cache.take_moves())
        self._scheduler.lose(lost.seqs, lost.keys)

    # what is told

    def _end(self, id_: str, reason: Reason, text: str = "", failure: Failure | None = None) -> None:
        answer = self._answers.pop(id_)
        answer.sampler.close()
        self._tally.answered(answer)
        self._deltas.append(answer.delta(text, reason, failure))

    def _fail(self, chunks: Sequence[Chunk], error: errors.FoxError) -> None:
        failure = Failure(*errors.to_wire(error))
        for chunk in chunks:
            self._end(chunk.id, "failed", failure=failure)
            self._scheduler.cancel(chunk.id)

    # what outlives the process

    def _find(self) -> None:
        """Take up what earlier runs left on disk: the newest that have room, in the order of their age."""
        cache, room, taken = self._scheduler.cache, self._model.shape.disk_bytes, []
        for path, tokens, size in self._model.states.found():
            room -= size
            if room >= 0:
                taken.append((path, tokens, size))
        for path, tokens, size in reversed(taken):
            if (key := cache.adopt(tokens, size)) is not None:
                self._model.states.bind(key, path)

    def _close(self) -> None:
        self._closed = True
        cache = self._scheduler.cache
        if cache.shape.disk_bytes:
            cache.spill_all()
            self._model.apply(cache.take_moves())
            self._model.states.flush()

    def _report(self) -> None:
        if not (self._accepted or self._refused or self._deltas):
            return
        stats: EngineStats = self._tally.stats()
        self._send(Stepped(tuple(self._accepted), tuple(self._refused), tuple(self._deltas), stats))
        self._accepted, self._refused, self._deltas = [], [], []


def _scheduler(model: Model, options: EngineOptions) -> Scheduler:
    """The scheduler and cache that fit a loaded model."""
    limits = Limits(
        parallel=model.info.parallel,
        context_tokens=model.info.context_tokens,
        prefill_chunk=options.max_prefill_chunk,
        queue_depth=options.max_queue_depth,
        step_target_s=options.step_target_ms / 1000,
        spec_ngram=options.spec_ngram if options.speculative else 0,
        spec_length=options.spec_draft_len if model.info.can_trim else 0,
    )
    return Scheduler(KVCache(model.shape), limits, model.guesser)
