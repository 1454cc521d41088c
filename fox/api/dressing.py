"""What a model brings to every conversation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fox.registry.recipe import Recipe


def dressed(
    messages: Sequence[Mapping[str, Any]], recipe: Recipe, system_prompt: str
) -> list[Mapping[str, Any]]:
    """The conversation after the model's own messages, and all behind a system message: one of its own, else the
    model's, else the server's."""
    first = 1 if messages and messages[0]["role"] == "system" else 0
    turns = [*messages[:first], *recipe.messages, *messages[first:]]
    system = recipe.system or system_prompt
    if system and all(turn["role"] != "system" for turn in turns):
        turns.insert(0, {"role": "system", "content": system})
    return turns
