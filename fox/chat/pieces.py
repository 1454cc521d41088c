"""What a model's answer consists of."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Content:
    """Text for the reader."""

    text: str


@dataclass(frozen=True, slots=True)
class Reasoning:
    """Text of the model's thought."""

    text: str


@dataclass(frozen=True, slots=True)
class Call:
    """The beginning of a tool call; the first has the index 0. `id`: where the model itself gave it one."""

    index: int
    name: str
    id: str | None = None


@dataclass(frozen=True, slots=True)
class Arguments:
    """The next part of that call's arguments, JSON text in all."""

    index: int
    text: str


Piece = Content | Reasoning | Call | Arguments
