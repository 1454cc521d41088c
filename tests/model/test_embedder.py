"""Vectors: the same alone and together, in one batch and in many, up to the context's last token."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from fox.engine.llama import embedder as room
from fox.engine.llama.bindings import lib
from fox.engine.llama.embedder import Embedder, Vector
from fox.engine.llama.log import LogTail
from fox.engine.llama.vocabulary import Vocabulary
from fox.engine.llama.weights import load_weights
from fox.engine.options import EngineOptions
from fox.errors import EngineFailed, InvalidRequest
from fox.generation import PromptPart
from tests.model import tiny
from tests.model.desk import Desk

pytestmark = pytest.mark.model

KINDS = ["plain", "windowed", "recurrent", "hybrid", *tiny.ENCODERS]
LENGTHS = (20, 7, 200, 1, 60, 511, 60, 3, 90)


class Opened:
    """One model's weights, for as many embedders as a test wants."""

    def __init__(self, path: Any) -> None:
        self.log = LogTail(lib)
        self.model = load_weights("m", path, self.log)
        self.vocab = Vocabulary(self.model)
        self._made: list[Embedder] = []

    def embedder(self, batch_tokens: int = 128, **options: Any) -> Embedder:
        made = Embedder(self.model, self.vocab, EngineOptions(threads=1, **options), self.log, "m")
        made._batch_tokens = batch_tokens
        self._made.append(made)
        return made

    def close(self) -> None:
        for made in self._made:
            made.close()
        lib.llama_model_free(self.model)


@pytest.fixture(scope="module")
def opened(gguf: Any) -> Iterator[Any]:
    models: dict[str, Opened] = {}

    def of(kind: str) -> Opened:
        if kind not in models:
            models[kind] = Opened(gguf(kind))
        return models[kind]

    yield of
    for model in models.values():
        model.close()


@pytest.fixture(params=KINDS)
def any_kind(request: pytest.FixtureRequest, opened: Any) -> Opened:
    return opened(request.param)  # type: ignore[no-any-return]


def texts(lengths: Sequence[int], seed: int = 1) -> list[list[int]]:
    generator = np.random.default_rng(seed)
    first, last = len(tiny.SPECIAL), len(tiny.CHARACTERS)
    return [[int(token) for token in generator.integers(first, last, length)] for length in lengths]


def cosine(a: Vector, b: Vector) -> float:
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def assert_same(some: Sequence[Vector], others: Sequence[Vector]) -> None:
    for one, other in zip(some, others, strict=True):
        assert one == pytest.approx(other, rel=1e-3, abs=1e-3 * float(np.abs(other).max()))
        assert cosine(one, other) > 0.99999


def test_a_vector_is_the_same_alone_and_among_others(any_kind: Opened) -> None:
    embedder, inputs = any_kind.embedder(), texts(LENGTHS)
    together = embedder.embed(inputs)
    assert_same(together, [embedder.embed([input_])[0] for input_ in inputs])
    assert {(v.shape, v.dtype) for v in together} == {((embedder.width,), np.dtype(np.float32))}
    for one, next_ in pairwise(together):
        assert not np.allclose(one, next_, rtol=1e-3), "the model hears its input, and order is kept"


def test_a_long_input_in_parts_is_what_it_is_in_one(any_kind: Opened) -> None:
    inputs = texts((300, 512, 128, 129))
    assert_same(any_kind.embedder(128).embed(inputs), any_kind.embedder(512).embed(inputs))


@pytest.mark.parametrize("pooling", ["mean", "cls", "last"])
def test_parts_are_joined_as_the_pooling_says(opened: Any, pooling: str) -> None:
    parts, whole = opened("plain").embedder(128), opened("plain").embedder(512)
    parts.pooling = whole.pooling = pooling
    inputs = texts((300,))
    assert_same(parts.embed(inputs), whole.embed(inputs))


def test_the_context_is_full_to_its_last_token(any_kind: Opened) -> None:
    embedder = any_kind.embedder()
    assert embedder.context_tokens == tiny.CONTEXT
    full = texts((tiny.CONTEXT,))
    vectors = embedder.embed([*full, full[0][:-1]])
    assert np.isfinite(vectors).all()
    assert embedder.pooling in ("cls", "rank") or not np.array_equal(*vectors)


@pytest.mark.parametrize(("limit", "context"), [(None, 512), (100, 100), (1000, 512)])
def test_the_context_is_the_trained_one_within_the_limit(
    opened: Any, limit: int | None, context: int
) -> None:
    embedder = opened("plain").embedder(max_context_len=limit)
    assert embedder.context_tokens == context
    assert embedder.embed(texts((context,)))[0].shape == (tiny.WIDTH,)


@pytest.mark.parametrize("options", [{"type_kv": "q8_0"}, {"type_kv": "bf16"}, {"flash_attn": "on"}])
def test_cells_of_another_type_hold_about_the_same(opened: Any, options: dict[str, Any]) -> None:
    inputs = texts((300, 50))
    vectors = opened("plain").embedder(**options).embed(inputs)
    for one, other in zip(vectors, opened("plain").embedder().embed(inputs), strict=True):
        assert cosine(one, other) > 0.999


