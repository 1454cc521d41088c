"""The engine room's options, and what names one engine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal


@dataclass(frozen=True)
class EngineOptions:
    """The flags of the engine room.

    `max_context_len` tokens of prompt and answer (None: what the model was trained for, as far as memory allows),
    `max_batch_size` sequences decoded together, `max_queue_depth` waiting requests (0: no bound), `max_prefill_chunk`
    prompt tokens a step, `threads` for computing (None: physical cores), `echo_delay_s` the time an echo step takes.

    KV memory: blocks of `block_size` tokens; `kv_layout`; `kv_host_mb` of host memory for states (None: the part
    `swap_fraction` of the GPUs' memory; None too: the smaller of 2048 and an eighth of memory), `kv_disk_mb` for those
    in `kv_dir`, which survive a restart; `gpu_memory_fraction` of what is free; `prefix_cache` off computes all from
    scratch; `type_k` and `type_v` override `type_kv`; `swa_full` keeps what sliding windows have left behind.
    Steps: prompts may delay one by `step_target_ms` while somebody decodes. `speculative`: drafts of `spec_draft_len`
    tokens by lookup of the last `spec_ngram`; else `draft_model` guesses, a small GGUF of the same vocabulary.
    `context_shift` rolls a full context, keeping its first `context_keep`.
    """

    max_context_len: int | None = None
    max_batch_size: int = 32
    max_queue_depth: int = 512
    max_prefill_chunk: int = 512
    threads: int | None = None
    block_size: int = 16
    kv_layout: Literal["auto", "lanes", "pool"] = "auto"
    kv_host_mb: int | None = None
    swap_fraction: float | None = None
    kv_dir: Path | None = None
    kv_disk_mb: int = 4096
    gpu_memory_fraction: float = 0.85
    prefix_cache: bool = True
    type_kv: str = "f16"
    type_k: str | None = None
    type_v: str | None = None
    flash_attn: Literal["auto", "on", "off"] = "auto"
    swa_full: bool = False
    step_target_ms: int = 100
    speculative: bool = False
    spec_ngram: int = 2
    spec_draft_len: int = 4
    draft_model: Path | None = None
    context_shift: bool = False
    context_keep: int = 0
    echo_delay_s: float = 0.0


@dataclass(frozen=True)
class EngineSpec:
    """Which model to load, with what options, and which LoRA `adapters` over it, each at full strength."""

    name: str
    kind: Literal["llama", "echo"]
    path: Path | None
    options: EngineOptions
    adapters: tuple[Path, ...] = ()
