"""Whether the AMX code of this llama.cpp build works. Some compilers break it: gcc sees no reader of the tile
configuration, drops most of it, and the first matrix product dies of an illegal instruction
(ggml-org/llama.cpp#26954). `scripts/install` builds around that; a build from elsewhere is tried out here first.
"""

from __future__ import annotations

import ctypes
import subprocess
import sys
from functools import cache
from importlib import import_module
from itertools import count, takewhile
from pathlib import Path
from typing import Any

CPU = 0  # enum ggml_backend_dev_type
F32, Q8_0 = 0, 8  # enum ggml_type
WIDTH, ROWS = 256, 32
PATIENCE_S = 20.0
NBYTES = WIDTH * ROWS // 32 * 34  # of Q8_0: blocks of 32 values in 34 bytes
ADVICE = (
    "llama.cpp's AMX code is broken in this build: computing without it, slower; build llama-cpp-python with \
CXXFLAGS='-fno-tree-dse -fno-dse'"
)


@cache
def is_broken() -> bool:
    """True where a matrix product with AMX kills its process: one is tried in a process of its own, in a moment, if
    the processor has AMX at all. (A fork would not do: an OpenMP that has run once hangs in a forked child.)"""
    try:
        if "amx_int8" not in Path("/proc/cpuinfo").read_text(errors="replace"):
            return False
    except OSError:
        return False
    trial = [sys.executable, "-m", __name__]
    null = subprocess.DEVNULL
    try:
        ended = subprocess.run(trial, check=False, stdin=null, stdout=null, stderr=null, timeout=PATIENCE_S)  # noqa: S603
    except subprocess.TimeoutExpired:
        return True
    return ended.returncode < 0


class _InitParams(ctypes.Structure):
    _fields_ = (("mem_size", ctypes.c_size_t), ("mem_buffer", ctypes.c_void_p), ("no_alloc", ctypes.c_bool))


def multiply() -> bool:
    """One product with weights in ggml's AMX buffer. False where this build has no such buffer."""
    device = _call("ggml_backend_dev_by_type", CPU)
    amx = [
        b
        for b in _extra_buffers(device)
        if _call("ggml_backend_buft_name", b, result=ctypes.c_char_p) == b"AMX"
    ]
    if not amx:
        return False
    weights, graph = (_call("ggml_init", _InitParams(1 << 20, None, alloc)) for alloc in (True, False))
    a = _call("ggml_new_tensor_2d", weights, Q8_0, ctypes.c_int64(WIDTH), ctypes.c_int64(ROWS))
    _call("ggml_backend_alloc_ctx_tensors_from_buft", weights, amx[0])
    _call("ggml_backend_tensor_set", a, bytes(NBYTES), ctypes.c_size_t(0), ctypes.c_size_t(NBYTES))
    b = _call("ggml_new_tensor_2d", graph, F32, ctypes.c_int64(WIDTH), ctypes.c_int64(ROWS))
    steps = _call("ggml_new_graph", graph)
    _call("ggml_build_forward_expand", steps, _call("ggml_mul_mat", graph, a, b))
    _call("ggml_backend_graph_compute", _call("ggml_backend_dev_init", device, None), steps)
    return True


def _extra_buffers(device: ctypes.c_void_p) -> list[ctypes.c_void_p]:
    registry = _call("ggml_backend_dev_backend_reg", device)
    found = _call("ggml_backend_reg_get_proc_address", registry, b"ggml_backend_dev_get_extra_bufts")
    if not found:
        return []
    ask = ctypes.CFUNCTYPE(ctypes.POINTER(ctypes.c_void_p), ctypes.c_void_p)(found.value or 0)
    buffers = ask(device)
    return [ctypes.c_void_p(b) for b in takewhile(bool, (buffers[at] for at in count()))]


def _call(name: str, *arguments: Any, result: Any = ctypes.c_void_p) -> Any:
    """A ggml function that llama-cpp-python does not declare. Pointers come and go as `c_void_p`."""
    function = import_module("llama_cpp._ggml").libggml[name]
    function.restype = result
    value = function(*arguments)
    return ctypes.c_void_p(value) if result is ctypes.c_void_p else value


if __name__ == "__main__":
    multiply()
