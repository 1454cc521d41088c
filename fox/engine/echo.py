"""A model that speaks the prompt back, a word a step: the whole engine without a neural network, for tests.

Its answer is read from the cells of its KV memory, so a lost, foreign or misplaced cell shows as a wrong word. Names
and words direct it: `echo-slow` takes 50 ms a step, `echo-fails` does not load, the word `@die` kills the process when
its turn comes, `@fail` makes that step fail.
"""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Generator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fox.engine.model import Filter, Lost, Matcher, Vector
from fox.engine.options import EngineOptions
from fox.errors import EngineFailed, InvalidRequest, ModelLoadFailed
from fox.generation import Grammar, ModelInfo, PromptPart, Sampling, TokenLogprob
from fox.kvcache import Drop, Forget, Move, Restore, Save, Shape, Share, Spill, Trim
from fox.scheduler import Chunk, Guesser

END, TURN = 0, 1  # END ends an answer, TURN separates prompt and answer
SLOW_STEP_S = 0.05
CONTEXT_TOKENS = 4096
MOST_POOL_TOKENS = 1 << 20
TEMPLATE = "{{ messages[-1].content }}"


class EchoModel:
    """The Model protocol over words instead of tokens."""

    def __init__(self, name: str, options: EngineOptions) -> None:
        if name.endswith("-fails"):
            raise ModelLoadFailed(name, "this echo model always fails to load")
        self._delay_s = SLOW_STEP_S if name.endswith("-slow") else options.echo_delay_s
        self._words = ["</end>", "<turn>"]
        self._ids = {word: i for i, word in enumerate(self._words)}
        self._cells: dict[int, list[int]] = {}
        self._saved: dict[int, list[int]] = {}
        self.states = NoStates()
        self.embedder = EchoEmbedder(self)
        self.guesser: Guesser | None = None
        self._rows: list[
            tuple[list[int], int]
        ] = []  # a sequence's cells, and how many of them a row has seen
        context = options.max_context_len or CONTEXT_TOKENS
        pool_tokens = max(context, min(options.max_batch_size * context, MOST_POOL_TOKENS))
        size = options.block_size
        self.shape = Shape(
            slots=2 * options.max_batch_size,
            blocks=-(-pool_tokens // size),
            block_size=size,
            reuse=options.prefix_cache,
            host_bytes=MOST_POOL_TOKENS if options.kv_host_mb is None else options.kv_host_mb << 20,
            token_bytes=1,
        )
        self.info = ModelInfo(
            name=name,
            architecture="echo",
            context_tokens=context,
            trained_context_tokens=max(context, CONTEXT_TOKENS),
            parallel=options.max_batch_size,
            vocab_tokens=1 << 30,
            parameters=0,
            weights_bytes=0,
            chat_template=TEMPLATE,
            bos="",
            eos=self._words[END],
            control_tokens=(),
            embedding_width=EchoEmbedder.width,
            embedding_tokens=context,
        )

    def tokenize(self, prompt: Sequence[PromptPart], *, begins: bool = True) -> list[int]:
        text = "".join(part.text for part in prompt)
        words = re.findall(r"\s*\S+", text)
        ids = [self._ids.setdefault(w, len(self._ids)) for w in words]
        return [*ids, TURN] if ids and begins else ids

    def piece(self, token: int) -> bytes:
        if len(self._words) != len(self._ids):
            self._words = list(self._ids)
        return b"" if token in (END, TURN) else self._words[token].encode()

    def name(self, token: int) -> bytes:
        return self.piece(token)

    def control(self, spelling: str) -> int | None:
        return None

    def compile(self, grammar: Grammar) -> Matcher:
        raise InvalidRequest(f"`{grammar.param}`: an echo follows no grammar", grammar.param)

    def is_end(self, token: int) -> bool:
        return token == END

    def apply(self, moves: Sequence[Move]) -> Lost:
        for move in moves:
            match move:
                case Drop(seq):
                    self._cells.pop(seq, None)
                case Trim(seq, upto):
                    del self._cells[seq][upto:]
                case Share(src, dst, upto):
                    self._cells[dst] = self._cells[src][:upto]
                case Save(seq, key):
                    self._saved[key] = list(self._cells[seq])
                case Restore(key, seq):
                    self._cells[seq] = list(self._saved[key])
                case Forget(key):
                    del self._saved[key]
                case Spill():
                    raise AssertionError("there is no disk")
        return Lost([], [])

    def decode(self, chunks: Sequence[Chunk]) -> list[int]:
        if self._delay_s:
            time.sleep(self._delay_s)
        self._rows = []
        first_rows = []
        for chunk in chunks:
            cells = self._cells.setdefault(chunk.seq, [])
            if len(cells) != chunk.start:
                raise EngineFailed(f"chunk starts at {chunk.start}, the sequence holds {len(cells)} cells")
            cells.extend(chunk.tokens)
            first_rows.append(len(self._rows))
            self._rows += [(cells, len(cells) - chunk.wanted + 1 + i) for i in range(chunk.wanted)]
        return first_rows

    def sampler(self, sampling: Sampling, prompt: Sequence[int], *, may_end: bool) -> EchoSampler:
        return EchoSampler(self, may_end)

    def next_token(self, row: int, may_end: bool) -> int:
        """The word at the same place in the prompt; from its start again where the answer may not end."""
        cells, seen = self._rows[row]
        turn = cells.index(TURN)
        spoken = seen - turn - 1
        if spoken >= turn and may_end:
            return END
        token = cells[spoken % turn]
        self.obey(self._word(token))
        return token

    def _word(self, token: int) -> str:
        return self.piece(token).decode().strip()

    @staticmethod
    def obey(word: str) -> None:
        """Do what the word says, if it is an order."""
        if word == "@die":
            os.kill(os.getpid(), signal.SIGKILL)
        if word == "@fail":
            raise EngineFailed("the prompt asked for a failing step")


class EchoEmbedder:
    """Counts words: a text's vector says how many of its words fall into each of `width` buckets."""

    pooling = "mean"
    width = 16

    def __init__(self, model: EchoModel) -> None:
        self._model = model

    @property
    def context_tokens(self) -> int:
        return self._model.info.context_tokens

    def tokens(self, text: str) -> list[int]:
        return self._model.tokenize((PromptPart(text, special=False),), begins=False)

    def pair(self, query: str, document: str) -> list[int]:
        return self.tokens(f"{query} {document}")

    def steps(self, inputs: Sequence[Sequence[int]]) -> Generator[dict[int, Vector]]:
        for at, tokens in enumerate(inputs):
            words = [self._model.piece(token).decode().strip() for token in tokens]
            for word in words:
                self._model.obey(word)
            counts = np.bincount([len(word) % self.width for word in words], minlength=self.width)
            yield {at: counts.astype(np.float32)}


class NoStates:
    """Nothing of an echo outlives it."""

    def found(self) -> list[tuple[Path, list[int], int]]:
        return []

    def bind(self, key: int, path: Path) -> None:
        raise AssertionError("nothing was found")

    def flush(self) -> None:
        pass


class EchoSampler:
    in_graph = True

    def __init__(self, model: EchoModel, may_end: bool) -> None:
        self._model = model
        self._may_end = may_end

    def attach(self, seq: int, *, alone: bool) -> None:
        pass

    def detach(self) -> None:
        pass

    def sample(self, row: int, *, may_end: bool, only: Filter | None = None) -> int:
        return self._model.next_token(row, may_end and self._may_end)

    def accept(self, token: int) -> None:
        pass

    def logits(self, row: int) -> NDArray[np.float32]:
        return np.zeros(0, np.float32)

    def logprobs(self, logits: NDArray[np.float32], token: int, rivals: int) -> TokenLogprob:
        """It is certain of every word."""
        piece = self._model.piece(token)
        return TokenLogprob(piece, 0.0, ((piece, 0.0),) if rivals else ())

    def close(self) -> None:
        pass
