"""The child of `fox.engine.quantizing`: `python -m fox.engine.llama.quantize SOURCE TARGET TYPE`."""

from __future__ import annotations

import ctypes
import sys

from fox.engine.llama.bindings import lib
from fox.engine.llama.log import LogTail
from fox.engine.quantizing import TYPES


def main(source: str, target: str, kind: str) -> int:
    """The exit code."""
    log = LogTail(lib)
    lib.llama_backend_init()
    params = lib.llama_model_quantize_default_params()
    params.ftype = TYPES[kind]
    if lib.llama_model_quantize(source.encode(), target.encode(), ctypes.byref(params)):
        log.warn(log.reason())
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:4]))
