"""Vectors and tokens from a real child with the echo model, and the order in which tasks are worked off."""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import Generator, Sequence

import numpy as np
import pytest

from fox.engine.embedding import ROUND_INPUTS, EmbeddingQueue, prepare
from fox.engine.messages import Embed, Failed, Vectors
from fox.engine.model import Vector
from fox.errors import EngineFailed, InvalidRequest
from fox.generation import PromptPart
from tests.engine.test_engine import collect, request, running

anyio = pytest.mark.anyio


def rows(vectors: Vectors) -> list[list[float]]:
    numbers = array("f", vectors.data).tolist()
    return [numbers[at : at + vectors.width] for at in range(0, len(numbers), vectors.width)]


@anyio
async def test_vectors_come_in_order_and_of_unit_length() -> None:
    async with running() as engine:
        vectors = await engine.embed(["a bb", "ccc", "a bb"])
    one, other, same = rows(vectors)
    assert one == same != other
    assert np.allclose(np.linalg.norm([one, other], axis=1), 1)
    assert vectors.tokens == (2, 1, 2)


@anyio
async def test_a_query_scores_texts_by_how_near_they_are() -> None:
    async with running() as engine:
        scores = await engine.embed(["a bb", "ccc"], query="a bb")
    assert np.allclose(rows(scores), [[1], [0]])
    assert scores.tokens == (2, 1)


@anyio
async def test_answers_go_on_beside_a_large_task() -> None:
    async with running() as engine:
        task = asyncio.create_task(engine.embed(["word"] * 1000))
        text, _ = await collect(engine, request("a", "one two"))
        assert text == "one two"
        assert len((await task).tokens) == 1000


@anyio
async def test_a_text_becomes_tokens_and_they_a_text() -> None:
    async with running() as engine:
        tokens = await engine.tokenize((PromptPart("one two one", special=True),), begins=False)
        assert len(tokens.tokens) == 3
        assert (await engine.detokenize(tokens.tokens)).pieces == (b"one", b" two", b" one")
        with pytest.raises(InvalidRequest, match="`tokens`: -1 is not in the vocabulary"):
            await engine.detokenize([-1])


@anyio
async def test_what_cannot_be_had_is_refused() -> None:
    async with running(max_context_len=4) as engine:
        with pytest.raises(InvalidRequest, match="`dimensions`: the model has 16"):
            await engine.embed(["a"], dimensions=17)
        with pytest.raises(InvalidRequest, match="the text at 1 has 5 tokens, the model reads 4"):
            await engine.embed(["a", "a b c d e"])
        with pytest.raises(InvalidRequest, match="the text at 0 has no tokens"):
            await engine.embed([""])
        cut = await engine.embed(["a b c d e"], truncate=True, dimensions=2)
    assert (cut.tokens, cut.width) == ((4,), 2)


@anyio
async def test_a_dead_engine_fails_its_tasks() -> None:
    async with running() as engine:
        with pytest.raises(EngineFailed, match="killed by SIGKILL"):
            await engine.embed(["@die"])
        with pytest.raises(EngineFailed, match="is not running"):
            await engine.embed(["a"])


@anyio
async def test_a_task_that_nobody_waits_for_is_dropped() -> None:
    async with running() as engine:
        task = asyncio.create_task(engine.embed(["word"] * 5000))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await engine.embed(["a"])).tokens == (1,)


class Counter:
    """One input a step; fails at the input [9]."""

    pooling = "mean"
    width = 2
    context_tokens = 8
    held = False

    def tokens(self, text: str) -> list[int]:
        return [len(text)]

    def pair(self, query: str, document: str) -> list[int]:
        return [len(query), len(document)]

    def steps(self, inputs: Sequence[Sequence[int]]) -> Generator[dict[int, Vector]]:
        self.held = True
        try:
            for at, tokens in enumerate(inputs):
                if tokens == [9]:
                    raise EngineFailed("nine")
                yield {at: np.array([tokens[0], 1], dtype=np.float32)}
        finally:
            self.held = False


