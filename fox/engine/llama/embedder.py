"""Token lists to vectors: a second context over the loaded weights, opened when somebody first asks for one."""

from __future__ import annotations

import math
import re
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from fox.engine.llama.attention import AUTO, flash_attention, k_type, kv_type, v_type
from fox.engine.llama.batch import Batch
from fox.engine.llama.bindings import lib
from fox.engine.llama.devices import gpu_memory
from fox.engine.llama.geometry import AUTO_CPU_CONTEXT_TOKENS, SMALLEST_CONTEXT_TOKENS
from fox.engine.llama.log import LogTail
from fox.engine.llama.vocabulary import Vocabulary
from fox.engine.llama.weights import context_params, has_states, header_value
from fox.engine.model import Vector
from fox.engine.options import EngineOptions
from fox.errors import EngineFailed, InvalidRequest
from fox.generation import PromptPart
from fox.scheduler import Chunk

POOLINGS = {1: "mean", 2: "cls", 3: "last", 4: "rank"}  # enum llama_pooling_type
BATCH_TOKENS = 512
SMALLEST_BATCH_TOKENS = 128
SEQUENCES = 64  # llama.cpp aborts where they are more than a batch's tokens, or no divisor of them
CPU_LOGITS_BYTES, GPU_LOGITS_BYTES = 64 << 20, 256 << 20  # of the tokens of one batch


@dataclass(frozen=True)
class Context:
    """An open llama context for inputs of up to `tokens` tokens, which it takes in batches of `batch.room`."""

    handle: Any
    tokens: int
    batch: Batch


