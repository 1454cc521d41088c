"""What the engine must do to the model's memory so that it agrees with the ledger. Data, never calls."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Drop:
    """Forget every cell of sequence `seq`."""

    seq: int


Move = Drop
