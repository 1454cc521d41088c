"""How large a model's KV memory is, and what shape of it fits: measured on the model, not guessed from its header."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from fox.engine import machine
from fox.engine.llama.bindings import lib
from fox.engine.llama.devices import Memory, gpu_memory
from fox.engine.options import EngineOptions
from fox.kvcache import Shape

CPU_POOL_BYTES = 1 << 30  # cleared at every load, 0.3 s a GiB
CPU_LANES_PART = 8  # of the machine's memory, where that holds a whole context for every sequence
SMALLEST_CONTEXT_TOKENS = 256
AUTO_CPU_CONTEXT_TOKENS = 8192
MOST_SEQUENCES = 256
DEFAULT_HOST_BYTES = 2 << 30
PROBE_TOKENS = 256


@dataclass(frozen=True)
class StateSizes:
    """Bytes of KV memory: `token` for each token of full attention, `window_token` for each token that a sliding window
    still sees, `fixed` a sequence (recurrent and convolution states)."""

    token: int
    window_token: int
    fixed: int

    def saved(self) -> tuple[int, int]:
        """`(bytes of a saved state, bytes more for each of its tokens)`, an upper bound for windowed models."""
        return self.fixed, self.token + self.window_token


@dataclass(frozen=True)
class Layout:
    """The context to open: `cells` in all for `slots` sequences, in lanes of their own or in one pool."""

    context_tokens: int
    cells: int
    slots: int
    parallel: int
    lanes: bool


def measure(model: Any, params: Any) -> StateSizes | None:
    """Decode two tokens in a small context and look how its saved state grows: exact for every architecture. None: it
    keeps no state at all, for it is an encoder."""
    params.n_ctx, params.n_seq_max, params.n_batch, params.n_ubatch = PROBE_TOKENS, 1, 8, 8
    ctx = lib.llama_init_from_model(model, params)
    if not ctx:
        return StateSizes(0, 0, 0)
    try:
        if not lib.llama_get_memory(ctx):
            return None
        sizes = []
        for at in range(2):
            token = (lib.llama_token * 1)(at)
            if lib.llama_decode(ctx, lib.llama_batch_get_one(token, 1)) != 0:
                return StateSizes(0, 0, 0)
            sizes.append((lib.llama_state_seq_get_size_ext(ctx, 0, 0), _partial_bytes(ctx)))
    finally:
        lib.llama_free(ctx)
    (whole, partial), (whole2, partial2) = sizes
    window = partial2 - partial
    grows = max(1, whole2 - whole)
    return StateSizes(grows - window, window, max(0, whole - grows))


def _partial_bytes(ctx: Any) -> int:
    """The part of a state that windows and recurrent layers hold; all of it where there is no other."""
    if not _has_parts(ctx):
        return 0
    return int(lib.llama_state_seq_get_size_ext(ctx, 0, lib.LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY))


def _has_parts(ctx: Any) -> bool:
    model = lib.llama_get_model(ctx)
    return bool(lib.llama_model_n_swa(model) or lib.llama_model_is_hybrid(model))


def budget_bytes(options: EngineOptions, gpu: Memory | None) -> int:
    """How much memory the cells may take, with the weights in place: of the GPUs where there are any."""
    if gpu:
        return int(gpu.free_bytes * options.gpu_memory_fraction)
    free = int(machine.available_memory_bytes() * options.gpu_memory_fraction)
    return min(max(CPU_POOL_BYTES, machine.total_memory_bytes() // CPU_LANES_PART), free // 2)


def layouts(sizes: StateSizes, trained_tokens: int, options: EngineOptions) -> Iterator[Layout]:
    """What to open: the layout that fits the budget, then ever smaller ones, should there be no such room after all."""
    gpu, last = gpu_memory(), None
    budget = budget_bytes(options, gpu)
    if not gpu:
        trained_tokens = min(trained_tokens, AUTO_CPU_CONTEXT_TOKENS)
    while budget:
        layout = choose(
            sizes, trained_tokens, options, budget, budget if gpu else min(budget, CPU_POOL_BYTES)
        )
        if layout != last:
            yield layout
        budget, last = budget // 2, layout


def choose(
    sizes: StateSizes, trained_tokens: int, options: EngineOptions, budget: int, pool_budget: int
) -> Layout:
    """Lanes where a whole context for every sequence fits the budget, else one pool in which any request may use a
    whole context. Without an explicit length, the context is what the model was trained for and what fits."""
    per_token = max(1, sizes.token or sizes.window_token)
    affordable = max(SMALLEST_CONTEXT_TOKENS, budget // per_token) if sizes.token else 1 << 20
    context = options.max_context_len or min(trained_tokens, affordable)
    most = MOST_SEQUENCES if not sizes.fixed else max(1, min(MOST_SEQUENCES, budget // sizes.fixed))
    parallel = min(options.max_batch_size, most)
    lanes = options.kv_layout == "lanes" or (options.kv_layout == "auto" and parallel * context <= affordable)
    if lanes:
        return Layout(context, parallel * context, parallel, parallel, lanes=True)
    cells = max(context, min(parallel * context, pool_budget // per_token if sizes.token else affordable))
    return Layout(context, cells, min(most, 2 * parallel), parallel, lanes=False)


def shape(layout: Layout, cells: int, sizes: StateSizes, options: EngineOptions, can_trim: bool) -> Shape:
    """The ledger's view of an opened context of `cells` cells."""
    size = options.block_size
    blocks = layout.slots * (cells // layout.slots // size) if layout.lanes else cells // size
    fixed, token = sizes.saved()
    return Shape(
        slots=layout.slots,
        blocks=blocks,
        block_size=size,
        by_copy=layout.lanes,
        can_trim=can_trim,
        reuse=options.prefix_cache,
        host_bytes=host_bytes(options),
        disk_bytes=options.kv_disk_mb << 20 if options.kv_dir else 0,
        token_bytes=token,
        state_bytes=fixed,
    )


def host_bytes(options: EngineOptions) -> int:
    """The host tier's budget: as set, in MiB or as a part of the GPUs' memory (of the machine's, where there is none);
    else the smaller of 2 GiB and an eighth of the machine's memory."""
    if options.kv_host_mb is not None:
        return options.kv_host_mb << 20
    if options.swap_fraction is not None:
        gpu = gpu_memory()
        return int(options.swap_fraction * (gpu.total_bytes if gpu else machine.total_memory_bytes()))
    return min(DEFAULT_HOST_BYTES, machine.total_memory_bytes() // 8)