class Embedder:
    """Turns token lists into vectors, with the model's own pooling.

    Inputs that fit a batch share it. A longer one is alone, in a context that is opened for it and goes with the job: a
    causal model reads it in several batches, an encoder must see it whole. One job at a time: between two steps of a
    job no other may begin.
    """

    def __init__(
        self, model: Any, vocab: Vocabulary, options: EngineOptions, log: LogTail, name: str
    ) -> None:
        self._model = model
        self._vocab = vocab
        self._options = options
        self._log = log
        self._name = name
        self._on_gpu = gpu_memory() is not None
        self._batch_tokens = _batch_tokens(vocab.size, on_gpu=self._on_gpu)
        self._sequences = 1 if has_states(model) else SEQUENCES  # llama.cpp computes states one by one
        self._context: Context | None = None

    @cached_property
    def context_tokens(self) -> int:
        """The longest input: what the model was trained for, within `max_context_len`; without that flag, on a CPU,
        within what a chat would have."""
        trained = int(lib.llama_model_n_ctx_train(self._model)) or SMALLEST_CONTEXT_TOKENS
        limit = self._options.max_context_len
        if limit is None:
            limit = trained if self._on_gpu else AUTO_CPU_CONTEXT_TOKENS
        return min(trained, limit)

    @cached_property
    def width(self) -> int:
        """Numbers in a vector; for `rank` how many scores the model gives."""
        if self.pooling == "rank":
            return int(lib.llama_model_n_cls_out(self._model))
        return int(lib.llama_model_n_embd_out(self._model))

    @cached_property
    def pooling(self) -> str:
        """`mean`, `cls`, `last` or `rank`, as the model's header says; `mean` where it says nothing.

        For encoders that is what sentence-transformers does. Of models made to generate, vLLM, Ollama and llamafile
        take the last token, and llama-server refuses. But those trained for that (Qwen3-Embedding) say so, and of the
        others the last token tells what comes next rather than what was said. SmolLM2, 12 sentences of 4 topics: the
        nearest one is of the same topic for 12 with `mean`, for 8 with `last`.
        """
        said = header_value(self._model, f"{self._architecture}.pooling_type")
        return POOLINGS.get(int(said) if said.isdigit() else 0, "mean")

    def tokens(self, text: str) -> list[int]:
        """With whatever the vocabulary begins and ends an input with. Control tokens in it are plain text."""
        return self._vocab.tokenize_input(text)

    def pair(self, query: str, document: str) -> list[int]:
        """In the model's own words, where it brings a template for that; else BOS query EOS SEP document EOS."""
        if template := lib.llama_model_chat_template(self._model, b"rerank"):
            parts = re.split(r"\{(query|document)\}", template.decode(errors="replace"))
            said = {"query": query, "document": document}
            return self._vocab.tokenize(
                [
                    PromptPart(said[part] if at % 2 else part, special=not at % 2)
                    for at, part in enumerate(parts)
                ]
            )
        return self._vocab.tokenize_pair(query, document)

    def embed(self, inputs: Sequence[Sequence[int]]) -> list[Vector]:
        """A vector of shape (width,) for each input, in order, not normalised. Every input has 1 to `context_tokens`
        tokens. Raises as `steps` does."""
        found: dict[int, Vector] = {}
        for step in self.steps(inputs):
            found |= step
        return [found[at] for at in range(len(inputs))]

    def steps(self, inputs: Sequence[Sequence[int]]) -> Generator[dict[int, Vector]]:
        """The same, one llama_decode a step, so that the caller can do other work between two. Each step yields the
        vectors that it completed, by their inputs' places: none, while it reads a long one. May be left at any step.

        Raises EngineFailed where a batch fails, InvalidRequest where the model cannot embed.
        """
        try:
            for places in self._packs(inputs):
                pack = [inputs[at] for at in places]
                for vectors in self._read(pack, self._open(sum(map(len, pack)))):
                    yield dict(zip(places, vectors, strict=False))
        finally:
            if self._context and self._is_long(self._context.tokens):
                self.close()

    def close(self) -> None:
        """Free the context. Idempotent; the next job opens another."""
        if self._context:
            lib.llama_free(self._context.handle)
            self._context = None

    def _packs(self, inputs: Sequence[Sequence[int]]) -> Iterator[list[int]]:
        """The places of inputs that share a batch, in order; then the long ones, the longest first, each alone."""
        pack: list[int] = []
        tokens = 0
        lengths = [len(input_) for input_ in inputs]
        for at in (at for at, length in enumerate(lengths) if not self._is_long(length)):
            if pack and (tokens + lengths[at] > self._batch_tokens or len(pack) == self._sequences):
                yield pack
                pack, tokens = [], 0
            pack.append(at)
            tokens += lengths[at]
        if pack:
            yield pack
        long = [at for at, length in enumerate(lengths) if self._is_long(length)]
        yield from ([at] for at in sorted(long, key=lambda at: -lengths[at]))

    def _is_long(self, tokens: int) -> bool:
        return tokens > self._batch_tokens

    def _read(self, pack: Sequence[Sequence[int]], context: Context) -> Iterator[list[Vector]]:
        """Yields an empty list for a part of a long input, and the vectors of all inputs at the end."""
        if memory := lib.llama_get_memory(context.handle):
            lib.llama_memory_clear(memory, False)
        if sum(map(len, pack)) <= context.batch.room:
            yield self._decode(context, [_chunk(seq, 0, input_) for seq, input_ in enumerate(pack)])
            return
        (long,) = pack
        parts = _parts(long, context.batch.room)
        vectors = []
        for part in parts:
            vectors += self._decode(context, [part])
            if part is not parts[-1]:
                yield []
        yield [self._join(vectors, [len(part.tokens) for part in parts])]

    def _decode(self, context: Context, chunks: Sequence[Chunk]) -> list[Vector]:
        """What llama.cpp pooled of each chunk. It pools what one micro-batch holds: this batch is one."""
        context.batch.fill(chunks)
        status = lib.llama_decode(context.handle, context.batch.struct)
        if status != 0:
            raise EngineFailed(f"llama_decode failed with status {status}: {self._log.reason()}")
        return [self._vector(context, chunk.seq) for chunk in chunks]

    def _vector(self, context: Context, seq: int) -> Vector:
        pooled = lib.llama_get_embeddings_seq(context.handle, seq)
        if not pooled:
            raise EngineFailed(f"llama.cpp left no vector: {self._log.reason()}")
        return np.array(np.ctypeslib.as_array(pooled, (self.width,)))

    def _join(self, vectors: Sequence[Vector], tokens: Sequence[int]) -> Vector:
        """The vector of an input from those of its parts."""
        if self.pooling == "mean":
            return np.average(vectors, axis=0, weights=tokens).astype(np.float32)
        return vectors[0] if self.pooling == "cls" else vectors[-1]

    # the context

    @cached_property
    def _architecture(self) -> str:
        return header_value(self._model, "general.architecture")

    @cached_property
    def _reads_whole(self) -> bool:
        """Whether every token sees all others, so that an input cannot be read in parts: the header says so, or
        llama.cpp keeps no memory for the architecture."""
        if header_value(self._model, f"{self._architecture}.attention.causal") == "false":
            return True
        params = self._params()
        params.n_ctx, params.n_batch, params.n_ubatch, params.n_seq_max = SMALLEST_CONTEXT_TOKENS, 8, 8, 1
        probe = self._init(params)
        try:
            return not lib.llama_get_memory(probe)
        finally:
            lib.llama_free(probe)

    def _open(self, tokens: int) -> Context:
        """A context for an input of this many tokens: the one that is open, if it is of that kind and size."""
        is_long, context = self._is_long(tokens), self._context
        if context and tokens <= context.tokens and self._is_long(context.tokens) == is_long:
            return context
        self.close()
        room = 1 << (tokens - 1).bit_length() if is_long else self._batch_tokens
        batch_tokens = room if self._reads_whole else self._batch_tokens
        params = self._params()
        params.n_ctx, params.n_seq_max, params.kv_unified = room, self._sequences, True
        params.n_batch = params.n_ubatch = batch_tokens
        params.flash_attn_type = self._flash_attention(is_long)
        self._context = Context(self._init(params), room, Batch(batch_tokens))
        return self._context

    def _init(self, params: Any) -> Any:
        handle = lib.llama_init_from_model(self._model, params)
        if not handle:
            raise InvalidRequest(f"model '{self._name}' cannot embed: {self._log.reason()}", "model")
        return handle

    def _params(self) -> Any:
        params = context_params(self._options)
        params.type_k, params.type_v = kv_type(k_type(self._options)), kv_type(v_type(self._options))
        params.flash_attn_type = self._flash_attention(is_long=False)
        params.swa_full = False
        params.embeddings = True
        params.pooling_type = next(number for number, name in POOLINGS.items() if name == self.pooling)
        return params

    def _flash_attention(self, is_long: bool) -> int:
        """As for a chat, but for long inputs where llama.cpp can: they would need a matrix of all tokens by all others.

        Not for short ones on a CPU: it computes 64 rows and more another way than fewer, and the same 50 tokens alone
        and in a full batch come out at a cosine of 0.9994, without it of 0.99998 (random tokens, SmolLM2)."""
        if is_long and self._options.flash_attn == "auto":
            return AUTO
        return flash_attention(self._options, on_gpu=self._on_gpu)


def _batch_tokens(vocab_tokens: int, *, on_gpu: bool) -> int:
    """llama.cpp computes the logits of every token that it pools, twice as many bytes as they have: a large vocabulary
    makes smaller batches. A power of two."""
    fits = (GPU_LOGITS_BYTES if on_gpu else CPU_LOGITS_BYTES) // (4 * vocab_tokens)
    return min(BATCH_TOKENS, max(SMALLEST_BATCH_TOKENS, 1 << fits.bit_length() >> 1))


def _parts(tokens: Sequence[int], room: int) -> list[Chunk]:
    """A long input in batches of one size: a last one of few rows would be computed another way than the others."""
    count = math.ceil(len(tokens) / room)
    cuts = [len(tokens) * at // count for at in range(count + 1)]
    return [_chunk(0, start, tokens[start:end]) for start, end in pairwise(cuts)]


def _chunk(seq: int, start: int, tokens: Sequence[int]) -> Chunk:
    return Chunk("", seq, start, list(tokens), len(tokens))
