"""The low-level bindings of llama-cpp-python, without its high-level API."""

from __future__ import annotations

import importlib.util
import sys
import types
from typing import Any


def _bindings() -> Any:
    """`llama_cpp.llama_cpp` without the package's `__init__`, which would import the whole high-level API (0.2 s)."""
    if "llama_cpp" not in sys.modules:
        spec = importlib.util.find_spec("llama_cpp")
        if spec is None:
            raise ModuleNotFoundError("llama_cpp")
        package = types.ModuleType("llama_cpp")
        package.__path__ = spec.submodule_search_locations or []
        sys.modules["llama_cpp"] = package
    return importlib.import_module("llama_cpp.llama_cpp")


lib = _bindings()
