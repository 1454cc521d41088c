"""Which model makes room for another. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TypeVar


class Candidate(Protocol):
    @property
    def idle(self) -> bool: ...
    @property
    def used_at(self) -> float: ...


C = TypeVar("C", bound=Candidate)


def longest_idle(loaded: Iterable[C]) -> C | None:
    """The one that nobody uses and whose last use is longest ago; None where all are used."""
    return min((one for one in loaded if one.idle), key=lambda one: one.used_at, default=None)
