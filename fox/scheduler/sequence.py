"""One request inside the scheduler, and the states it may pass through."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum


class State(Enum):
    WAITING = "waiting"
    PREFILLING = "prefilling"
    DECODING = "decoding"
    FINISHED = "finished"


TRANSITIONS: dict[State, frozenset[State]] = {
    State.WAITING: frozenset({State.PREFILLING, State.FINISHED}),
    State.PREFILLING: frozenset({State.DECODING, State.WAITING, State.FINISHED}),
    State.DECODING: frozenset({State.WAITING, State.FINISHED}),
    State.FINISHED: frozenset(),
}


@dataclass(slots=True)
class Sequence:
    """A request's tokens, prompt and answer in one list, and how many of them are in the KV memory.

    `seq` is the id it holds in the KV memory while it runs. The last token of a decoding sequence is always the one
    that was sampled and not computed yet: `computed == len(tokens) - 1`.
    """

    id: str
    tokens: list[int]
    prompt_tokens: int
    state: State = State.WAITING
    seq: int | None = None
    computed: int = 0
    preemptions: int = field(default=0)

    @property
    def remaining(self) -> int:
        """Tokens that must be computed before the next one can be sampled."""
        return len(self.tokens) - self.computed

    @property
    def generated(self) -> int:
        return len(self.tokens) - self.prompt_tokens

    def become(self, state: State) -> None:
        assert state in TRANSITIONS[self.state], f"{self.state} -> {state}"
        self.state = state
