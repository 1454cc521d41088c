"""Guesses at the tokens that come next: by n-gram lookup, or given from outside (a draft model). Checked by the engine,
they change no answer; where they do not pay, a sequence goes without for a while."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from fox.scheduler.sequence import Sequence

LATEST_TRIALS = 8
WORTHWHILE = 0.3  # of the guessed tokens must be right
PAUSE_STEPS = 32


HINT_NGRAM = 3
Guesser = Callable[[list[tuple[str, list[int], int]]], list[list[int]]]
"""Asked `(id, tokens, length)` of several sequences, it guesses up to `length` tokens for each."""


class Lookup:
    """The n-grams of one sequence: what followed the same last `n` tokens before may follow now. `n=0`: never."""

    def __init__(self, n: int) -> None:
        self._n = n
        self._seen: dict[tuple[int, ...], int] = {}  # n-gram -> where its continuation starts
        self._upto = n

    def guess(self, tokens: list[int], length: int) -> list[int]:
        """Up to `length` tokens; none where nothing is known."""
        if not self._n:
            return []
        for end in range(self._upto, len(tokens)):  # the last n-gram has no continuation yet
            self._seen[tuple(tokens[end - self._n : end])] = end
        self._upto = max(self._upto, len(tokens))
        at = self._seen.get(tuple(tokens[-self._n :]))
        return tokens[at : at + length] if at is not None else []


class Hint:
    """A text that the answer may well repeat, given from outside: what follows the answer's last tokens in it."""

    def __init__(self, tokens: list[int]) -> None:
        self._tokens = tokens
        self._after = {
            tuple(tokens[end - n : end]): end
            for n in range(1, HINT_NGRAM + 1)
            for end in range(len(tokens) - 1, n - 1, -1)
        }

    def guess(self, said: list[int], length: int) -> list[int]:
        """Up to `length` tokens after the longest of the last n-grams of `said` that is known."""
        for n in range(min(HINT_NGRAM, len(said)), 0, -1):
            if (at := self._after.get(tuple(said[-n:]))) is not None:
                return self._tokens[at : at + length]
        return []


class Trust:
    """How well one sequence's guesses have done lately, and whether to go on guessing."""

    def __init__(self) -> None:
        self._hit_rate = 1.0
        self._pause = 0

    def step(self) -> bool:
        """One more step: whether to guess in it."""
        if self._pause:
            self._pause -= 1
            return False
        return True

    def judge(self, guessed: int, right: int) -> None:
        self._hit_rate += (right / guessed - self._hit_rate) / LATEST_TRIALS
        if self._hit_rate < WORTHWHILE:
            self._pause, self._hit_rate = PAUSE_STEPS, WORTHWHILE + 0.1  # try again later: texts change


class Speculation:
    """Every sequence's guesses: `length` tokens at most, by lookup of the last `ngram` (0: none), else by `model`."""

    def __init__(self, ngram: int, length: int, model: Guesser | None) -> None:
        self._ngram = ngram
        self._length = length
        self._model = model
        self._of: dict[str, tuple[Lookup, Trust]] = {}
        self._hints: dict[str, tuple[Hint, int]] = {}
        self.proposed = 0
        self.accepted = 0

    def hint(self, sequence: Sequence, tokens: list[int]) -> None:
        """What follows the sequence's prompt may well be like `tokens`."""
        self._hints[sequence.id] = Hint(tokens), len(sequence.tokens)

    def guess(self, sequences: Iterable[Sequence], context_tokens: int) -> None:
        """Give each of these decoding sequences its draft."""
        asked: list[tuple[Sequence, int]] = []
        for sequence in sequences:
            lookup, trust = self._of.setdefault(sequence.id, (Lookup(self._ngram), Trust()))
            length = min(self._length, context_tokens - len(sequence.tokens))
            if not trust.step() or length < 1:
                continue
            sequence.draft = self._hinted(sequence, length) or lookup.guess(sequence.tokens, length)
            if not sequence.draft:
                asked.append((sequence, length))
        if asked and self._model:
            guesses = self._model([(sequence.id, sequence.tokens, length) for sequence, length in asked])
            for (sequence, length), guess in zip(asked, guesses, strict=True):
                sequence.draft = guess[:length]

    def _hinted(self, sequence: Sequence, length: int) -> list[int]:
        if not (found := self._hints.get(sequence.id)):
            return []
        hint, begins = found
        return hint.guess(sequence.tokens[max(begins, len(sequence.tokens) - HINT_NGRAM) :], length)

    def judge(self, id_: str, guessed: int, right: int) -> None:
        """`right` of `guessed` tokens were."""
        self._of[id_][1].judge(guessed, right)
        self.proposed += guessed
        self.accepted += right

    def forget(self, id_: str) -> None:
        """Its text has changed or ended."""
        self._of.pop(id_, None)
        self._hints.pop(id_, None)