@pytest.mark.parametrize("count", [room.SEQUENCES - 1, room.SEQUENCES, room.SEQUENCES + 1, 150])
def test_more_inputs_than_a_batch_has_sequences(opened: Any, count: int) -> None:
    embedder, inputs = opened("plain").embedder(), texts([1 + at % 3 for at in range(count)])
    vectors = embedder.embed(inputs)
    assert len(vectors) == count
    assert_same(vectors[-1:], embedder.embed(inputs[-1:]))


def test_inputs_share_batches_and_long_ones_come_last(opened: Any) -> None:
    embedder = opened("plain").embedder(128)
    inputs = texts((100, 200, 28, 1, 128, 300))
    steps = [sorted(step) for step in embedder.steps(inputs)]
    assert steps == [[0, 2], [3], [4], [], [], [5], [], [1]]


def test_an_encoder_reads_a_long_input_in_one_step(opened: Any) -> None:
    inputs = texts((300, 20))
    assert [sorted(step) for step in opened("encoder").embedder(128).steps(inputs)] == [[1], [0]]


def test_a_job_may_be_left_in_the_middle(any_kind: Opened) -> None:
    embedder, inputs = any_kind.embedder(), texts((300, 20))
    before = embedder.embed(inputs)
    for steps in range(4):
        job = embedder.steps(inputs)
        for _ in range(steps):
            next(job, None)
        job.close()
        assert_same(embedder.embed(inputs), before)


def test_a_context_for_long_inputs_goes_with_its_job(opened: Any) -> None:
    embedder = opened("plain").embedder(128)
    embedder.embed(texts((20,)))
    kept = embedder._context
    embedder.embed(texts((128, 3)))
    assert kept is embedder._context is not None
    embedder.embed(texts((300, 200, 20)))
    assert embedder._context is None
    embedder.close()
    assert len(embedder.embed(texts((20,)))) == 1
    embedder.close()
    embedder.close()


@pytest.mark.parametrize(
    ("kind", "pooling", "width"),
    [
        ("plain", "mean", tiny.WIDTH),
        ("encoder", "cls", tiny.WIDTH),
        ("silent-encoder", "mean", tiny.WIDTH),
        ("reranker", "rank", 1),
    ],
)
def test_pooling_is_what_the_header_says(opened: Any, kind: str, pooling: str, width: int) -> None:
    embedder = opened(kind).embedder()
    assert (embedder.pooling, embedder.width) == (pooling, width)


@pytest.mark.parametrize(("vocab_tokens", "tokens"), [(98, 512), (49_152, 256), (151_936, 128), (10**6, 128)])
def test_a_large_vocabulary_makes_smaller_batches(vocab_tokens: int, tokens: int) -> None:
    assert room._batch_tokens(vocab_tokens, on_gpu=False) == tokens
    assert room._batch_tokens(vocab_tokens, on_gpu=True) >= tokens


def test_a_failed_batch_is_an_error_and_the_next_one_is_none(opened: Any) -> None:
    embedder, inputs = opened("plain").embedder(), texts((20, 300))
    before = embedder.embed(inputs)
    with pytest.raises(EngineFailed, match="status -1"):
        embedder.embed([[len(tiny.CHARACTERS)]])
    assert_same(embedder.embed(inputs), before)


def test_a_model_that_cannot_embed_is_the_callers_choice(
    opened: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lib, "llama_init_from_model", lambda *_: None)
    with pytest.raises(InvalidRequest, match="model 'm' cannot embed") as refused:
        opened("plain").embedder().embed(texts((3,)))
    assert refused.value.param == "model"


def test_the_starter_brings_like_to_like(opened: Any) -> None:
    starter = opened("starter")
    embedder = starter.embedder(256)
    sentences = (
        "A cat sleeps on the sofa",
        "The kitten is napping on the couch",
        "The stock market fell sharply today",
        "Share prices dropped a lot this afternoon",
    )
    inputs = [starter.vocab.tokenize([PromptPart(text, special=False)]) for text in sentences]
    cat, kitten, market, shares = vectors = embedder.embed(inputs)
    assert cosine(cat, kitten) > max(cosine(cat, market), cosine(kitten, shares))
    assert cosine(market, shares) > max(cosine(cat, market), cosine(kitten, shares))
    for vector, input_ in zip(vectors, inputs, strict=True):
        assert cosine(vector, embedder.embed([input_])[0]) > 0.9999


@pytest.mark.parametrize("kind", ["encoder", "silent-encoder", "reranker"])
def test_an_encoder_makes_vectors_and_no_text(gguf: Any, kind: str) -> None:
    desk = Desk.open(gguf(kind))
    info = desk.model.info
    assert (info.generates, info.embedding_tokens > 0, info.embedding_width > 0) == (False, True, True)
    (id_,) = [desk.ask("ab")]
    desk.step()
    assert "is an encoder" in desk.refused[id_]


def test_control_tokens_in_a_text_are_plain_text(opened: Any) -> None:
    embedder = opened("plain").embedder()
    assert len(embedder.tokens("</s>")) > len(embedder.tokens("a")) + 2


def test_a_reranker_reads_query_and_document_as_one_input(opened: Any) -> None:
    embedder = opened("reranker").embedder()
    pair = embedder.pair("ab", "cd")
    assert len(pair) > len(embedder.tokens("ab"))
    (score,) = embedder.embed([pair])
    assert score.shape == (embedder.width,)
