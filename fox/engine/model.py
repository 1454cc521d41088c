"""What the step loop needs of a model: the seam between our engine and whatever computes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from fox import errors
from fox.generation import ModelInfo, PromptPart, Sampling, TokenLogprob
from fox.kvcache import Move, Shape
from fox.scheduler import Chunk, Guesser


class NoRoom(errors.FoxError):
    """The KV memory has no cells for this batch. Nothing was computed; a smaller batch may fit."""


@dataclass(frozen=True, slots=True)
class Lost:
    """Moves that failed: restores into `seqs`, saves under `keys`. What they stood for is computed again."""

    seqs: list[int]
    keys: list[int]


class Sampler(Protocol):
    """Chooses one answer's tokens, one after the other, and remembers what it chose."""

    @property
    def in_graph(self) -> bool:
        """Whether this step's token was chosen inside the decode graph already."""

    def attach(self, seq: int, *, alone: bool) -> None:
        """The answer runs as sequence `seq`. `alone`: this step wants one token, and any; it may then be chosen inside
        the decode graph."""

    def detach(self) -> None:
        """The answer has left its sequence."""

    def sample(self, row: int, *, may_end: bool) -> int:
        """The next token, from the logits that the last `decode` left for `row`. `may_end=False` bars EOG tokens."""

    def logprobs(self, row: int, token: int, rivals: int) -> TokenLogprob:
        """What `token` had of the probability in `row`, and the likeliest `rivals`; not while `in_graph`."""

    def close(self) -> None:
        """Free what it holds. Idempotent."""


class States(Protocol):
    """Where saved states lie that outlive the process."""

    def found(self) -> list[tuple[Path, list[int], int]]:
        """`(file, tokens, size of the state in bytes)` of what earlier runs left for this model, newest first."""

    def bind(self, key: int, path: Path) -> None:
        """The state in `path` goes by this key."""

    def flush(self) -> None:
        """Wait until everything that was spilled is written."""


class Model(Protocol):
    """One loaded model with its KV memory, and a draft model's guesses if it has one. `tokenize` may be called from
    another thread than the rest."""

    info: ModelInfo
    shape: Shape
    guesser: Guesser | None

    @property
    def states(self) -> States:
        """What outlives it."""

    def tokenize(self, prompt: Sequence[PromptPart]) -> list[int]:
        """Token ids, BOS once where the vocabulary wants one. Control tokens only from special parts."""

    def piece(self, token: int) -> bytes:
        """The printable bytes of a token; nothing for control tokens."""

    def is_end(self, token: int) -> bool:
        """Whether this token ends an answer (any EOG token, not the EOS only)."""

    def apply(self, moves: Sequence[Move]) -> Lost:
        """Carry out cache moves, in order; says which failed."""

    def decode(self, chunks: Sequence[Chunk]) -> list[int]:
        """Compute one batch. Returns, for each chunk, the row of the first token whose logits it wants.

        Raises NoRoom with nothing changed, EngineFailed where the chunks' sequences are lost.
        """

    def sampler(self, sampling: Sampling, prompt: Sequence[int], *, may_end: bool) -> Sampler:
        """A sampler for one answer. `prompt` counts for penalties that look at it; `may_end=False` bars EOG tokens."""
