"""What an answer must say: its grammar while that is in force, and the end of a thought that has had its time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from fox.engine.model import Matcher
from fox.generation import Grammar

FORCED_TOKENS = 16
"""Tokens without a choice that one step takes at most."""


class Constraint:
    """One answer's grammar. Outside its force every token may come, and it looks out for what starts it.

    `piece` says how tokens print; `opens` is the token that the grammar's `opens` is.
    """

    def __init__(
        self, grammar: Grammar, matcher: Matcher, piece: Callable[[int], bytes], opens: int | None = None
    ) -> None:
        self._grammar = grammar
        self._matcher = matcher
        self._piece = piece
        self._starts = tuple(start.encode() for start in grammar.starts)
        self._opens = opens
        self._longest = max(map(len, self._starts), default=0)
        self._tail = b""
        self._filled = False
        self.in_force = not self._starts or grammar.opens is not None

    @property
    def complete(self) -> bool:
        """The grammar ends here, and the answer with it."""
        return self.in_force and self._grammar.ends and self._matcher.complete

    def prepare(self) -> None:
        """Compute what may come next, so that the step does not wait for it."""
        if self.in_force and not self._filled:
            self._matcher.fill()
            self._filled = True

    def allows(self, token: int) -> bool:
        return token == self._opens or self._matcher.allows(token)

    def barred(self) -> NDArray[np.bool_]:
        """For each token of the vocabulary: that it may not come next."""
        barred = self._matcher.barred()
        if self._opens is not None:
            barred[self._opens] = False
        return barred

    def take(self, token: int) -> None:
        """This token comes next. Raises EngineFailed where the grammar gets out of hand."""
        if not self.in_force:
            self._watch(self._piece(token))
        elif token == self._opens:
            self.in_force = False
        else:
            self._matcher.take(token)
            if not self._grammar.ends and self._matcher.complete:
                self.in_force, self._tail = False, b""
        self._opens, self._filled = None, False

    def forced(self, most: int) -> list[int]:
        """The tokens that must come next, as far as there is no choice; they are taken."""
        if not self.in_force or self._opens is not None:
            return []
        tokens = self._matcher.forced()[:most]
        for token in tokens:
            self.take(token)
        return tokens

    def _watch(self, piece: bytes) -> None:
        """Come into force where a start has just been completed; what followed it in one token counts already."""
        text = self._tail + piece
        found = [(at + len(start)) for start in self._starts if (at := text.find(start)) >= 0]
        self._tail = text[-self._longest + 1 :] if self._longest > 1 else b""
        if not found:
            return
        self._matcher.reset()
        if self._matcher.take_text(text[min(found) :]):
            self.in_force = True
        self._tail = b""
