"""n-gram lookup: the tokens that followed the same last `n` tokens before are a guess at what follows now."""

from __future__ import annotations

LATEST_TRIALS = 8
WORTHWHILE = 0.3


class Lookup:
    """The n-grams of one sequence, and how well its guesses have done. Switches itself off where they do not pay."""

    def __init__(self, n: int, length: int) -> None:
        self._n = n
        self._length = length
        self._seen: dict[tuple[int, ...], int] = {}  # n-gram -> where its continuation starts
        self._upto = n
        self._trials = 0
        self._hit_rate = 1.0
        self._pause = 0

    def draft(self, tokens: list[int]) -> list[int]:
        """Up to `length` tokens likely to follow `tokens`; none where nothing is known or guesses fail."""
        self._read(tokens)
        if self._pause:
            self._pause -= 1
            return []
        at = self._seen.get(tuple(tokens[-self._n :]))
        return tokens[at : at + self._length] if at is not None else []

    def judge(self, drafted: int, accepted: int) -> None:
        """`accepted` of `drafted` tokens were right."""
        self._hit_rate += (accepted / drafted - self._hit_rate) / LATEST_TRIALS
        if self._hit_rate < WORTHWHILE:
            self._pause, self._hit_rate = 32, WORTHWHILE + 0.1  # try again later: texts change

    def _read(self, tokens: list[int]) -> None:
        """Index the n-grams that have a continuation; the last one has none yet."""
        for end in range(self._upto, len(tokens)):
            self._seen[tuple(tokens[end - self._n : end])] = end
        self._upto = max(self._upto, len(tokens))
