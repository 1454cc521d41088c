"""One stream through fox against a bare llama_decode loop: same libllama, model, threads, sampler, alternating."""

from __future__ import annotations

import time
from pathlib import Path

from scripts.benchmarks import rig

TOKENS, ROUNDS = 200, 7
PROMPT = "Write a long story about a fox and a river."


def run() -> None:
    path = rig.q8_0()
    bare = Bare(path)
    fox, loop = [], []
    with rig.serving("--model-path", str(path), "--threads", str(rig.THREADS)) as server:
        _fox(server.port, path.stem)  # loads, warms
        for _ in range(ROUNDS):
            loop.append(bare.rate())
            time.sleep(0.3)  # idle OpenMP threads stop spinning
            fox.append(_fox(server.port, path.stem))
            time.sleep(0.3)
    ratios = [f / b for f, b in zip(fox, loop, strict=True)]
    print(f"one stream: fox {rig.median(fox):.1f} tok/s, bare loop {rig.median(loop):.1f} tok/s")
    print(
        f"ratio {rig.median(ratios):.3f} (min {min(ratios):.3f}, max {max(ratios):.3f}; asked: at least 0.95)"
    )


def _fox(port: int, model: str) -> float:
    stream = rig.watch(port, model, PROMPT, TOKENS, temperature=0, ignore_eos=True)
    return (stream.tokens - 1) / stream.decode_s


class Bare:
    """The least that llama.cpp needs: decode one token, sample greedily, again."""

    def __init__(self, path: Path) -> None:
        from fox.engine.llama.bindings import lib

        self.lib = lib
        lib.llama_backend_init()
        self.model = lib.llama_model_load_from_file(str(path).encode(), lib.llama_model_default_params())
        params = lib.llama_context_default_params()
        params.n_ctx, params.n_threads, params.n_threads_batch = 1024, rig.THREADS, rig.THREADS
        params.no_perf = True
        params.flash_attn_type = 0  # as fox has it on a CPU
        self.ctx = lib.llama_init_from_model(self.model, params)
        self.chain = lib.llama_sampler_chain_init(lib.llama_sampler_chain_default_params())
        lib.llama_sampler_chain_add(self.chain, lib.llama_sampler_init_greedy())

    def rate(self) -> float:
        """Tokens per second over TOKENS decodes after a prompt of 30."""
        lib = self.lib
        lib.llama_memory_clear(lib.llama_get_memory(self.ctx), True)
        prompt = (lib.llama_token * 30)(*range(100, 130))
        lib.llama_decode(self.ctx, lib.llama_batch_get_one(prompt, 30))
        token = (lib.llama_token * 1)(lib.llama_sampler_sample(self.chain, self.ctx, -1))
        began = time.perf_counter()
        for _ in range(TOKENS):
            lib.llama_decode(self.ctx, lib.llama_batch_get_one(token, 1))
            token[0] = lib.llama_sampler_sample(self.chain, self.ctx, -1)
        return TOKENS / (time.perf_counter() - began)
