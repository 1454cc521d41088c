"""An answer's text as it comes, for scripts that read it as if it were all there.

A script is a generator that yields where it needs more text. Each step consumes text for good, so that reading is
linear in the text's length however it is cut.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable, Sequence
from functools import lru_cache
from typing import TypeVar

from fox.chat.pieces import Content, Piece, Reasoning

T = TypeVar("T")
Reading = Generator[None, None, T]
Tell = Callable[[str], object]

_NAME = re.compile(r"[\w.:/-]+")
_SPACE = re.compile(r"\s+")
_BETWEEN = re.compile(r"[\s,:0-9eE+\-.a-z]+")  # what JSON has between strings and brackets
_SCALAR = re.compile(r"[0-9eE+\-.a-z]+")
_CODE = re.compile(r"[^\"'()\[\]{}]+")
_UNESCAPED = {quote: re.compile(rf"[^{quote}\\]+") for quote in "\"'"}
_OPENED_BY = {"}": "{", "]": "[", ")": "("}


class Text:
    """Text of one kind on its way out.

    `holds`: white space is told only with the text after it, for before a call it is nothing. `strips`: white space
    before the first text is dropped.
    """

    def __init__(self, out: list[Piece], kind: type[Content] | type[Reasoning], *, strips: bool) -> None:
        self._out = out
        self._kind = kind
        self._held = ""
        self.strips = strips
        self.holds = True

    def tell(self, text: str) -> None:
        text = self._held + text
        if self.strips:
            text = text.lstrip()
        body = text.rstrip() if self.holds else text
        self._held = text[len(body) :]
        if body:
            self._out.append(self._kind(body))
            self.strips = False

    def flush(self) -> None:
        """Nothing follows: the white space belongs to the text."""
        if self._held:
            self._out.append(self._kind(self._held))
        self._held = ""


class Source:
    """The text that has come and is not read yet, and the pieces made of what is."""

    def __init__(self) -> None:
        self.pieces: list[Piece] = []
        self.content = Text(self.pieces, Content, strips=False)
        self.thought = Text(self.pieces, Reasoning, strips=True)
        self.over = False
        self.truncated = False
        self.calls = 0
        self._text = ""
        self._at = 0
        self._since: list[str] | None = None

    def add(self, text: str) -> None:
        """Text that has come."""
        self._text, self._at = self._text[self._at :] + text, 0

    def end(self, *, truncated: bool) -> None:
        """No more comes. `truncated`: the model had not finished."""
        self.over, self.truncated = True, truncated

    # what may turn out to be something else

    def mark(self, *read: str) -> None:
        """Remember what is read from here on, after what was `read` just now."""
        self._since = list(read)

    def give_back(self) -> None:
        """What was read since the mark is text after all; at the end of a text cut short it is nothing."""
        since, self._since = self._since, None
        if not (self.truncated and self._at == len(self._text)):
            self.content.tell("".join(since or []))

    def keep(self) -> None:
        """What was read since the mark was what it seemed to be."""
        self._since = None

    # reading

    def until(self, marks: Iterable[str], tell: Tell) -> Reading[str | None]:
        """Tell the text before the first of `marks`, and read that mark; None at the end of the text.

        Of marks that begin at the same place the longest counts.
        """
        marks = tuple(marks)
        pattern = _any_of(marks)
        while True:
            found = pattern.search(self._text, self._at)
            if found and not self._may_grow(found, marks):
                tell(self._read(found.start() - self._at))
                return self._read(len(found[0]))
            if found is None:
                left = len(self._text) - self._at
                tell(self._read(left if self.over else left - self._possible(marks)))
                if self.over:
                    return None
            yield

    def word(self, *marks: str) -> Reading[tuple[str, str | None]]:
        """The text before the first of `marks`, and that mark."""
        parts: list[str] = []
        mark = yield from self.until(marks, parts.append)
        return "".join(parts), mark

    def ahead(self, *options: str) -> Reading[str | None]:
        """Read the longest of `options` that comes next; None if none does."""
        while True:
            rest = self._text[self._at : self._at + max(map(len, options))]
            if self.over or not any(o.startswith(rest) and o != rest for o in options):
                found = max((o for o in options if rest.startswith(o)), key=len, default=None)
                self._read(len(found or ""))
                return found
            yield

    def space(self) -> Reading[None]:
        """Read white space."""
        while True:
            found = _SPACE.match(self._text, self._at)
            self._read(found.end() - self._at if found else 0)
            if self._at < len(self._text) or self.over:
                return
            yield

    def next(self) -> Reading[str]:
        """The next character, which stays unread; "" at the end."""
        while self._at == len(self._text) and not self.over:
            yield
        return self._text[self._at : self._at + 1]

    def name(self) -> Reading[str]:
        """What may be a tool's name."""
        parts: list[str] = []
        yield from self._run(_NAME, parts.append)
        return "".join(parts)

    def json(self, tell: Tell) -> Reading[bool]:
        """Tell one JSON value as it comes. Whether it was one, as far as its brackets and strings show."""
        return self._value(tell, [], _BETWEEN, '"')

    def python(self, tell: Tell, opened: str) -> Reading[bool]:
        """The same for a Python expression whose brackets `opened` are read already."""
        return self._value(tell, list(opened), _CODE, "\"'")

    def _value(self, tell: Tell, stack: list[str], between: re.Pattern[str], quotes: str) -> Reading[bool]:
        while char := (yield from self.next()):
            if char in quotes:
                tell(self._read(1))
                if not (yield from self._string(tell, char)):
                    return False
            elif char in "{[(":
                stack.append(char)
                tell(self._read(1))
            elif stack and _OPENED_BY.get(char) == stack[-1]:
                stack.pop()
                tell(self._read(1))
            elif not (yield from self._run(between if stack else _SCALAR, tell)):
                return False
            if not stack:
                return True
        return False

    def _run(self, pattern: re.Pattern[str], tell: Tell) -> Reading[bool]:
        """Tell all that the pattern matches; whether that is anything."""
        told = False
        while True:
            if found := pattern.match(self._text, self._at):
                told = True
                tell(self._read(found.end() - self._at))
            if self._at < len(self._text) or self.over:
                return told
            yield

    def _string(self, tell: Tell, quote: str) -> Reading[bool]:
        """The rest of a string that ends with `quote`."""
        while True:
            yield from self._run(_UNESCAPED[quote], tell)
            if self._text.startswith(quote, self._at):
                tell(self._read(1))
                return True
            if len(self._text) - self._at > 1:
                tell(self._read(2))
            elif self.over:
                return False
            else:
                yield

    def _read(self, count: int) -> str:
        text = self._text[self._at : self._at + count]
        self._at += count
        if self._since is not None and text:
            self._since.append(text)
        return text

    def _may_grow(self, found: re.Match[str], marks: Sequence[str]) -> bool:
        """More text could make it a longer mark."""
        rest = self._text[found.start() :]
        return not self.over and any(mark.startswith(rest) and mark != rest for mark in marks)

    def _possible(self, marks: Sequence[str]) -> int:
        """Length of the longest tail that begins a mark."""
        tail = self._text[max(self._at, len(self._text) - max(map(len, marks)) + 1) :]
        starts = (at for at in range(len(tail)) if any(mark.startswith(tail[at:]) for mark in marks))
        return next((len(tail) - at for at in starts), 0)


@lru_cache(maxsize=256)
def _any_of(marks: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(map(re.escape, sorted(marks, key=len, reverse=True))))
