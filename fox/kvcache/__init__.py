"""Which room of the model's KV memory each sequence holds. Pure: its answers are moves that the engine applies."""

from fox.kvcache.ledger import KVCache
from fox.kvcache.moves import Drop, Move

__all__ = ["Drop", "KVCache", "Move"]
