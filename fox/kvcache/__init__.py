"""Which room of the model's KV memory each sequence holds. Pure: knows no model; its answers are moves the engine applies."""

from fox.kvcache.ledger import KVCache
from fox.kvcache.moves import Drop, Move

__all__ = ["Drop", "KVCache", "Move"]
