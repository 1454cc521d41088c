"""Messages to prompt, by the model's own template. Pure."""

from fox.chat.template import FALLBACK_TEMPLATE, ChatTemplate

__all__ = ["FALLBACK_TEMPLATE", "ChatTemplate"]
