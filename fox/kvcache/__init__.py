"""Which tokens each sequence holds in the model's memory. Pure: its answers are moves that the engine applies."""

from fox.kvcache.ledger import KVCache, Opened
from fox.kvcache.moves import Drop, Forget, Move, Restore, Save, Share, Spill, Trim
from fox.kvcache.shape import Shape

__all__ = [
    "Drop",
    "Forget",
    "KVCache",
    "Move",
    "Opened",
    "Restore",
    "Save",
    "Shape",
    "Share",
    "Spill",
    "Trim",
]
