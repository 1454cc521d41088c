"""What keeps a user's text from becoming a control token, whatever template it passes through.

Every spelling of a control token inside the conversation is fenced by two noncharacters before rendering; after it,
fenced text is a part of its own that is tokenized as plain text. Text without such spellings stays in one piece, so
it tokenizes as it always would, and templates may trim and split.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from fox.generation import PromptPart

OPEN, CLOSE, CUT = "\ufdd0", "\ufdd1", "\ufdd2"
"""The fence's two posts, and the mark after which a prompt that continues an answer is cut."""
_FENCES = re.compile(f"[{OPEN}{CLOSE}{CUT}]")


class Fence:
    """Puts fences around every spelling of these control tokens."""

    def __init__(self, control_tokens: Sequence[str]) -> None:
        longest_first = sorted(filter(None, control_tokens), key=len, reverse=True)
        self._control = re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")

    def around(self, value: Any) -> Any:
        """The same value with every control token's spelling in its strings between OPEN and CLOSE."""
        if isinstance(value, str):
            text = value if value.isascii() else unfenced(value)
            if not self._control.search(text):  # as in nearly all
                return text
            return self._control.sub(lambda found: f"{OPEN}{found[0]}{CLOSE}", text)
        if isinstance(value, dict) or isinstance(value, Mapping):  # noqa: SIM101 - dicts are told 20 times sooner
            return {self.around(key): self.around(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.around(item) for item in value]
        return value


def unfenced(text: str) -> str:
    """The text as its user wrote it."""
    return _FENCES.sub("", text)


def prompt_parts(text: str) -> tuple[PromptPart, ...]:
    """Text with a fence open before it or closing after it is plain, the rest is the template's own.

    A template that cut a fence in two makes more of its own text plain, never a user's text special.
    """
    pieces = [CLOSE, *re.split(f"([{OPEN}{CLOSE}])", text), OPEN]
    return tuple(
        PromptPart(piece, special=(before, after) == (CLOSE, OPEN))
        for before, piece, after in zip(pieces[::2], pieces[1::2], pieces[2::2], strict=False)
        if piece
    )
