"""One model in one child process: the parent's handle, the border, and the child's step loop."""

from fox.engine.handle import Engine, Generation
from fox.engine.messages import EngineStats
from fox.engine.options import EngineOptions, EngineSpec

__all__ = ["Engine", "EngineOptions", "EngineSpec", "EngineStats", "Generation"]
