"""The accelerators that ggml drives on this machine, and the memory they have left."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from importlib import import_module
from typing import Any

GPU, INTEGRATED_GPU = 1, 2  # enum ggml_backend_dev_type


@dataclass(frozen=True)
class Memory:
    """Of all devices that hold layers together, in bytes."""

    free_bytes: int
    total_bytes: int


def gpu_memory() -> Memory | None:
    """None on a machine, or with a llama.cpp build, that computes on the CPU alone."""
    ggml = _ggml()
    devices = [ggml.ggml_backend_dev_get(at) for at in range(ggml.ggml_backend_dev_count())]
    gpus = [d for d in devices if ggml.ggml_backend_dev_type(d) in (GPU, INTEGRATED_GPU)]
    if not gpus:
        return None
    free = total = 0
    for device in gpus:
        left, all_ = ctypes.c_size_t(), ctypes.c_size_t()
        ggml.ggml_backend_dev_memory(device, ctypes.byref(left), ctypes.byref(all_))
        free, total = free + left.value, total + all_.value
    return Memory(free, total)


def _ggml() -> Any:
    """llama-cpp-python declares none of these functions; the library it loads has them."""
    ggml = import_module("llama_cpp._ggml").libggml
    ggml.ggml_backend_dev_count.restype = ctypes.c_size_t
    ggml.ggml_backend_dev_get.argtypes = [ctypes.c_size_t]
    ggml.ggml_backend_dev_get.restype = ctypes.c_void_p
    ggml.ggml_backend_dev_type.argtypes = [ctypes.c_void_p]
    size = ctypes.POINTER(ctypes.c_size_t)
    ggml.ggml_backend_dev_memory.argtypes = [ctypes.c_void_p, size, size]
    ggml.ggml_backend_dev_memory.restype = None
    return ggml
