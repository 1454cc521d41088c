"""Messages to prompt and back, by the model's own template and ways. Pure."""

from fox.chat.fallback import FALLBACK_TEMPLATE
from fox.chat.model import Ask, ChatModel, Turn
from fox.chat.pieces import Arguments, Call, Content, Piece, Reasoning
from fox.chat.template import ChatTemplate

__all__ = [
    "FALLBACK_TEMPLATE",
    "Arguments",
    "Ask",
    "Call",
    "ChatModel",
    "ChatTemplate",
    "Content",
    "Piece",
    "Reasoning",
    "Turn",
]
