"""The engine room's options, and what names one engine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal


@dataclass(frozen=True)
class EngineOptions:
    """`max_context_len` tokens of prompt and answer (None: what the model was trained for, as far as memory allows),
    `max_batch_size` sequences decoded together, `max_queue_depth` waiting requests (0: no bound), `max_prefill_chunk`
    prompt tokens a step, `threads` for computing (None: physical cores), `echo_delay_s` the time an echo step takes."""

    max_context_len: int | None = None
    max_batch_size: int = 32
    max_queue_depth: int = 512
    max_prefill_chunk: int = 512
    threads: int | None = None
    block_size: int = 16
    echo_delay_s: float = 0.0


@dataclass(frozen=True)
class EngineSpec:
    """Which model to load, with what options."""

    name: str
    kind: Literal["llama", "echo"]
    path: Path | None
    options: EngineOptions
