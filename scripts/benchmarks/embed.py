"""Embeddings by fox's Embedder against a bare batched llama_decode loop: same weights, batches, threads and pooling."""

from __future__ import annotations

import base64
import http.client
import json
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
    rates: dict[str, list[float]] = {"bare loop": [], "fox": [], "fox over HTTP": []}
    with rig.serving("--model-path", str(path), "--threads", str(rig.THREADS)) as server:
        served = Served(server.port, path.stem)
        _agree(embedder.embed(warm), served.embed(warm))
        arms = [*zip(rates.values(), (bare.embed, embedder.embed, served.embed), strict=True)]
        for at in range(ROUNDS):
            for took, embed in arms if at % 2 else reversed(arms):
                took.append(_rate(embed, inputs))
    for name, took in rates.items():
        ratios = [one / other for one, other in zip(took, rates["bare loop"], strict=True)]
        print(
            f"embeddings of {TOKENS} tokens, {name}: {rig.median(took):.2f} a second, ratio {rig.median(ratios):.3f}"
            f" (min {min(ratios):.3f}, max {max(ratios):.3f}; asked: at least 0.95)"
        )


def _rate(embed: Any, inputs: list[list[int]]) -> float:
    began = time.perf_counter()
    assert len(embed(inputs)) == len(inputs)
    return len(inputs) / (time.perf_counter() - began)


def _agree(some: list[Any], others: list[Any]) -> None:
    for one, other in zip(some, others, strict=True):
        near = one @ other / np.linalg.norm(one) / np.linalg.norm(other)
        assert near > 0.999, "both arms compute the same"


class Served:
    """One request for all of them. Of unit length here, so the arms agree on the direction only."""

    def __init__(self, port: int, model: str) -> None:
        self._port, self._model = port, model

    def embed(self, inputs: list[list[int]]) -> list[Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=600)
        body = {"model": self._model, "input": inputs, "encoding_format": "base64"}
        connection.request("POST", "/v1/embeddings", json.dumps(body))
        told = json.loads(connection.getresponse().read())
        return [np.frombuffer(base64.b64decode(row["embedding"]), np.float32) for row in told["data"]]


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
