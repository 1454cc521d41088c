"""What the engine must do to the model's memory so that it agrees with the ledger. Data, never calls.

The engine applies the moves of a step in the order given, before it decodes.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Drop:
    """Forget every cell of sequence `seq`."""

    seq: int


@dataclass(frozen=True, slots=True)
class Trim:
    """Forget the cells of `seq` at positions `upto` and later."""

    seq: int
    upto: int


@dataclass(frozen=True, slots=True)
class Share:
    """Let `dst` (empty) hold the first `upto` tokens of `src` too. In a pool the cells get a second owner, between
    lanes they are copied. `whole`: `upto` is all that `src` holds."""

    src: int
    dst: int
    upto: int
    whole: bool


@dataclass(frozen=True, slots=True)
class Save:
    """Copy the state of `seq` to the host tier under `key`."""

    seq: int
    key: int


@dataclass(frozen=True, slots=True)
class Restore:
    """Load the state saved under `key` into `seq` (empty)."""

    key: int
    seq: int


@dataclass(frozen=True, slots=True)
class Spill:
    """Move the state of `tokens` saved under `key` from host memory to disk; it may still be restored."""

    key: int
    tokens: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Forget:
    """Free the state saved under `key`."""

    key: int


Move = Drop | Trim | Share | Save | Restore | Spill | Forget
