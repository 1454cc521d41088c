"""What may be given as a text, as several, as token ids, or as several lists of those."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import Discriminator, Field, StringConstraints, Tag

from fox.api.openai.shapes import TokenIds

MOST_INPUTS = 16_384


def _kind(value: object) -> str:
    if not isinstance(value, list):
        return "<text>"
    first = value[0] if value else ""
    return "<tokens>" if isinstance(first, int) else "<token lists>" if isinstance(first, list) else "<texts>"


Text = Annotated[str, StringConstraints(min_length=1)]
Tokens = Annotated[TokenIds, Field(min_length=1)]
Several = Field(min_length=1, max_length=MOST_INPUTS)
TokenLists = Annotated[list[Tokens], Several, Tag("<token lists>")]
Kinds = Discriminator(_kind)
Inputs = Annotated[
    Annotated[Text, Tag("<text>")]
    | Annotated[list[Text], Several, Tag("<texts>")]
    | Annotated[Tokens, Tag("<tokens>")]
    | TokenLists,
    Kinds,
]

Prompts = Annotated[
    Annotated[str, Tag("<text>")]
    | Annotated[list[str], Several, Tag("<texts>")]
    | Annotated[Tokens, Tag("<tokens>")]
    | TokenLists,
    Kinds,
]
"""A prompt may be empty where the vocabulary begins every text with a token."""


def each(given: str | Sequence[str | int | Sequence[int]]) -> list[str | tuple[int, ...]]:
    """The inputs one by one: texts, and lists of token ids."""
    if isinstance(given, str):
        return [given]
    if isinstance(given[0], int):
        return [tuple(given)]  # type: ignore[arg-type]
    return [one if isinstance(one, str) else tuple(one) for one in given]  # type: ignore[arg-type]
