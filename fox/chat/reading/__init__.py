"""What a model wrote, read as text, thoughts and tool calls while it comes. One small file a family."""

from fox.chat.reading.calling import is_object
from fox.chat.reading.families import FAMILIES, HERMES, family_named, family_of
from fox.chat.reading.family import CallSyntax, Family, Reader

__all__ = ["FAMILIES", "HERMES", "CallSyntax", "Family", "Reader", "family_named", "family_of", "is_object"]
