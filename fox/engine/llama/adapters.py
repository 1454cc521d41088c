"""LoRA adapters: small GGUFs that change what a model's weights say."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fox.engine.llama.bindings import lib
from fox.engine.llama.log import LogTail
from fox.errors import ModelLoadFailed

FULL_STRENGTH = 1.0


class Adapters:
    """Those of one model, loaded; to be applied to each of its contexts."""

    def __init__(self, loaded: Sequence[Any]) -> None:
        count = len(loaded)
        self._loaded = (lib.llama_adapter_lora_p_ctypes * count)(*loaded)
        self._scales = (ctypes.c_float * count)(*[FULL_STRENGTH] * count)

    def apply(self, ctx: Any) -> None:
        if self._loaded:
            lib.llama_set_adapters_lora(ctx, self._loaded, len(self._loaded), self._scales)


def load_adapters(name: str, model: Any, paths: Sequence[Path], log: LogTail) -> Adapters:
    """Raises ModelLoadFailed where one does not fit the model."""
    loaded = []
    for path in paths:
        adapter = lib.llama_adapter_lora_init(model, str(path).encode())
        if not adapter:
            raise ModelLoadFailed(name, f"its adapter {path.name}: {log.reason()}")
        loaded.append(adapter)
    return Adapters(loaded)
