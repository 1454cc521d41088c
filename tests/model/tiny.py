"""Tiny models of every memory kind, with random weights and a vocabulary of characters: made here, in a second each.

llama.cpp itself says which tensors an architecture has (`llama_model_init_from_user`), we fill them so that a model
hears its past: norms near 1, scales of 1, decays that forget slowly. `save_to_file` makes a GGUF of it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from fox.engine.llama.bindings import lib

WIDTH, LAYERS, CONTEXT, WINDOW = 256, 2, 512, 32
SPECIAL = ("<unk>", "<s>", "</s>")
CHARACTERS = (*SPECIAL, "▁", *map(chr, range(ord("!"), ord("~") + 1)))
UNKNOWN, CONTROL, NORMAL = 2, 3, 1  # token types of a GGUF
TYPES = [UNKNOWN, CONTROL, CONTROL, *[NORMAL] * (len(CHARACTERS) - len(SPECIAL))]
U32, I32, F32, BOOL = 4, 5, 6, 7  # enum gguf_type

Value = int | float | bool | str | list[bool] | list[int]


@dataclass(frozen=True)
class Kind:
    """An architecture and what its header must say beside the usual. `controls`: more control tokens."""

    architecture: str
    keys: dict[str, Value]
    controls: tuple[str, ...] = ()


KINDS = {
    "plain": Kind("llama", {}),
    "windowed": Kind(
        "gemma3", {"attention.sliding_window": WINDOW, "attention.sliding_window_pattern": [True, False]}
    ),
    "windowed-moe": Kind(
        "gpt-oss",
        {
            "attention.sliding_window": WINDOW,
            "attention.sliding_window_pattern": [True, False],
            "expert_count": 2,
            "expert_used_count": 2,
            "expert_feed_forward_length": 384,
        },
    ),
    "recurrent": Kind(
        "mamba2",
        {
            "ssm.inner_size": 512,
            "ssm.conv_kernel": 4,
            "ssm.state_size": 128,
            "ssm.time_step_rank": 2,
            "ssm.group_count": 2,
        },
    ),
    "hybrid": Kind("lfm2", {"shortconv.l_cache": 3, "attention.head_count_kv": [2, 0]}),
    "hybrid-moe": Kind(
        "qwen35moe",
        {
            "expert_count": 2,
            "expert_used_count": 2,
            "expert_feed_forward_length": 384,
            "expert_shared_feed_forward_length": 192,
            "full_attention_interval": 2,
            "rope.dimension_sections": [32, 32, 32, 32],
            "attention.key_length": 128,
            "attention.value_length": 128,
            "ssm.inner_size": 256,
            "ssm.conv_kernel": 4,
            "ssm.state_size": 128,
            "ssm.time_step_rank": 2,
            "ssm.group_count": 2,
        },
    ),
    "mla-moe": Kind(
        "deepseek2",
        {
            "leading_dense_block_count": 1,
            "expert_count": 2,
            "expert_used_count": 2,
            "expert_shared_count": 1,
            "expert_feed_forward_length": 192,
            "expert_gating_func": 2,
            "attention.head_count": 1,
            "attention.head_count_kv": 1,
            "attention.key_length": 576,
            "attention.value_length": 512,
            "attention.key_length_mla": 192,
            "attention.value_length_mla": 128,
            "attention.q_lora_rank": 512,
            "attention.kv_lora_rank": 512,
            "rope.dimension_count": 64,
        },
    ),
}

GAP = ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>")
CODER = {"coder": Kind("llama", {}, GAP)}
ENCODERS = {"encoder": "CLS", "reranker": "RANK", "silent-encoder": None}  # with their pooling


def make(kind: str, path: Path, seed: int = 1) -> Path:
    """Write a model of this kind to `path`."""
    if kind in ENCODERS:
        return _make_encoder(path, ENCODERS[kind], seed)
    ggml = _ggml()
    header = _header(ggml, {**KINDS, **CODER}[kind])
    generator = np.random.default_rng(seed)

    @lib.llama_model_set_tensor_data_t
    def fill(tensor: int, _: Any) -> None:
        name = ggml.ggml_get_name(tensor).decode()
        row = ctypes.cast(tensor + NE_OFFSET, ctypes.POINTER(ctypes.c_int64))[0]
        data = _values(name, ggml.ggml_nelements(tensor), row, generator).astype(np.float32)
        ggml.ggml_backend_tensor_set(tensor, data.ctypes.data_as(ctypes.c_void_p), 0, data.nbytes)

    model = lib.llama_model_init_from_user(header, fill, None, lib.llama_model_default_params())
    assert model, f"llama.cpp makes no {kind} model"
    lib.llama_model_save_to_file(model, str(path).encode())
    lib.llama_model_free(model)
    ggml.gguf_free(header)
    return path


NE_OFFSET = 16  # struct ggml_tensor: type (4, padded to 8), buffer, then ne


def _values(name: str, count: int, row: int, generator: np.random.Generator) -> Any:
    """Weights of variance 1 / row length, so that signals keep their size; the few special tensors by what they do."""
    noise = generator.standard_normal(count)
    if name.endswith("scale") or "rope_freqs" in name:
        return np.ones(count)
    if name.endswith("bias") or "sinks" in name:
        return 0.1 * noise
    if "norm" in name or name.endswith("ssm_d"):
        return 1 + 0.1 * noise
    if name.endswith("ssm_a"):
        return -0.05 - 0.2 * np.abs(noise)
    if "conv" in name and "proj" not in name:
        return 0.5 * noise
    if name == "output.weight":
        noise[: len(SPECIAL) * row] = 0  # never the likeliest
    return noise * (
        0.05 if "token_embd" in name else 1.5 / np.sqrt(row)
    )  # gemma enlarges embeddings 16 times


def _make_encoder(path: Path, pooling: str | None, seed: int) -> Path:
    """A BERT. llama.cpp's own writer leaves out the token embeddings of models that have no output layer."""
    import gguf

    writer = gguf.GGUFWriter(path, "bert")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(384)
    writer.add_head_count(2)
    writer.add_layer_norm_eps(1e-5)
    writer.add_causal_attention(False)
    if pooling:
        writer.add_pooling_type(gguf.PoolingType[pooling])
    writer.add_tokenizer_model("llama")
    writer.add_token_list(CHARACTERS)
    writer.add_token_scores([0.0] * len(CHARACTERS))
    writer.add_token_types(TYPES)
    writer.add_token_type_count(1)
    writer.add_unk_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    generator = np.random.default_rng(seed)
    for name, shape in _encoder_tensors(pooling):
        data = _values(name, int(np.prod(shape)), shape[-1], generator).astype(np.float32)
        writer.add_tensor(name, data.reshape(shape))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _encoder_tensors(pooling: str | None) -> Iterator[tuple[str, tuple[int, ...]]]:
    yield "token_embd.weight", (len(CHARACTERS), WIDTH)
    yield "token_types.weight", (1, WIDTH)
    yield "position_embd.weight", (CONTEXT, WIDTH)
    layers = {"": ("token_embd_norm",)}
    layers |= {f"blk.{layer}.": ("attn_output_norm", "layer_output_norm") for layer in range(LAYERS)}
    for layer, norms in layers.items():
        yield from ((f"{layer}{norm}.{part}", (WIDTH,)) for norm in norms for part in ("weight", "bias"))
    for layer in filter(None, layers):
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            yield f"{layer}{name}.weight", (WIDTH, WIDTH)
        yield f"{layer}ffn_up.weight", (384, WIDTH)
        yield f"{layer}ffn_down.weight", (WIDTH, 384)
    if pooling == "RANK":
        yield "cls.weight", (WIDTH, WIDTH)
        yield "cls.output.weight", (1, WIDTH)


