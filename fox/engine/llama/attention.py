"""How KV cells are stored and read: ggml's numbers for their types, and when flash attention pays."""

from __future__ import annotations

from fox.engine.llama.bindings import lib
from fox.engine.options import EngineOptions

AUTO, OFF, ON = -1, 0, 1  # enum llama_flash_attn_type
BF16 = 30  # enum ggml_type; the bindings name all others
FLOATS = ("f32", "f16", "bf16")


def kv_type(name: str) -> int:
    """ggml's number for a KV type such as `f16` or `q8_0`. The settings' reader checked the name."""
    return BF16 if name == "bf16" else int(getattr(lib, f"GGML_TYPE_{name.upper()}"))


def k_type(options: EngineOptions) -> str:
    return options.type_k or options.type_kv


def v_type(options: EngineOptions) -> str:
    return options.type_v or options.type_kv


def flash_attention(options: EngineOptions, *, on_gpu: bool) -> int:
    """llama.cpp decides for GPUs. On a CPU its flash attention reads a past 3 to 15 times slower than plain attention
    does, for every batch of fewer than 64 rows (docs/decisions/0002), so there it is only for quantized V cells, which
    cannot be read without it."""
    if options.flash_attn != "auto":
        return ON if options.flash_attn == "on" else OFF
    if on_gpu:
        return AUTO
    return OFF if v_type(options) in FLOATS else ON