def queue_of(*tasks: Embed, embedder: Counter | None = None) -> EmbeddingQueue:
    queue = EmbeddingQueue(embedder or Counter())
    for task in tasks:
        queue.add(prepare(task, Counter(), 100))
    return queue


def worked_off(queue: EmbeddingQueue) -> list[str]:
    done = []
    while not queue.idle:
        done += [result.id for result in queue.step()]
    return done


def test_a_small_task_does_not_wait_for_a_large_one() -> None:
    queue = queue_of(Embed("large", ((1,),) * (ROUND_INPUTS * 3)), Embed("small", ((2,),)))
    assert worked_off(queue) == ["small", "large"]


def test_a_task_that_comes_later_joins_the_next_round() -> None:
    queue = queue_of(Embed("a", ((1,),) * (ROUND_INPUTS + 1)))
    assert queue.step() == []
    queue.add(prepare(Embed("b", ((2,),)), Counter(), 100))
    assert worked_off(queue) == ["a", "b"]


def test_a_step_that_fails_takes_its_round_with_it_and_no_more() -> None:
    queue = queue_of(Embed("a", ((1,), (9,))), Embed("b", ((2,),)))
    assert queue.step() == []
    assert [type(result) for result in queue.step()] == [Failed, Failed]
    queue.add(prepare(Embed("c", ((2,),)), Counter(), 100))
    assert worked_off(queue) == ["c"]


def test_a_cancelled_task_leaves_the_others_as_they_are() -> None:
    queue = queue_of(Embed("a", ((1,), (2,))), Embed("b", ((3,), (4,))))
    queue.step()
    queue.cancel("a")
    queue.cancel("nobody")
    assert worked_off(queue) == ["b"]


def test_a_cut_text_keeps_its_last_token() -> None:
    job = prepare(Embed("a", (tuple(range(12)),), truncate=True), Counter(), 100)
    assert job.inputs == [[0, 1, 2, 3, 4, 5, 6, 11]]


class Ranker(Counter):
    pooling = "rank"


def test_a_model_that_ranks_scores_between_nought_and_one() -> None:
    queue = EmbeddingQueue(Ranker())
    queue.add(prepare(Embed("a", ("x" * 3, "y"), query="q"), Ranker(), 100))
    (result,) = (result for _ in range(2) for result in queue.step())
    assert isinstance(result, Vectors)
    assert np.allclose(rows(result), 1 / (1 + np.exp(-1)))
    with pytest.raises(InvalidRequest, match="ranks texts and makes no embeddings"):
        prepare(Embed("a", ("x",)), Ranker(), 100)


def test_what_an_embedder_holds_is_let_go_where_nothing_is_left_to_do() -> None:
    embedder = Counter()
    queue = queue_of(Embed("a", ((1,), (2,))), embedder=embedder)
    assert queue.step() == []
    assert embedder.held
    assert [result.id for result in queue.step()] == ["a"]
    assert not embedder.held
    queue.add(prepare(Embed("b", ((1,), (2,))), embedder, 100))
    queue.step()
    queue.cancel("b")
    assert (queue.idle, embedder.held) == (True, False)
    queue.add(prepare(Embed("c", ((3,),)), embedder, 100))
    assert worked_off(queue) == ["c"]


def test_a_query_that_is_too_long_is_named() -> None:
    with pytest.raises(InvalidRequest, match="`documents`: the text at 0 has no tokens"):
        prepare(Embed("a", ((),), query="x"), Counter(), 100)

    class Long(Counter):
        def tokens(self, text: str) -> list[int]:
            return [1] * len(text)

    with pytest.raises(InvalidRequest, match="`query`: the text has 9 tokens"):
        prepare(Embed("a", ("b",), query="x" * 9), Long(), 100)
