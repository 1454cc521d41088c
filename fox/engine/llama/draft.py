"""A smaller model with the same vocabulary that guesses what the larger one will say next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from fox.engine.llama.batch import Batch
from fox.engine.llama.bindings import lib
from fox.engine.llama.log import LogTail
from fox.engine.llama.vocabulary import Vocabulary
from fox.engine.llama.weights import can_trim, context_params, load_weights
from fox.engine.options import EngineOptions
from fox.errors import FoxError, ModelLoadFailed
from fox.kvcache.prefix import common_prefix
from fox.scheduler import Chunk

SEQUENCES = 4
SURE = 0.4  # a guess that its own author thinks less likely is rarely worth a row of the larger model's batch
CATCH_UP_TOKENS = 128  # of a text it has not read yet, a step: running streams must not wait for it
MOST_EXTRA_TOKENS = 128  # by which vocabularies of one family differ at their ends


class Unfit(FoxError):  # noqa: N818 - what it is, as the other refusals
    """This draft model cannot guess for this model."""


@dataclass(slots=True)
class Reader:
    """One text that is being followed: its tokens in the cells of sequence `seq`."""

    seq: int
    tokens: list[int] = field(default_factory=list)


class DraftModel:
    """Follows up to SEQUENCES texts, in cells for `context_tokens` tokens of all of them together.

    Raises ModelLoadFailed, and Unfit for a model that loads but cannot guess for one with the vocabulary `vocab`."""

    def __init__(
        self, path: Path, options: EngineOptions, vocab: Vocabulary, context_tokens: int, log: LogTail
    ) -> None:
        self._model = load_weights(path.name, path, log)
        self._vocab = Vocabulary(self._model)
        self._shared_tokens = min(self._vocab.size, vocab.size)
        self._refuse_unfit(vocab)
        params = context_params(options)
        params.n_ctx, params.n_seq_max, params.kv_unified = context_tokens, SEQUENCES, True
        params.n_batch = SEQUENCES * CATCH_UP_TOKENS
        params.swa_full = True
        self._ctx = lib.llama_init_from_model(self._model, params)
        if not self._ctx:
            raise ModelLoadFailed(path.name, log.reason())
        self._memory = lib.llama_get_memory(self._ctx)
        self._batch = Batch(params.n_batch)
        self._cells = context_tokens
        self._free = list(range(SEQUENCES))
        self._readers: dict[str, Reader] = {}  # least recently asked first

    def guess(self, asked: Sequence[tuple[str, list[int], int]]) -> list[list[int]]:
        """For each `(id, tokens, length)` up to `length` tokens that it is sure enough of; none for a text that it has
        not caught up with, or has no cells for."""
        guesses: list[list[int]] = [[] for _ in asked]
        self._readers = {**self._readers, **self._seats([id_ for id_, _, _ in asked])}
        chunks: dict[int, Chunk] = {}
        for at, (id_, tokens, length) in enumerate(asked):
            if (reader := self._readers.get(id_)) and self._fits(reader, len(tokens) + length):
                chunks[at] = self._catch_up(id_, reader, tokens)
        while chunks:
            chosen = self._decode(chunks)
            for at, token in chosen.items():
                guesses[at].append(token)
            chunks = {
                at: self._follow(asked[at][0], token)
                for at, token in chosen.items()
                if len(guesses[at]) < asked[at][2]
            }
        return guesses

    def _refuse_unfit(self, vocab: Vocabulary) -> None:
        mine = self._vocab
        alike = abs(mine.size - vocab.size) <= MOST_EXTRA_TOKENS and all(
            mine.text(token) == vocab.text(token) for token in range(self._shared_tokens)
        )
        if not alike:
            raise Unfit("they have different vocabularies")
        if not can_trim(self._model, swa_full=True):
            raise Unfit("its state cannot take back a wrong guess")

    def _seats(self, ids: Sequence[str]) -> dict[str, Reader]:
        """A reader for each of these, at the cost of those that have not been asked for longest."""
        seats = {id_: self._readers.pop(id_) for id_ in ids if id_ in self._readers}
        for id_ in ids:
            if id_ not in seats and (self._free or self._readers):
                if not self._free:
                    self._leave(next(iter(self._readers)))
                seats[id_] = Reader(self._free.pop())
        return seats

    def _leave(self, id_: str) -> None:
        reader = self._readers.pop(id_)
        lib.llama_memory_seq_rm(self._memory, reader.seq, -1, -1)
        self._free.append(reader.seq)

    def _fits(self, reader: Reader, tokens: int) -> bool:
        others = sum(len(other.tokens) for other in self._readers.values() if other is not reader)
        return others + tokens <= self._cells

    def _catch_up(self, id_: str, reader: Reader, tokens: list[int]) -> Chunk:
        kept = common_prefix(reader.tokens, tokens, len(tokens) - 1)
        if kept < len(reader.tokens):
            lib.llama_memory_seq_rm(self._memory, reader.seq, kept, -1)
        end = min(len(tokens), kept + CATCH_UP_TOKENS)
        reader.tokens = tokens[:end]
        return Chunk(id_, reader.seq, kept, tokens[kept:end], int(end == len(tokens)))

    def _follow(self, id_: str, token: int) -> Chunk:
        reader = self._readers[id_]
        reader.tokens.append(token)
        return Chunk(id_, reader.seq, len(reader.tokens) - 1, [token], 1)

    def _decode(self, chunks: dict[int, Chunk]) -> dict[int, int]:
        """The likeliest next token of each chunk that wants one, where it is likely enough."""
        rows = self._batch.fill(list(chunks.values()))
        if lib.llama_decode(self._ctx, self._batch.struct) != 0:
            for chunk in chunks.values():
                self._leave(chunk.id)
            return {}
        wanted = [(at, row) for (at, chunk), row in zip(chunks.items(), rows, strict=True) if chunk.wanted]
        likeliest = ((at, self._likeliest(row)) for at, row in wanted)
        return {at: token for at, token in likeliest if token is not None}

    def _likeliest(self, row: int) -> int | None:
        logits = np.ctypeslib.as_array(lib.llama_get_logits_ith(self._ctx, row), (self._vocab.size,))
        token = int(logits.argmax())
        sure = 1 / float(np.exp(logits - logits[token]).sum()) >= SURE
        return token if sure and token < self._shared_tokens else None
