"""One model in one child process: the parent's handle, the border, and the child's step loop."""

from fox.engine.handle import Engine
from fox.engine.messages import EngineStats, Tokens, Vectors
from fox.engine.options import EngineOptions, EngineSpec
from fox.engine.stream import Generation

__all__ = ["Engine", "EngineOptions", "EngineSpec", "EngineStats", "Generation", "Tokens", "Vectors"]
