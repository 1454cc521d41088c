"""What the step loop needs of a model: the seam between our engine and whatever computes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from fox import errors
from fox.generation import ModelInfo, PromptPart, Sampling
from fox.kvcache import Move
from fox.scheduler import Chunk


class NoRoom(errors.FoxError):
    """The KV memory has no cells for this batch. Nothing was computed; a smaller batch may fit."""


class Sampler(Protocol):
    """Chooses one answer's tokens, one after the other, and remembers what it chose."""

    def sample(self, row: int, *, may_end: bool) -> int:
        """The next token, from the logits that the last `decode` left for `row`. `may_end=False` bars EOG tokens."""

    def close(self) -> None:
        """Free what it holds. Idempotent."""


class Model(Protocol):
    """One loaded model with its KV memory. `tokenize` may be called from another thread than the rest."""

    info: ModelInfo
    pool_tokens: int

    def tokenize(self, prompt: Sequence[PromptPart]) -> list[int]:
        """Token ids, BOS once where the vocabulary wants one. Control tokens only from special parts."""

    def piece(self, token: int) -> bytes:
        """The printable bytes of a token; nothing for control tokens."""

    def is_end(self, token: int) -> bool:
        """Whether this token ends an answer (any EOG token, not the EOS only)."""

    def apply(self, moves: Sequence[Move]) -> None:
        """Carry out cache moves, in order."""

    def decode(self, chunks: Sequence[Chunk]) -> list[int]:
        """Compute one batch. Returns, for each chunk, the row whose logits follow its last token.

        Raises NoRoom with nothing changed, EngineFailed where the chunks' sequences are lost.
        """

    def sampler(self, sampling: Sampling, prompt: Sequence[int]) -> Sampler:
        """A sampler for one answer. `prompt` counts for penalties that look at it."""
