"""A thought that has had its time is cut off."""

from __future__ import annotations

from fox.generation import Budget


class Thought:
    """Follows an answer's bytes from its start. `says`: the tokens that end its thought."""

    def __init__(self, budget: Budget, says: list[int]) -> None:
        self._says = says
        self._opens = budget.opens.encode() if budget.opens else b""
        self._closes = budget.closes.encode()
        self._left = budget.tokens
        self._tail = b""
        self._open = not self._opens
        self._over = False

    @property
    def spent(self) -> bool:
        """It goes on, and may not."""
        return self._open and not self._over and self._left <= 0

    def last_words(self, most: int) -> list[int]:
        """The next tokens of what ends it, one at least."""
        words, self._says = self._says[: max(1, most)], self._says[max(1, most) :]
        self._over = not self._says
        return words

    def take(self, piece: bytes) -> None:
        """The bytes of the answer's next token."""
        if self._over:
            return
        text = self._tail + piece
        if self._open:
            self._left -= 1
            self._over = self._closes in text
            self._tail = text[-len(self._closes) :]
        else:
            self._begin(text.lstrip())

    def _begin(self, text: bytes) -> None:
        self._open = text.startswith(self._opens)
        self._over = not self._open and not self._opens.startswith(text)
        self._tail = b"" if self._open else text
