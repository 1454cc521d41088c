"""What is asked of a model in vectors, worked off one batch at a time between the steps of answers."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from fox import errors
from fox.engine.messages import Embed, Failed, Result, Vectors
from fox.engine.model import Embedder, Vector
from fox.generation import Failure

ROUND_INPUTS = 64
"""Of each task so many inputs are worked on together: a small task need not wait for the end of a large one."""


@dataclass(eq=False)
class Job:
    """A task whose inputs are tokenized. With a query and no model that ranks, the query is the first of them."""

    task: Embed
    inputs: list[list[int]]
    vectors: list[Vector | None] = field(init=False)
    begun: int = 0

    def __post_init__(self) -> None:
        self.vectors = [None] * len(self.inputs)

    @property
    def done(self) -> bool:
        return all(vector is not None for vector in self.vectors)


def prepare(task: Embed, embedder: Embedder, vocab_tokens: int) -> Job:
    """Raises InvalidRequest where the model cannot do what is asked."""
    if embedder.pooling == "rank" and task.query is None:
        raise errors.InvalidRequest("the model ranks texts and makes no embeddings", "model")
    if task.dimensions is not None and task.dimensions > embedder.width:
        raise errors.InvalidRequest(f"`dimensions`: the model has {embedder.width}", "dimensions")
    given = [_tokens(task, input_, embedder, vocab_tokens) for input_ in task.inputs]
    first = 0
    if task.query is not None and embedder.pooling != "rank":
        given.insert(0, embedder.tokens(task.query))
        first = -1
    return Job(
        task, [_fitted(task, at, tokens, embedder.context_tokens) for at, tokens in enumerate(given, first)]
    )


class EmbeddingQueue:
    """The tasks that are open. Belongs to the step thread."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._jobs: list[Job] = []
        self._round: list[tuple[Job, int]] = []
        self._steps = _no_steps()

    @property
    def idle(self) -> bool:
        return not self._jobs

    def add(self, job: Job) -> None:
        self._jobs.append(job)

    def cancel(self, id_: str) -> None:
        """Drop a task, if there is one of this id."""
        self._jobs = [job for job in self._jobs if job.task.id != id_]
        self._rest()

    def step(self) -> list[Result]:
        """Compute one batch. The tasks that it completed, or that failed by it."""
        if self.idle:
            return []
        try:
            found = next(self._steps, None)
            if found is None:
                self._begin()
                found = next(self._steps, {})
        except errors.FoxError as error:
            return self._fail(error)
        over = self._take(found)
        self._rest()
        return over

    def _rest(self) -> None:
        """With nothing to do, nothing is held: a context for a long input is large."""
        if self.idle:
            self._steps.close()
            self._steps, self._round = _no_steps(), []

    def _begin(self) -> None:
        """The next inputs of each task."""
        self._round = []
        for job in self._jobs:
            last = min(len(job.inputs), job.begun + ROUND_INPUTS)
            self._round += [(job, at) for at in range(job.begun, last)]
            job.begun = last
        self._steps = self._embedder.steps([job.inputs[at] for job, at in self._round])

    def _take(self, found: dict[int, Vector]) -> list[Result]:
        touched: dict[Job, None] = {}
        for place, vector in found.items():
            job, at = self._round[place]
            job.vectors[at] = vector
            touched[job] = None
        over = [job for job in self._jobs if job in touched and job.done]
        self._jobs = [job for job in self._jobs if job not in over]
        return [_result(job, self._embedder.pooling) for job in over]

    def _fail(self, error: errors.FoxError) -> list[Result]:
        """All whose inputs were in the batch's round."""
        self._steps = _no_steps()
        met = {job for job, _ in self._round}
        failed = [job for job in self._jobs if job in met]
        self._jobs = [job for job in self._jobs if job not in met]
        return [Failed(job.task.id, Failure(*errors.to_wire(error))) for job in failed]


def _no_steps() -> Generator[dict[int, Vector]]:
    yield from ()


def _tokens(task: Embed, input_: str | tuple[int, ...], embedder: Embedder, vocab_tokens: int) -> list[int]:
    if isinstance(input_, str):
        ranks = task.query is not None and embedder.pooling == "rank"
        return embedder.pair(task.query or "", input_) if ranks else embedder.tokens(input_)
    for token in input_:
        if not 0 <= token < vocab_tokens:
            raise errors.InvalidRequest(
                f"`input`: token {token} is not in the vocabulary of {vocab_tokens}", "input"
            )
    return list(input_)


def _fitted(task: Embed, at: int, tokens: list[int], most: int) -> list[int]:
    """`at`: which of the texts; -1 is the query."""
    field_ = "input" if task.query is None else "documents" if at >= 0 else "query"
    what = f"`{field_}`: the text" + (f" at {at}" if at >= 0 else "")
    if not tokens:
        raise errors.InvalidRequest(f"{what} has no tokens", field_)
    if len(tokens) <= most:
        return tokens
    if not task.truncate:
        raise errors.InvalidRequest(f"{what} has {len(tokens)} tokens, the model reads {most}", field_)
    return [*tokens[: most - 1], tokens[-1]]  # the last one may be what the model pools


def _result(job: Job, pooling: str) -> Vectors:
    rows: NDArray[np.floating] = np.stack([vector for vector in job.vectors if vector is not None])
    if job.task.dimensions is not None:
        rows = rows[:, : job.task.dimensions]
    if pooling == "rank":
        rows = 1 / (1 + np.exp(-np.clip(rows[:, :1], -80, 80)))
    else:
        rows = _unit(rows)
        if job.task.query is not None:
            rows = rows[1:] @ rows[:1].T
    counts = tuple(map(len, islice(job.inputs, len(job.inputs) - len(rows), None)))
    return Vectors(job.task.id, rows.astype("<f4").tobytes(), rows.shape[1], counts)


def _unit(rows: NDArray[np.floating]) -> NDArray[np.floating]:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(lengths > 0, lengths, 1)
