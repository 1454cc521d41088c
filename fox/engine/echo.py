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
from collections.abc import Sequence

from fox.engine.model import NoRoom
from fox.engine.options import EngineOptions
from fox.errors import EngineFailed, ModelLoadFailed
from fox.generation import ModelInfo, PromptPart, Sampling
from fox.kvcache import Drop, Move
from fox.scheduler import Chunk

END, TURN = 0, 1  # END ends an answer, TURN separates prompt and answer
SLOW_STEP_S = 0.05
CONTEXT_TOKENS = 4096
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
        self._rows: list[list[int]] = []
        context = options.max_context_len or CONTEXT_TOKENS
        self.pool_tokens = max(context, min(options.max_batch_size * context, 1 << 20))
        self.info = ModelInfo(
            name=name,
            architecture="echo",
            context_tokens=context,
            trained_context_tokens=context,
            parallel=options.max_batch_size,
            vocab_tokens=1 << 30,
            parameters=0,
            weights_bytes=0,
            chat_template=TEMPLATE,
            bos="",
            eos=self._words[END],
            control_tokens=(),
        )

    def tokenize(self, prompt: Sequence[PromptPart]) -> list[int]:
        text = "".join(part.text for part in prompt)
        words = re.findall(r"\s*\S+", text)
        return [*(self._ids.setdefault(w, len(self._ids)) for w in words), TURN] if words else []

    def piece(self, token: int) -> bytes:
        if len(self._words) != len(self._ids):
            self._words = list(self._ids)
        return b"" if token in (END, TURN) else self._words[token].encode()

    def is_end(self, token: int) -> bool:
        return token == END

    def apply(self, moves: Sequence[Move]) -> None:
        for move in moves:
            match move:
                case Drop(seq):
                    self._cells.pop(seq, None)

    def decode(self, chunks: Sequence[Chunk]) -> list[int]:
        if self._delay_s:
            time.sleep(self._delay_s)
        if sum(map(len, self._cells.values())) + sum(len(c.tokens) for c in chunks) > self.pool_tokens:
            raise NoRoom
        for chunk in chunks:
            cells = self._cells.setdefault(chunk.seq, [])
            if len(cells) != chunk.start:
                raise EngineFailed(f"chunk starts at {chunk.start}, the sequence holds {len(cells)} cells")
            cells.extend(chunk.tokens)
        self._rows = [self._cells[chunk.seq] for chunk in chunks]
        return list(range(len(chunks)))

    def sampler(self, sampling: Sampling, prompt: Sequence[int]) -> EchoSampler:
        return EchoSampler(self)

    def next_token(self, row: int, may_end: bool) -> int:
        """The word at the same place in the prompt; from its start again where the answer may not end."""
        cells = self._rows[row]
        turn = cells.index(TURN)
        spoken = len(cells) - turn - 1
        if spoken >= turn and may_end:
            return END
        token = cells[spoken % turn]
        self._obey(self._word(token))
        return token

    def _word(self, token: int) -> str:
        return self.piece(token).decode().strip()

    @staticmethod
    def _obey(word: str) -> None:
        if word == "@die":
            os.kill(os.getpid(), signal.SIGKILL)
        if word == "@fail":
            raise EngineFailed("the prompt asked for a failing step")


class EchoSampler:
    def __init__(self, model: EchoModel) -> None:
        self._model = model

    def sample(self, row: int, *, may_end: bool) -> int:
        return self._model.next_token(row, may_end)

    def close(self) -> None:
        pass
