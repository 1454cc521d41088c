"""llama.cpp behind the Model protocol. The only room that knows ctypes; it uses the low-level bindings alone."""

from fox.engine.llama.model import LlamaModel

__all__ = ["LlamaModel"]
