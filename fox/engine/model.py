"""What the step loop needs of a model: the seam between our engine and whatever computes."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from fox import errors
from fox.generation import Grammar, ModelInfo, PromptPart, Sampling, TokenLogprob
from fox.kvcache import Move, Shape
from fox.scheduler import Chunk, Guesser


class NoRoom(errors.FoxError):
    """The KV memory has no cells for this batch. Nothing was computed; a smaller batch may fit."""


@dataclass(frozen=True, slots=True)
class Lost:
    """Moves that failed: restores into `seqs`, saves under `keys`. What they stood for is computed again."""

    seqs: list[int]
    keys: list[int]


class Matcher(Protocol):
    """One answer's way through a compiled grammar."""

    warnings: tuple[str, ...]

    @property
    def complete(self) -> bool:
        """Nothing but the end may follow."""

    def reset(self) -> None:
        """Back to the grammar's start."""

    def fill(self) -> None:
        """Compute which tokens may come next. May run on another thread, nothing else beside it."""

    def allows(self, token: int) -> bool:
        """Whether this token may come next; after `fill`."""

    def barred(self) -> NDArray[np.bool_]:
        """Shape (vocabulary,): which tokens may not come next; after `fill`."""

    def take(self, token: int) -> None:
        """This token came. Raises EngineFailed where it was not allowed."""

    def take_text(self, text: bytes) -> bool:
        """This text came already; False where the grammar does not go so."""

    def forced(self) -> list[int]:
        """The tokens that must come next, as far as there is no choice."""


class Filter(Protocol):
    """What bars tokens from being chosen."""

    def allows(self, token: int) -> bool:
        """Whether this token may come next."""

    def barred(self) -> NDArray[np.bool_]:
        """Shape (vocabulary,): which tokens may not."""


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

    def sample(self, row: int, *, may_end: bool, only: Filter | None = None) -> int:
        """The next token, from the logits that the last `decode` left for `row`. `may_end=False` bars EOG tokens,
        `only` all but what it allows (neither while `in_graph`); then the row's logits are no longer what the model
        left."""

    def accept(self, token: int) -> None:
        """This token comes next, whatever the logits say."""

    def logits(self, row: int) -> NDArray[np.float32]:
        """A copy of what the model left for `row`, shape (vocabulary,); before `sample`, not while `in_graph`."""

    def logprobs(self, logits: NDArray[np.float32], token: int, rivals: int) -> TokenLogprob:
        """What `token` had of the probability, and the likeliest `rivals`."""

    def close(self) -> None:
        """Free what it holds. Idempotent."""


Vector = NDArray[np.float32]


class Embedder(Protocol):
    """Token lists to vectors. `pooling` is `mean`, `cls`, `last` or `rank`; `context_tokens` the longest input."""

    @property
    def pooling(self) -> str: ...
    @property
    def width(self) -> int: ...
    @property
    def context_tokens(self) -> int: ...

    def tokens(self, text: str) -> list[int]:
        """A text as an input, with the tokens that one begins and ends with. Any thread."""

    def pair(self, query: str, document: str) -> list[int]:
        """Both as the one input of a model that ranks. Any thread."""

    def steps(self, inputs: Sequence[Sequence[int]]) -> Generator[dict[int, Vector]]:
        """Vectors by their inputs' places, one decode a step. Raises EngineFailed, InvalidRequest."""


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

    @property
    def embedder(self) -> Embedder:
        """The model as one that makes vectors."""

    def compile(self, grammar: Grammar) -> Matcher:
        """Raises InvalidRequest where the grammar cannot be honoured. May run on another thread than the rest."""

    def tokenize(self, prompt: Sequence[PromptPart], *, begins: bool = True) -> list[int]:
        """Token ids, BOS once where the vocabulary wants one and the text begins here. Control tokens only from special
        parts."""

    def piece(self, token: int) -> bytes:
        """The printable bytes of a token; nothing for control tokens."""

    def name(self, token: int) -> bytes:
        """What a token prints, or how a control token is spelled."""

    def control(self, spelling: str) -> int | None:
        """The control token that is spelled so."""

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
