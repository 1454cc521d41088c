"""One request inside the scheduler, and the states it may pass through."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

MIDDLE_PRIORITY = 128


class State(Enum):
    WAITING = "waiting"
    PREFILLING = "prefilling"
    DECODING = "decoding"
    SWAPPED = "swapped"
    FINISHED = "finished"


TRANSITIONS: dict[State, frozenset[State]] = {
    State.WAITING: frozenset({State.PREFILLING, State.FINISHED}),
    State.PREFILLING: frozenset({State.DECODING, State.WAITING, State.SWAPPED, State.FINISHED}),
    State.DECODING: frozenset({State.PREFILLING, State.WAITING, State.SWAPPED, State.FINISHED}),
    State.SWAPPED: frozenset({State.PREFILLING, State.WAITING, State.FINISHED}),
    State.FINISHED: frozenset(),
}


@dataclass(slots=True)
class Sequence:
    """A request's tokens, prompt and answer in one list, and how many of them are in the KV memory.

    `seq` is the id it holds in the KV memory while it runs. Of a decoding sequence all is computed but the
    tokens that came last: the one that was sampled, and those it forced. `cached` of the prompt's tokens were found,
    in `tier`. `arrived`: how many prompt tokens had been served to all when it came. `swapped`: the key of its saved
    state. `joins`: the sequence that computes a prefix both share, and how much of it.
    """

    id: str
    tokens: list[int]
    priority: int = MIDDLE_PRIORITY
    reuse: bool = True
    arrived: int = 0
    state: State = State.WAITING
    seq: int | None = None
    computed: int = 0
    cached: int = 0
    tier: str | None = None
    swapped: int | None = None
    checkpoint_at: int = 0
    preemptions: int = 0
    joins: tuple[Sequence, int] | None = None
    draft: list[int] = field(default_factory=list)

    @property
    def remaining(self) -> int:
        """Tokens that must be computed before the next one can be sampled."""
        return len(self.tokens) - self.computed

    @property
    def weight(self) -> float:
        """1 at the middle priority, about 2 at the highest, near 0 at the lowest."""
        return (1 + self.priority) / (1 + MIDDLE_PRIORITY)

    def become(self, state: State) -> None:
        assert state in TRANSITIONS[self.state], f"{self.state} -> {state}"
        self.state = state
