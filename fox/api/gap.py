"""The prompt for what stands between two texts."""

from __future__ import annotations

from fox.engine import Engine
from fox.errors import InvalidRequest
from fox.generation import PromptPart


def gap(engine: Engine, before: str, behind: str, param: str) -> tuple[PromptPart, ...]:
    """Raises InvalidRequest where the model was not trained for that."""
    if engine.info.fim is None:
        raise InvalidRequest(f"`{param}`: the vocabulary of `{engine.name}` cannot mark a gap", param)
    prefix, suffix, middle = engine.info.fim
    texts = ((prefix, True), (before, False), (suffix, True), (behind, False), (middle, True))
    return tuple(PromptPart(text, special) for text, special in texts)
