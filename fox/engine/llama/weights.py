"""GGUF files to loaded weights."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

from fox.engine import machine
from fox.engine.llama import amx
from fox.engine.llama.bindings import lib
from fox.engine.llama.log import LogTail
from fox.engine.options import EngineOptions
from fox.errors import ModelLoadFailed


def load_weights(name: str, path: Path, log: LogTail) -> Any:
    """The model of a GGUF. Raises ModelLoadFailed with the reason, also for what cannot generate text."""
    if path.is_dir():
        raise ModelLoadFailed(name, "it is a directory, not a GGUF file")
    lib.llama_backend_init()
    params = lib.llama_model_default_params()
    if amx.is_broken():
        log.warn(amx.ADVICE)
        params.use_extra_bufts = False
    model = lib.llama_model_load_from_file(str(path).encode(), params)
    if not model:
        raise ModelLoadFailed(name, log.reason())
    if lib.llama_model_has_encoder(model) or not lib.llama_model_has_decoder(model):
        raise ModelLoadFailed(name, "an encoder model cannot generate text token by token")
    if lib.llama_vocab_type(lib.llama_model_get_vocab(model)) == 0:
        raise ModelLoadFailed(name, "it has no vocabulary")
    return model


def header_value(model: Any, key: str) -> str:
    """A value of the model's header as text; "" for what it does not say."""
    buffer = ctypes.create_string_buffer(256)
    found = lib.llama_model_meta_val_str(model, key.encode(), buffer, len(buffer))
    return buffer.value.decode(errors="replace") if found >= 0 else ""


def context_params(options: EngineOptions) -> Any:
    """What every context over loaded weights has in common."""
    params = lib.llama_context_default_params()
    params.n_threads = params.n_threads_batch = options.threads or machine.physical_cores()
    params.no_perf = True
    return params


def has_states(model: Any) -> bool:
    """Whether it has recurrent layers: a state a sequence, instead of cells."""
    return bool(lib.llama_model_is_recurrent(model) or lib.llama_model_is_hybrid(model))


def can_trim(model: Any, *, swa_full: bool) -> bool:
    """Whether a sequence's tail can be removed: not from recurrent states, not where a window has moved on."""
    return not has_states(model) and (swa_full or not lib.llama_model_n_swa(model))