def _header(ggml: Any, kind: Kind) -> Any:
    header = ggml.gguf_init_empty()
    usual: dict[str, Value] = {
        "vocab_size": len(CHARACTERS) + len(kind.controls),
        "context_length": CONTEXT,
        "embedding_length": WIDTH,
        "block_count": LAYERS,
        "feed_forward_length": 384,
        "attention.head_count": 2,
        "attention.head_count_kv": 2,
        "attention.layer_norm_rms_epsilon": 1e-5,
    }
    _set(ggml, header, "general.architecture", kind.architecture)
    for key, value in {**usual, **kind.keys}.items():
        _set(ggml, header, f"{kind.architecture}.{key}", value)
    _vocabulary(ggml, header, kind.controls)
    return header


def _vocabulary(ggml: Any, header: Any, controls: tuple[str, ...]) -> None:
    spelled = (*CHARACTERS, *controls)
    scores = (ctypes.c_float * len(spelled))()
    texts = (ctypes.c_char_p * len(spelled))(*[text.encode() for text in spelled])
    _set(ggml, header, "tokenizer.ggml.model", "llama")
    ggml.gguf_set_arr_str(header, b"tokenizer.ggml.tokens", texts, len(spelled))
    ggml.gguf_set_arr_data(header, b"tokenizer.ggml.scores", F32, scores, len(spelled))
    _set(ggml, header, "tokenizer.ggml.token_type", [*TYPES, *[CONTROL] * len(controls)])
    for name, token in (("unknown", 0), ("bos", 1), ("eos", 2)):
        _set(ggml, header, f"tokenizer.ggml.{name}_token_id", token)


def _set(ggml: Any, header: Any, key: str, value: Value) -> None:
    match value:
        case str():
            ggml.gguf_set_val_str(header, key.encode(), value.encode())
        case float():
            ggml.gguf_set_val_f32(header, key.encode(), value)
        case int():
            ggml.gguf_set_val_u32(header, key.encode(), value)
        case [bool(), *_]:
            array = (ctypes.c_bool * len(value))(*value)
            ggml.gguf_set_arr_data(header, key.encode(), BOOL, array, len(value))
        case list():
            numbers = (ctypes.c_int32 * len(value))(*value)
            ggml.gguf_set_arr_data(header, key.encode(), I32, numbers, len(value))


def _ggml() -> Any:
    """The functions that llama-cpp-python does not declare, with their types."""
    ggml = import_module("llama_cpp._ggml").libggml
    pointer, text, size = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t
    for name, result, arguments in (
        ("gguf_init_empty", pointer, []),
        ("gguf_free", None, [pointer]),
        ("gguf_set_val_str", None, [pointer, text, text]),
        ("gguf_set_val_f32", None, [pointer, text, ctypes.c_float]),
        ("gguf_set_val_u32", None, [pointer, text, ctypes.c_uint32]),
        ("gguf_set_arr_str", None, [pointer, text, pointer, size]),
        ("gguf_set_arr_data", None, [pointer, text, ctypes.c_int, pointer, size]),
        ("ggml_get_name", text, [pointer]),
        ("ggml_nelements", ctypes.c_int64, [pointer]),
        ("ggml_backend_tensor_set", None, [pointer, pointer, size, size]),
    ):
        function = getattr(ggml, name)
        function.restype, function.argtypes = result, arguments
    return ggml
