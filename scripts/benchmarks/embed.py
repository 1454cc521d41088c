"""Embeddings by fox's Embedder against a bare batched llama_decode loop: same weights, batches, threads and pooling."""

from __future__ import annotations

import os
import time
from typing import Any

import numpy as np

from scripts.benchmarks import rig

INPUTS = int(os.environ.get("FOX_BENCH_EMBEDDINGS", "1000"))  # in all rounds together
TOKENS, ROUNDS = 50, 5


def run() -> None:
    from fox.engine.llama.bindings import lib
    from fox.engine.llama.embedder import Embedder
    from fox.engine.llama.log import LogTail
    from fox.engine.llama.vocabulary import Vocabulary
    from fox.engine.llama.weights import load_weights
    from fox.engine.options import EngineOptions

    log = LogTail(lib)
    path = rig.q8_0()
    model = load_weights(path.stem, path, log)
    options = EngineOptions(threads=rig.THREADS)
    embedder = Embedder(model, Vocabulary(model), options, log, path.stem)
    bare = Bare(lib, model, embedder._batch_tokens)
    inputs = np.random.default_rng(1).integers(100, 40_000, (INPUTS // ROUNDS, TOKENS)).tolist()
    warm = inputs[: embedder._batch_tokens // TOKENS]
    _agree(embedder.embed(warm), bare.embed(warm))
    fox, loop = [], []
    for at in range(ROUNDS):
        arms = [(fox, embedder.embed), (loop, bare.embed)]
        for rates, embed in arms if at % 2 else reversed(arms):
            rates.append(_rate(embed, inputs))
    ratios = [f / b for f, b in zip(fox, loop, strict=True)]
    print(
        f"embeddings of {TOKENS} tokens: fox {rig.median(fox):.2f} a second, bare loop {rig.median(loop):.2f}"
    )
    print(
        f"ratio {rig.median(ratios):.3f} (min {min(ratios):.3f}, max {max(ratios):.3f}; asked: at least 0.95)"
    )


def _rate(embed: Any, inputs: list[list[int]]) -> float:
    began = time.perf_counter()
    assert len(embed(inputs)) == len(inputs)
    return len(inputs) / (time.perf_counter() - began)


def _agree(some: list[Any], others: list[Any]) -> None:
    for one, other in zip(some, others, strict=True):
        assert np.allclose(one, other, rtol=1e-3, atol=1e-3), "both arms compute the same"


class Bare:
    """The least that llama.cpp needs: fill a batch, decode it, copy the pooled vectors out."""

    def __init__(self, lib: Any, model: Any, batch_tokens: int) -> None:
        self.lib = lib
        params = lib.llama_context_default_params()
        params.n_ctx = params.n_batch = params.n_ubatch = batch_tokens
        params.n_seq_max, params.kv_unified = 64, True
        params.n_threads = params.n_threads_batch = rig.THREADS
        params.no_perf = params.embeddings = True
        params.pooling_type = 1  # mean
        params.flash_attn_type = 0  # as fox has it on a CPU
        self.ctx = lib.llama_init_from_model(model, params)
        self.width = lib.llama_model_n_embd_out(model)
        self.inputs_a_batch = batch_tokens // TOKENS
        self.batch = lib.llama_batch_init(batch_tokens, 0, 1)
        for row in range(self.inputs_a_batch * TOKENS):
            self.batch.pos[row] = row % TOKENS
            self.batch.n_seq_id[row] = 1
            self.batch.seq_id[row][0] = row // TOKENS
            self.batch.logits[row] = 1

    def embed(self, inputs: list[list[int]]) -> list[Any]:
        """A vector for each input of TOKENS tokens."""
        lib, memory, vectors = self.lib, self.lib.llama_get_memory(self.ctx), []
        for at in range(0, len(inputs), self.inputs_a_batch):
            pack = inputs[at : at + self.inputs_a_batch]
            self.batch.n_tokens = len(pack) * TOKENS
            for row, token in enumerate(token for input_ in pack for token in input_):
                self.batch.token[row] = token
            lib.llama_memory_clear(memory, False)
            assert lib.llama_decode(self.ctx, self.batch) == 0
            pooled = (lib.llama_get_embeddings_seq(self.ctx, seq) for seq in range(len(pack)))
            vectors += [np.array(np.ctypeslib.as_array(p, (self.width,))) for p in pooled]
        return vectors
