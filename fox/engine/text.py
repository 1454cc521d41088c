"""Token bytes to printable text: whole characters only, and nothing of a stop string."""

from __future__ import annotations

import codecs
from collections.abc import Sequence


class TextStream:
    """Turns one answer's token bytes into text that may be shown.

    Holds back an incomplete UTF-8 character, and the longest tail that could still become a stop string. Bytes that
    can never be UTF-8 come out as U+FFFD. How the bytes are cut into pushes never changes the text in all.
    `seen` characters are complete by now, `shown` of them were given out.
    """

    def __init__(self, stop: Sequence[str] = ()) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._stop = [s for s in stop if s]
        self._held = ""
        self.stopped = False
        self.seen = 0
        self.shown = 0

    def push(self, piece: bytes) -> str:
        """The text that `piece` made printable. Once a stop string is complete, `stopped` is true and nothing comes."""
        return self._count(self._release(self._decoder.decode(piece)))

    def flush(self) -> str:
        """The rest, at the end of an answer: what was held turned out not to be a stop string."""
        rest = self._release(self._decoder.decode(b"", final=True)) + self._held
        self._held = ""
        return self._count("" if self.stopped else rest)

    def _count(self, text: str) -> str:
        self.shown += len(text)
        self.seen = self.shown + len(self._held)
        return text

    def _release(self, text: str) -> str:
        if self.stopped or not text:
            return ""
        if not self._stop:
            return text
        text = self._held + text
        if (cut := self._first_stop(text)) is not None:
            self.stopped, self._held = True, ""
            return text[:cut]
        keep = len(text) - self._possible_stop(text)
        self._held = text[keep:]
        return text[:keep]

    def _first_stop(self, text: str) -> int | None:
        """Where the stop string that completes first begins (the longest one, where several complete together)."""
        found = [(at + len(s), at) for s in self._stop if (at := text.find(s)) >= 0]
        return min(found)[1] if found else None

    def _possible_stop(self, text: str) -> int:
        """Length of the longest tail of `text` that begins a stop string."""
        return max((self._overlap(text, s) for s in self._stop), default=0)

    @staticmethod
    def _overlap(text: str, stop: str) -> int:
        limit = min(len(text), len(stop) - 1)
        return next((n for n in range(limit, 0, -1) if text.endswith(stop[:n])), 0)
